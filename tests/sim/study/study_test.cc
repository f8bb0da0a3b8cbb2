#include "sim/study/study.h"

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/alternatives.h"
#include "sim/study/run.h"

namespace foreshard::study::study_test {

const yaml::Options kCatalogue{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};

yaml::Options with(std::vector<yaml::Override> overrides) {
  yaml::Options options = kCatalogue;
  options.overrides = std::move(overrides);
  return options;
}

constexpr const char* kParts =
    "cluster: {name: box, node: dgx-a100-80gb}\n"
    "model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n";

std::string study_with(const std::string& strategy) {
  return std::string(kParts) + "strategy: " + strategy + "\n";
}

constexpr const char* kSound = "{tensor_parallel: 2, data_parallel: 4, global_batch: 16}";

std::string refusal(const StudyFiles& files, yaml::Options options = kCatalogue) {
  return message_of(load_study(files, std::move(options)));
}

TEST(Study, IsReadWithWhatItRefersTo) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.yaml", study_with(kSound));
  const auto study = value_of(load_study({.study = file}, kCatalogue));
  EXPECT_EQ(study.name, "mine");
  EXPECT_EQ(study.cluster.device_count(), 8);
  EXPECT_EQ(study.strategy.tensor_parallel, 2);
  EXPECT_FALSE(study.communication.forms.empty());  // kDefaultCommunication
  EXPECT_EQ(study.inputs.front().path, file.string());
}

Result<program::Program> program_of_file(const std::filesystem::path& file) {
  FORESHARD_ASSIGN(const auto study, load_study({.study = file}, kCatalogue));
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  return program_of(study, cluster);
}

// Two hosts, the second slower: ranks 0 to 7 launch in 2 us, 8 to 15 in 9 us, and what the
// framework does for each kernel comes on top.
TEST(Study, EachRankHasTheLaunchTimeOfItsHost) {
  const TemporaryFolder folder;
  const auto host = [](const char* time) {
    return std::string("{nodes: 1, node: {extends: dgx-a100-80gb, host: {launch_time: {value: ") +
           time +
           ", source: test, evidence: user}, speed: {value: 1, source: test, evidence: "
           "user}}}}";
  };
  const auto file =
      folder.write("mine.yaml", "cluster: {groups: [" + host("2 us") + ", " + host("9 us") +
                                    "], fabric: {kind: single-switch}}\nmodel: gpt-1.7b\n"
                                    "strategy: {data_parallel: 16, global_batch: 16,\n"
                                    "  framework: {name: eager, host_time: 10 us}}\n");
  const auto program = value_of(program_of_file(file));
  EXPECT_EQ(program.launch_time, 10_us + 9_us);
  for (std::int32_t rank = 0; rank < 16; ++rank)
    EXPECT_EQ(program.launch_time_of(rank), 10_us + (rank < 8 ? 2_us : 9_us));
}

// A host of half the speed takes twice as long for what the framework does, and as long to launch.
TEST(Study, SlowHostsTakeLongerForWhatFrameworksDo) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "mine.yaml",
      "cluster: {nodes: 1, node: {extends: dgx-h100, host: {speed: {value: 0.5, source: test, "
      "evidence: user}}}}\nmodel: gpt-1.7b\nstrategy: {data_parallel: 8, global_batch: 8,\n"
      "  framework: {name: eager, host_time: 10 us}}\n");
  EXPECT_EQ(value_of(program_of_file(file)).launch_time, 5_us + 20_us);
}

TEST(Study, PartsOnTheCommandLineTakeThePlaceOfItsOwn) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.yaml", study_with(kSound));
  const auto study = value_of(
      load_study({.study = file, .cluster = {}, .model = "gpt-1.7b", .strategy = {}}, kCatalogue));
  EXPECT_EQ(study.model.name, "GPT 1.7B");
}

TEST(Study, MayBeMadeOfPartsAlone) {
  const auto study = value_of(load_study(
      {.study = {}, .cluster = "two-dgx-a100", .model = "gpt-1.7b", .strategy = "fsdp-64"},
      with({{"strategy.data_parallel", "16"}, {"strategy.global_batch", "16"}})));
  EXPECT_EQ(study.name, "GPT 1.7B on two-dgx-a100");
}

// Rows of torch.distributed.pipelining, one for each rank: this is ZB-H1 of two stages.
TEST(Study, ReadsAScheduleBesideIt) {
  const TemporaryFolder folder;
  folder.write("zb.csv", "0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1I0,1F1,1I1,1W0,1W1\n");
  const std::string parts = "pipeline_parallel: 2, data_parallel: 4, global_batch: 8, ";
  const auto step = [&](const std::string& schedule) {
    const auto file = folder.write("mine.yaml", study_with("{" + parts + schedule + "}"));
    const auto study = value_of(load_study({.study = file}, kCatalogue));
    return value_of(run_study(study, {})).prediction.step;
  };
  EXPECT_EQ(step("schedule: custom, schedule_file: zb.csv"), step("schedule: zb-h1"));
  EXPECT_NE(step("schedule: zb-h1"), step("schedule: 1f1b"));
}

TEST(Study, ReadsAHuggingFaceConfigBesideIt) {
  const TemporaryFolder folder;
  folder.write("llama/config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                   "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16,
                   "num_hidden_layers": 8, "num_key_value_heads": 8, "vocab_size": 32000,
                   "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
                   "hidden_act": "silu", "tie_word_embeddings": false})");
  const auto file = folder.write("mine.yaml",
                                 "cluster: {name: box, node: dgx-a100-80gb}\n"
                                 "huggingface: {config: llama/config.json, sequence: 1024}\n"
                                 "strategy: {data_parallel: 8, global_batch: 8}\n");
  const auto study = value_of(load_study({.study = file}, kCatalogue));
  EXPECT_EQ(study.model.name, "llama");
  EXPECT_EQ(study.model.kv_heads, 8);
  EXPECT_EQ(study.model.sequence, 1024);
  EXPECT_EQ(study.inputs.back().path, (folder.path() / "llama/config.json").string());
}

TEST(Study, TakesAFolderWithAConfigAsItsModel) {
  const TemporaryFolder folder;
  const auto config = [](int window) {
    return R"({"model_type": "mistral", "hidden_size": 1024, "intermediate_size": 2816,
               "num_attention_heads": 16, "num_hidden_layers": 8, "num_key_value_heads": 8,
               "vocab_size": 32000, "sliding_window": )" +
           std::to_string(window) + "}";
  };
  folder.write("m/config.json", config(4096));
  const auto write = [&](const std::string& model) {
    return folder.write("mine.yaml", "cluster: {name: box, node: dgx-a100-80gb}\nmodel: " + model +
                                         "\nstrategy: {data_parallel: 8, global_batch: 8}\n");
  };
  for (const char* model : {"./m", "m/config.json", "'m'   # a folder"}) {
    const auto study = value_of(load_study({.study = write(model)}, kCatalogue));
    EXPECT_EQ(study.model.name, "m");
    EXPECT_EQ(study.model.kv_heads, 8);
  }
  folder.write("m/config.json", config(1024));
  const auto file = write("./m");
  EXPECT_EQ(value_of(load_study({.study = file}, kCatalogue)).model.window, 1024);
  EXPECT_EQ(refusal({.study = file}, with({{"huggingface.sequence", "1024"}})), "accepted");
}

// The keys of `huggingface` hold for the folder that `model` or --model names.
TEST(Study, TakesTheLengthOfSamplesBesideAFolder) {
  const TemporaryFolder folder;
  folder.write("m/config.json",
               R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 2816,
                   "num_attention_heads": 16, "num_hidden_layers": 8, "num_key_value_heads": 8,
                   "vocab_size": 32000, "max_position_embeddings": 40960})");
  const auto file = folder.write("mine.yaml",
                                 "cluster: {name: box, node: dgx-a100-80gb}\n"
                                 "model: ./m\n"
                                 "huggingface: {sequence: 8192, name: mine}\n"
                                 "strategy: {data_parallel: 8, global_batch: 8}\n");
  EXPECT_EQ(value_of(load_study({.study = file}, kCatalogue)).model.sequence, 8192);
  const auto sequence_with = [&](const std::string& key, const std::string& value) {
    return value_of(load_study({.study = file}, with({{key, value}}))).model.sequence;
  };
  EXPECT_EQ(sequence_with("model.sequence", "1024"), 1024);
  EXPECT_EQ(sequence_with("huggingface.sequence", "2048"), 2048);
  EXPECT_THAT(refusal({.study = file}, with({{"huggingface.sequence", "1048576"}})),
              HasSubstr("40,960 positions"));
  EXPECT_EQ(refusal({.study = file},
                    with({{"huggingface.sequence", "1048576"}, {"huggingface.extend", "true"}})),
            "accepted");
  EXPECT_THAT(refusal({.study = file}, with({{"model.layers", "4"}})),
              HasSubstr("foreshard check"));

  const auto other =
      value_of(load_study({.study = file, .model = (folder.path() / "m").string()}, kCatalogue));
  EXPECT_EQ(other.model.sequence, 8192);
  EXPECT_EQ(other.model.name, "m");
}

// Transformer Engine has neither FlashAttention nor cuDNN's attention on a V100 (compute capability
// 7.0); PyTorch's scaled_dot_product_attention has its memory-efficient kernel there.
TEST(Study, TakesTheAttentionThatItsDevicesHave) {
  const TemporaryFolder folder;
  const auto loaded = [&](const std::string& device, const std::string& framework) {
    return load_study(
        {.study = folder.write(
             "mine.yaml",
             "cluster: {name: box, node: {device: " + device +
                 ", gpus: 1, pcie: "
                 "{generation: 3}}}\n"
                 "model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: "
                 "1000, sequence: 512}\n"
                 "strategy: {global_batch: 4, precision: fp16, framework: " +
                 framework + "}\n")},
        kCatalogue);
  };
  const auto attention = [&](const std::string& device, const std::string& framework) {
    const auto study = loaded(device, framework);
    EXPECT_TRUE(study) << study.error().message;
    return study ? study->strategy.framework->attention : AttentionImplementation::kFlash3;
  };
  using enum AttentionImplementation;
  EXPECT_EQ(attention("V100-SXM-32GB", "megatron-lm"), kUnfused);
  EXPECT_EQ(attention("V100-SXM-32GB", "megatron-bridge"), kUnfused);  // extends megatron-lm
  EXPECT_EQ(attention("V100-SXM-32GB", "generic"), kFused);
  EXPECT_EQ(attention("A100-SXM-80GB", "megatron-lm"), kCudnn);
  EXPECT_EQ(attention("H100-SXM", "{extends: generic, attention: flash-3}"), kFlash3);
  EXPECT_EQ(attention("H100-SXM", "torchtitan"), kFlash2);
  EXPECT_EQ(attention("B200", "torchtitan"), kCudnn);
  EXPECT_EQ(attention("B200", "{extends: torchtitan, attention: flash-2}"), kFlash2);
  const auto remarks = loaded("V100-SXM-32GB", "megatron-lm")->remarks;
  ASSERT_EQ(remarks.size(), 1);
  EXPECT_THAT(remarks.front(), HasSubstr("needs compute capability 8.0 or more"));
}

TEST(RunStudy, PredictsAStep) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.yaml", study_with(kSound));
  const auto study = value_of(load_study({.study = file}, kCatalogue));
  const auto run = value_of(run_study(study, {}));
  EXPECT_GT(run.prediction.step, 0_s);
  EXPECT_EQ(run.prediction.devices, 8);
  EXPECT_EQ(run.prediction.samples, 16);
}

// Two layers' buffers of 10 and 20 bytes above 100 that stay; the first is freed before the
// second comes, but a third of 5 is still there: 100 + 5 + 20.
TEST(PeakInIssueOrder, IsThatOfTheListOfTasks) {
  program::Program program;
  program::Block block{.name = "layer", .tasks = {}};
  const auto allocate = [&](const char* name, Bytes bytes) {
    block.tasks.push_back(
        {.name = name, .body = program::Allocate{.buffer = name, .bytes = bytes}});
  };
  const auto free = [&](const char* name) {
    block.tasks.push_back({.name = name, .body = program::Free{.buffer = name}});
  };
  allocate("small", 5_B);
  allocate("a", 10_B);
  free("a");
  allocate("b", 20_B);
  free("b");
  free("small");
  program.blocks = {block};
  program::Role role;
  role.memory = {{.kind = program::MemoryKind::kParameters, .bytes = 100_B}};
  role.calls = {{.block = program::BlockId{0}, .repeat = 3}};
  EXPECT_EQ(peak_in_issue_order(program, role), 125_B);
}

// The same on one device of 16: the 15 that no rank has help as tensor ranks, as stages, and as
// replicas that share their state.
TEST(Alternatives, TakeIdleDevicesInUse) {
  const auto study = value_of(load_study(
      {.study = {}, .cluster = "two-dgx-a100", .model = "gpt-7.5b", .strategy = "fsdp-64"},
      with({{"strategy.data_parallel", "1"},
            {"strategy.global_batch", "24"},
            {"strategy.zero_stage", "0"}})));
  const auto cluster = value_of(cluster_of(study));
  std::vector<std::string> fitting;
  for (const Alternative& one : alternatives_to(study, cluster))
    if (one.fits) fitting.push_back(one.change);
  EXPECT_THAT(fitting, testing::IsSupersetOf({"tensor_parallel=4", "pipeline_parallel=4",
                                              "data_parallel=12, zero_stage=3"}));
}

// 7.5 billion parameters in whole on each of 8 devices of 80 GB do not fit; shared, they do.
TEST(Alternatives, AreTriedAndOrderedByTime) {
  const auto study = value_of(load_study(
      {.study = {}, .cluster = "two-dgx-a100", .model = "gpt-7.5b", .strategy = "fsdp-64"},
      with({{"strategy.data_parallel", "16"},
            {"strategy.global_batch", "16"},
            {"strategy.zero_stage", "0"}})));
  const auto cluster = value_of(cluster_of(study));
  const auto alternatives = alternatives_to(study, cluster);
  ASSERT_THAT(alternatives, Not(IsEmpty()));
  bool sharded = false;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Alternative& one = alternatives[i];
    sharded = sharded || (one.change == "zero_stage=3" && one.fits);
    EXPECT_EQ(one.fits, one.peak <= one.capacity - one.reserve) << one.change;
    if (i > 0 && one.fits) {
      EXPECT_TRUE(alternatives[i - 1].fits && alternatives[i - 1].step <= one.step);
    }
  }
  EXPECT_TRUE(sharded);
}

}  // namespace foreshard::study::study_test
