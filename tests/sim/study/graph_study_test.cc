// Studies of general graphs end to end: ONNX files under data and tensor parallelism.
#include <cstdio>

#include "base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/strategies/onnx/models.h"
#include "tests/test.h"

#include "sim/study/run.h"
#include "strategies/graph/transformer.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/graph.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::study::graph_study_test {

using program::CollectiveKind;
using program::Purpose;

struct Traffic {
  std::int64_t operations = 0;
  double bytes = 0;
};

std::map<CollectiveKind, Traffic> traffic(const program::Program& program, Purpose purpose) {
  std::map<CollectiveKind, Traffic> sums;
  for (const program::Call& call : program.roles[0].calls) {
    for (const program::Task& task : program.blocks[call.block.index()].tasks) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      if (what == nullptr || what->purpose != purpose || what->tag == "gradient_norm") continue;
      sums[what->kind].operations += call.repeat;
      sums[what->kind].bytes += call.repeat * what->bytes.in_base();
    }
  }
  return sums;
}

class GraphStudy : public testing::Test {
 protected:
  // The study of `bytes` with `strategy` on nodes of 8 H100.
  Result<LoadedStudy> load(const std::string& bytes, const std::string& strategy,
                           std::int64_t devices, const std::string& dims = "") {
    const auto file = folder_.path() / "model.onnx";
    EXPECT_TRUE(write_file(file, bytes).ok());
    const std::string gpus = std::to_string(std::min<std::int64_t>(8, devices));
    const std::string nodes = std::to_string(std::max<std::int64_t>(1, devices / 8));
    const std::string text = "cluster:\n  name: test\n  nodes: " + nodes +
                             "\n  node: {extends: dgx-h100, gpus: " + gpus +
                             ", nics: {count: " + gpus + "}}\n  fabric: {kind: single-switch}\n" +
                             "graph: {file: model.onnx" + dims + "}\n" +
                             "strategy: {framework: megatron-lm, " + strategy + "}\n";
    const auto study = folder_.path() / "study.yaml";
    EXPECT_TRUE(write_file(study, text).ok());
    return load_study({.study = study}, shipped_options());
  }

  StudyRun run(const std::string& bytes, const std::string& strategy, std::int64_t devices,
               const std::string& dims = "") {
    return value_of(run_study(value_of(load(bytes, strategy, devices, dims)), {}));
  }

  TemporaryFolder folder_;
};

constexpr double kResnet = 25'557'032;
constexpr double kResnetFlops = 2 * 4.0892e9;  // forward, per image
// Of these the first convolution, whose images have no gradient: 7 x 7 x 3 to 64 of 112 x 112.
constexpr double kResnetStem = 2.0 * 7 * 7 * 3 * 64 * 112 * 112;

// Data parallelism: all gradients in fp32 once, 2 (p-1)/p of them per link; nothing else. The
// FLOPs of the step are three times the forward ones of its images, without the images' gradient.
TEST_F(GraphStudy, Resnet50UnderDataParallelism) {
  double before = 0;
  for (const int p : {1, 2, 8, 16}) {
    const StudyRun got =
        run(onnx_models::resnet50(),
            "data_parallel: " + std::to_string(p) + ", micro_batch: " + std::to_string(256 / p) +
                ", global_batch: 256",
            p);
    EXPECT_NEAR(got.program.totals.model_flops.in_base(), 256 * (3 * kResnetFlops - kResnetStem),
                1e10);
    auto sums = traffic(got.program, Purpose::kData);
    EXPECT_EQ(sums[CollectiveKind::kAllReduce].bytes, p == 1 ? 0 : 4 * kResnet);
    EXPECT_EQ(sums.size(), 1u);
    EXPECT_TRUE(traffic(got.program, Purpose::kTensor).empty());
    const double step = got.prediction.step.in_base();
    std::printf("ResNet-50, data %2d: %.2f ms, %.0f images/s, peak %.2f GiB\n", p, step * 1e3,
                256 / step, got.prediction.classes[0].memory.peak / 1_GiB);
    // With 16 images a rank the host sets the pace, whatever the kernels take.
    if (before > 0) {
      EXPECT_LT(step, p < 16 ? before : 1.01 * before);
    }
    before = step;
  }
}

// BERT-base under tensor parallelism, all-reduces of b s h in bf16: per layer two forward (behind
// the attention and the feed-forward part) and two backward (the sum of the gradients that queries,
// keys and values leave of what they read, and that of the first matrix), as Shoeybi et al. 2019
// count them; one of the words, where p divides 30,522 rows; and b h for the pooler's input.
TEST_F(GraphStudy, BertUnderTensorParallelism) {
  double before = 0;
  for (const int p : {1, 2, 4}) {
    const StudyRun got =
        run(onnx_models::bert(),
            "tensor_parallel: " + std::to_string(p) + ", micro_batch: 64, global_batch: 64", p,
            ", dims: {sequence: 512}");
    const double boundary = 2.0 * 64 * 512 * 768;
    auto sums = traffic(got.program, Purpose::kTensor);
    std::printf(
        "BERT-base, tensor %d: %.2f ms, %lld all-reduces of %.1f boundaries, peak %.2f GiB\n", p,
        got.prediction.step / 1_ms,
        static_cast<long long>(sums[CollectiveKind::kAllReduce].operations),
        sums[CollectiveKind::kAllReduce].bytes / boundary,
        got.prediction.classes[0].memory.peak / 1_GiB);
    if (p > 1) {
      EXPECT_EQ(sums.size(), 1u);
      EXPECT_DOUBLE_EQ(sums[CollectiveKind::kAllReduce].bytes,
                       (12 * (2 + 2) + (p == 2 ? 1 : 0)) * boundary + boundary / 512);
    }
    EXPECT_TRUE(traffic(got.program, Purpose::kData).empty());
    if (before > 0) {
      EXPECT_LT(got.prediction.step.in_base(), before);
    }
    before = got.prediction.step.in_base();
  }
}

// The keys that cut BERT at its layers, but for the first.
std::string cuts_at_layers(const Graph& graph, std::int64_t layers) {
  std::string names;
  for (std::int64_t layer = 1; layer < layers; ++layer) {
    const std::string weight = "layer." + std::to_string(layer) + ".query.weight";
    for (const Operator& op : graph.operators)
      for (const TensorId id : op.inputs)
        if (graph[id].name == weight) names += (names.empty() ? "" : ", ") + op.name;
  }
  return ", cuts: [" + names + "]";
}

// BERT of four layers as units of a layer: ZeRO 3, a pipeline, and recomputation.
TEST_F(GraphStudy, BertInUnits) {
  const std::string bert = onnx_models::bert({.layers = 4});
  const std::string dims = ", dims: {sequence: 128}";
  const std::string dp = "data_parallel: 4, micro_batch: 32, global_batch: 256";
  const std::string cuts = cuts_at_layers(load(bert, dp, 4, dims)->graph->graph, 4);
  const auto peak = [](const StudyRun& run) {
    return run.prediction.classes[0].memory.peak / 1_MiB;
  };
  const StudyRun zero2 = run(bert, dp + ", zero_stage: 2", 4, dims + cuts);
  const StudyRun zero3 = run(bert, dp + ", zero_stage: 3", 4, dims + cuts);
  const StudyRun again = run(bert, dp + ", zero_stage: 3, recompute: full", 4, dims + cuts);
  // Parameters of 8 passes of each of two micro-batches, 12 h^2 + 13 h of a layer in bf16; the
  // first unit has the embeddings, too, and the last one the pooler. The gradient of the positions
  // is added up over the batch, and with it over the replicas, before it is scattered to their
  // table, which stays whole on each.
  const double elements =
      static_cast<double>(onnx_models::parameters_of({.layers = 4}) - std::int64_t{512} * 768);
  auto sums = traffic(zero3.program, Purpose::kData);
  // The last unit, a layer and the pooler, stays whole for its backward pass: h^2 + h more.
  const double last = 12.0 * 768 * 768 + 13 * 768 + 768 * 768 + 768;
  EXPECT_EQ(sums[CollectiveKind::kAllGather].operations, 2 * (2 * 4 - 1));
  EXPECT_NEAR(sums[CollectiveKind::kAllGather].bytes, 2 * 2 * (2 * elements - last), 100);
  EXPECT_NEAR(sums[CollectiveKind::kReduceScatter].bytes, 2 * 4 * elements, 100);
  std::printf("BERT of 4 layers in units: ZeRO 2 %.0f, 3 %.0f, with recomputation %.0f MiB\n",
              peak(zero2), peak(zero3), peak(again));
  EXPECT_LT(peak(zero3), peak(zero2));
  EXPECT_LT(peak(again), peak(zero3));

  const StudyRun stages =
      run(bert, "pipeline_parallel: 4, micro_batch: 8, global_batch: 64, recompute: full", 4,
          dims + cuts);
  ASSERT_EQ(stages.program.roles.size(), 4u);
  const auto moved = traffic(stages.program, Purpose::kPipeline);
  const double boundary = 2.0 * 8 * 128 * 768;
  const double mask = 2.0 * 8 * 128;  // without a gradient: nothing is sent back
  EXPECT_DOUBLE_EQ(moved.at(CollectiveKind::kSend).bytes, 8 * (boundary + mask));
  EXPECT_EQ(moved.at(CollectiveKind::kReceive).bytes, 8 * boundary);
}

// Llama 2 7B as the graph in the catalogue and as a model take the same time and memory, but for
// the kernels around attention and the loss, and what libraries hold.
TEST_F(GraphStudy, DecoderIsLikeTheModel) {
  const auto predicted = [&](const std::string& what, const std::string& strategy) {
    const auto path = folder_.path() / "study.yaml";
    EXPECT_TRUE(write_file(path, "cluster: two-dgx-h100\n" + what +
                                     "\nstrategy: {framework: megatron-lm, pipeline_parallel: 2, "
                                     "data_parallel: 8, micro_batch: 1, global_batch: 64, " +
                                     strategy + "}\n")
                    .ok());
    const auto study = value_of(load_study({.study = path}, shipped_options()));
    return value_of(run_study(study, {})).prediction;
  };
  for (const std::string how : {"zero_stage: 0", "zero_stage: 1, recompute: full",
                                "zero_stage: 3, recompute: full", "zero_stage: 3"}) {
    const auto model = predicted("model: llama2-7b", how);
    const auto graph = predicted("graph: {file: " FORESHARD_SOURCE_DIR
                                 "/configs/graphs/decoder.yaml, cuts: [layers, final]}",
                                 how + ", layers_per_stage: [17, 17]");
    const double time = graph.step.in_base() / model.step.in_base();
    const double memory =
        graph.classes[0].memory.peak.in_base() / model.classes[0].memory.peak.in_base();
    std::printf("decoder as a graph, %s: %.3f of the model's time, %.3f of its memory\n",
                how.c_str(), time, memory);
    EXPECT_NEAR(time, 1, 0.03) << how;
    EXPECT_NEAR(memory, 1, 0.05) << how << " (libraries' workspaces, places for gradients)";
  }
}

// Summands over four ranks that lie two on each node, of 4,096 x 1,024: first cut among the four
// ranks of a node that hold the same, so that a quarter crosses the fabric, then gathered in the
// node. By bytes alone one reduce-scatter is cheapest.
TEST_F(GraphStudy, PlansConversionsByTheirTime) {
  ASSERT_TRUE(write_file(folder_.path() / "graph.yaml", R"(
name: sums
tensors:
  - {name: x, role: input, dtype: bf16, shape: [4096, 2048], dims: ["-", data]}
  - {name: w, role: parameter, dtype: bf16, shape: [2048, 1024], dims: [data, "-"]}
  - {name: z, role: input, dtype: bf16, shape: [4096, 1024], dims: [data, "-"]}
operators:
  - {op: matmul, name: y, inputs: [x, w]}
  - {op: binary, name: sum, inputs: [y, z], settings: {operation: add}}
outputs: [sum]
)")
                  .ok());
  const auto path = folder_.path() / "study.yaml";
  ASSERT_TRUE(write_file(path,
                         "cluster: two-dgx-h100\ngraph: {file: graph.yaml}\nstrategy: {framework: "
                         "megatron-lm, mode: forward, tensor_parallel: 4, data_parallel: 4, "
                         "micro_batch: 1024, global_batch: 4096}\n")
                  .ok());
  const auto study = value_of(load_study({.study = path}, shipped_options()));
  const auto result = value_of(run_study(study, {}));
  std::vector<std::string> names;
  for (const program::Task& task : result.program.blocks[0].tasks)
    if (std::holds_alternative<program::Communication>(task.body)) names.push_back(task.name);
  EXPECT_THAT(names, ElementsAre("reduce_scatter.y", "all_gather.y"));
}

TEST_F(GraphStudy, SaysThatItHasNoLoss) {
  const StudyRun got =
      run(onnx_models::bert({.layers = 1}), "data_parallel: 2, micro_batch: 1, global_batch: 2", 2,
          ", dims: {sequence: 16}");
  bool told = false;
  for (const auto& warning : got.prediction.warnings)
    told = told || warning.message.find("has no loss behind it") != std::string::npos;
  EXPECT_TRUE(told);
  EXPECT_TRUE(std::ranges::any_of(got.prediction.warnings, [](const auto& warning) {
    return warning.message.find("the interval comes from") != std::string::npos;
  }));
  EXPECT_EQ(got.prediction.tokens, 32);
}

// Images have no tokens, sequences of token ids have as many as ids; what the inputs do not show
// can be said.
TEST_F(GraphStudy, CountsWhatASampleIs) {
  const std::string dp = "data_parallel: 2, micro_batch: 1, global_batch: 2";
  const auto graph = [&](const std::string& bytes, const std::string& keys) {
    const auto study = load(bytes, dp, 2, keys);
    EXPECT_TRUE(study) << study.error().message;
    return *study->graph;
  };
  EXPECT_EQ(graph(onnx_models::resnet50(), "").sample, "image");
  EXPECT_EQ(graph(onnx_models::resnet50(), "").tokens_per_sample, 0);
  EXPECT_EQ(run(onnx_models::resnet50(), dp, 2).prediction.tokens, 0);
  const auto bert = graph(onnx_models::bert({.layers = 1}), ", dims: {sequence: 16}");
  EXPECT_EQ(bert.sample, "sequence");
  EXPECT_EQ(bert.tokens_per_sample, 16);
  const auto told = graph(onnx_models::resnet50(), ", tokens_per_sample: 196");
  EXPECT_EQ(told.sample, "sequence");
  EXPECT_EQ(told.tokens_per_sample, 196);
}

TEST_F(GraphStudy, NamesPlacesOfFaults) {
  const auto fault = [&](const std::string& bytes, const std::string& strategy,
                         const std::string& dims = "") {
    return message_of(load(bytes, strategy, 2, dims), "loaded");
  };
  const std::string dp = "data_parallel: 2, micro_batch: 1, global_batch: 2";
  EXPECT_THAT(fault(onnx_models::bert({.layers = 1}), dp),
              AllOf(HasSubstr("study.yaml:6:"), HasSubstr("'sequence'")));
  EXPECT_THAT(fault("no model", dp), HasSubstr("it is not an ONNX file"));
  EXPECT_THAT(fault(onnx_models::resnet50(), dp + ", recompute: selective"),
              HasSubstr("what core attention is"));
  EXPECT_THAT(fault(onnx_models::resnet50(), dp + ", schedule: 2f2b"),
              HasSubstr("no schedule '2f2b'"));
  EXPECT_THAT(fault(onnx_models::resnet50(), dp, ", dims: {width: 3}"),
              HasSubstr("no input has an open dimension 'width'"));
}

// Keys that would change nothing.
TEST_F(GraphStudy, RefusesWhatItWouldNotRead) {
  const std::string dp = "data_parallel: 2, micro_batch: 1, global_batch: 2";
  const auto fault = [&](const std::string& keys) {
    return message_of(load(onnx_models::resnet50(), dp, 2, keys), "loaded");
  };
  EXPECT_THAT(fault(", probabilities: {brunch: 0.3}"),
              HasSubstr("the graph has no condition 'brunch'"));
  EXPECT_THAT(fault(", axes: {data: 3}"),
              AllOf(HasSubstr("the size of axis 'data'"), HasSubstr("strategy.data_parallel")));
  const auto yaml_fault = [&](const std::string& keys) {
    EXPECT_TRUE(write_file(folder_.path() / "study.yaml",
                           "cluster: two-dgx-h100\ngraph: {file: " FORESHARD_SOURCE_DIR
                           "/configs/graphs/moe-layer.yaml" +
                               keys + "}\nstrategy: {data_parallel: 8, micro_batch: 1, " +
                               "global_batch: 32}\n")
                    .ok());
    const auto study = load_study({.study = folder_.path() / "study.yaml"}, shipped_options());
    return message_of(study, "loaded");
  };
  EXPECT_THAT(yaml_fault(", dims: {batch: 3}"), HasSubstr("leaves no dimension open"));
  EXPECT_THAT(yaml_fault(", probabilities: {a: 0.3}"),
              HasSubstr("probabilities of its own conditions"));
}

// A decoder whose tables are not tied, lowered as a graph of one unit: the step on one device is
// that of the model. (The graph of a tied model has its table twice.)
TEST(ModelsAsGraphs, HaveTheSameStepOnOneDevice) {
  int compared = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(FORESHARD_SOURCE_DIR "/configs/models")) {
    const auto study = value_of(load_study({.cluster = "two-dgx-a100",
                                            .model = file.path().stem().string(),
                                            .strategy = "{global_batch: 2}"},
                                           shipped_options()));
    if (study.model.tables_behind() > 0) continue;
    const auto cluster = value_of(cluster_of(study));
    const auto step_of = [&](program::Program program) {
      const auto placed = with_launch_times(study.pool.placed(std::move(program)), cluster);
      return value_of(simulated(study, cluster, placed, {})).step;
    };
    auto options = transformer_options(study.strategy);
    options.capacity_factor = study.strategy.expert_slots(study.model);
    const Graph graph = transformer_graph(study.model, options);
    auto lowered = value_of(lower::lower_graph(graph, study.strategy, {.batch = options.batch}));
    auto program = value_of(lower::lower(study.model, study.strategy, {}));
    EXPECT_NEAR(step_of(std::move(lowered.program)) / step_of(std::move(program)), 1, 1e-9)
        << study.model.name;
    ++compared;
  }
  EXPECT_GE(compared, 25);
}

}  // namespace foreshard::study::graph_study_test
