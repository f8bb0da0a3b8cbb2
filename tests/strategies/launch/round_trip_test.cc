// The contract of every format: what `export_launch` writes, `import_launch` reads as the same
// strategy (and model), and what it does not write is refused with a key of ours. Random
// strategies, those that a model allows.

#include "base/yaml/describe.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/launch/launches.h"
#include "tests/test.h"

#include "strategies/launch/abilities.h"

namespace foreshard::launch {
namespace {

constexpr int kTries = 1000;

Model dense() {
  return written_model(
      "name: dense, layers: 24, hidden: 1024, heads: 16, kv_heads: 8, ffn: 4096, vocabulary: "
      "32000, sequence: 2048, norm: rms-norm, activation: swiglu, positions: rotary, bias: false, "
      "tied_embeddings: false, dropout: false");
}

Model sparse() {
  Model model = dense();
  model.experts = 16;
  model.experts_per_token = 2;
  model.expert_ffn = 512;
  return model;
}

class Choice {
 public:
  explicit Choice(unsigned seed) : random_(seed) {}
  template <class T>
  T of(std::initializer_list<T> all) {
    return *(all.begin() + static_cast<std::ptrdiff_t>(random_() % all.size()));
  }
  bool rarely() { return random_() % 8 == 0; }

 private:
  std::mt19937 random_;
};

Strategy random_strategy(Choice& choose, bool has_experts) {
  Strategy s;
  s.tensor_parallel = choose.of<std::int64_t>({1, 1, 2, 4});
  s.pipeline_parallel = choose.of<std::int64_t>({1, 1, 2, 4});
  s.data_parallel = choose.of<std::int64_t>({1, 2, 4, 8});
  s.context_parallel = choose.of<std::int64_t>({1, 1, 1, 2, 4});
  if (s.context_parallel > 1)
    s.context_exchange = choose.of({ContextExchange::kAllGather, ContextExchange::kAllToAll,
                                    ContextExchange::kOverlappedAllGather, ContextExchange::kRing});
  if (s.context_parallel == 4 && s.context_exchange == ContextExchange::kRing)
    s.context_heads = choose.of<std::int64_t>({1, 2});
  s.sequence_parallel = choose.of({true, false});
  s.zero_stage = choose.of<std::int64_t>({0, 1, 2, 3});
  if (s.zero_stage > 0) s.shard_replicas = choose.of<std::int64_t>({1, 1, 2});
  s.recompute = choose.of({Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  s.precision = choose.of({DType::kBf16, DType::kBf16, DType::kFp16, DType::kFp32});
  if (s.precision != DType::kFp32 && choose.rarely()) {
    s.quantization = choose.of({Quantization::kFp8Delayed, Quantization::kFp8Current,
                                Quantization::kFp8Block, Quantization::kMxFp8});
    s.quantized_parameters = choose.of({true, false});
    if (choose.rarely()) s.unquantized_layers = {choose.of<std::int64_t>({0, 1, 2}), 1};
  }
  if (s.pipeline_parallel > 1 && choose.rarely()) s.schedule = "gpipe";
  if (s.pipeline_parallel > 1 && choose.of({true, false, false})) {
    s.schedule = "interleaved";
    s.virtual_stages = choose.of<std::int64_t>({2, 3});
  }
  if (s.pipeline_parallel == 4 && s.virtual_stages == 1 && choose.rarely())
    s.layers_per_stage = choose.of<std::vector<std::int64_t>>({{5, 7, 7, 5}, {4, 6, 8, 6}});
  if (s.pipeline_parallel == 2 && s.virtual_stages == 2 && choose.rarely())
    s.layers_per_stage = {5, 7, 6, 6};
  if (s.recompute == Recompute::kFull && choose.rarely()) s.recompute_layers = 1;
  if (s.recompute == Recompute::kSelective && choose.rarely())
    s.recompute_parts =
        choose.of<std::vector<LayerPart>>({{LayerPart::kNorm},
                                           {LayerPart::kNorm, LayerPart::kCoreAttention},
                                           {LayerPart::kActivation}});
  if (choose.rarely()) s.rank_order = {"tensor", "pipeline", "data"};
  if (has_experts) {
    s.expert_parallel = choose.of<std::int64_t>({1, 2, 4, 8});
    if (s.tensor_parallel > 1) s.expert_tensor_parallel = choose.of<std::int64_t>({0, 1});
    if (choose.rarely()) s.capacity_factor = 1.5;
  }
  if (choose.rarely())
    s.cuda_graphs =
        choose.of<std::vector<Capture>>({{Capture::kAttention},
                                         {has_experts ? Capture::kRouter : Capture::kMlp},
                                         {Capture::kStep}});
  // Of what few formats can say, one at a time.
  const int special = choose.of({0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5});
  if (special == 1) s.offload_activation_layers = choose.of<std::int64_t>({1, 2, 5});
  if (special == 2)
    s.offload_optimizer = choose.of({OptimizerOffload::kCpu, OptimizerOffload::kFetch});
  if (special == 3 && s.zero_stage == 3) {
    s.offload_optimizer = OptimizerOffload::kCpu;
    s.offload_parameters = true;
  }
  if (special == 4) s.optimizer.rule = choose.of({"adam-8bit", "lamb", "muon", "sgd"});
  if (special == 5) {
    s.optimizer.first_moment = choose.of({DType::kFp32, DType::kBf16, DType::kFp8});
    s.optimizer.second_moment = choose.of({DType::kBf16, DType::kFp16});
    if (s.precision == DType::kBf16) s.optimizer.remainders = choose.of({true, true, false});
    if (!s.optimizer.remainders && s.precision != DType::kFp32)
      s.optimizer.master = choose.of({DType::kFp32, DType::kFp16});
  }
  s.micro_batch = choose.of<std::int64_t>({1, 2, 4});
  s.global_batch = s.micro_batch * s.data_parallel * choose.of<std::int64_t>({4, 8, 12});
  return s;
}

// With the sizes that follow from others written out.
std::string model_text(Model model) {
  model.kv_heads = model.kv();
  model.head_dim = model.head_size();
  model.position_table = model.position_rows();
  model.ffn = model.ffn_width();
  model.name = "model";
  model.source = "";
  return yaml::echo(model);
}

std::string strategy_text(Strategy strategy) {
  strategy.framework = {};
  if (has_usual_order(strategy)) strategy.rank_order = Strategy{}.rank_order;
  return yaml::echo(strategy);
}

struct Form {
  std::string name;
  std::string framework;
  Settled elsewhere{};  ///< Keys of ours that the test says beside the file.
  bool has_model = false;
  bool has_reduction = false;  ///< Whether gradient reduction is in the file.
};

std::vector<Form> forms() {
  return {
      {.name = "megatron", .framework = "megatron-lm", .has_model = true, .has_reduction = true},
      {.name = "megatron-bridge", .framework = "megatron-lm", .has_model = true},
      {.name = "nemo", .framework = "megatron-lm", .has_model = true, .has_reduction = true},
      {.name = "deepspeed", .framework = "deepspeed-zero3", .has_reduction = true},
      {.name = "torchtitan", .framework = "torchtitan"},
      {.name = "accelerate", .framework = "pytorch-fsdp"}};
}

Settled said_elsewhere(const std::string& form, const Strategy& strategy) {
  const std::string recompute(yaml::name_of(strategy.recompute));
  if (form == "deepspeed") return {{"strategy.recompute", recompute}};
  if (form == "accelerate")
    return {{"strategy.micro_batch", std::to_string(strategy.micro_batch)},
            {"strategy.global_batch", std::to_string(strategy.global_batch)}};
  return {};
}

void expect_round_trip(const Form& form, const Strategy& strategy, const Model& model,
                       const Exported& exported) {
  const auto back = import_text(exported.text, strategy.devices(),
                                said_elsewhere(form.name, strategy), form.name);
  ASSERT_TRUE(back) << back.error().message << "\n" << exported.text << describe(strategy);
  const auto read = loaded<Strategy>(back->strategy);
  EXPECT_EQ(strategy_text(read), strategy_text(strategy)) << form.name << "\n" << exported.text;
  if (form.has_reduction) {
    EXPECT_EQ(read.framework->gradient_reduction, strategy.framework->gradient_reduction)
        << exported.text;
  }
  if (form.has_model && exported.has_model) {
    EXPECT_EQ(model_text(loaded<Model>(back->model)), model_text(model)) << exported.text;
  }
}

TEST(LaunchFormats, ReadBackWhatTheyWrite) {
  yaml::Loader loader(shipped_options());
  for (const Form& form : forms()) {
    const auto framework = value_of(loader.read_ref<Framework>(form.framework));
    Choice choose(7);
    int sound = 0;
    int written = 0;
    std::map<std::string, int> refusals;
    for (int i = 0; i < kTries; ++i) {
      Model model = i % 2 == 0 ? dense() : sparse();
      if (i % 4 == 1 && form.name.starts_with("megatron")) model.multi_token_prediction = 1;
      Strategy strategy = random_strategy(choose, model.experts > 0);
      Framework facts = framework;
      facts.gradient_reduction =
          choose.of({GradientReduction::kOverlapped, GradientReduction::kAfterBackward});
      strategy.framework = {.value = facts, .name = form.framework};
      if (!faults_in(strategy, model, strategy.devices()).empty()) continue;
      ++sound;
      // Experts of NeMo 1 have the width of the feed-forward layer.
      const bool with_model = form.has_model && (form.name != "nemo" || model.experts == 0);
      const auto exported = export_launch(form.name, strategy, with_model ? &model : nullptr);
      if (!exported) {
        EXPECT_THAT(exported.error().message, StartsWith("error: strategy."));
        ++refusals[exported.error().message];
        continue;
      }
      ++written;
      expect_round_trip(form, strategy, model, *exported);
      if (HasFailure()) return;
    }
    EXPECT_GT(sound, kTries / 20) << form.name;
    EXPECT_GT(written, sound / 20) << form.name;
    EXPECT_GT(refusals.size(), 1U) << form.name;
  }
}

// Every file that is read comes back, too, from what is written of it.
TEST(LaunchFormats, WriteWhatTheyRead) {
  const Settled batch{{"strategy.micro_batch", "1"}, {"strategy.global_batch", "64"}};
  for (const auto& [file, devices, settled] :
       {std::tuple<std::string, int, Settled>{"pretrain-llama3-70b.sh", 64, {}},
        {"mixtral.args", 128, {}},
        {"llama3-8b.toml", 64, {}},
        {"zero3.json", 64, {{"strategy.recompute", "none"}}},
        {"fsdp2.yaml", 32, batch},
        {"accelerate-megatron.yaml", 16, batch},
        {"nemo-gpt.yaml", 32, {}},
        {"bridge.yaml", 64, {}}}) {
    const auto run = value_of(import_text(launch_file(file), devices, settled));
    const auto strategy = loaded<Strategy>(run.strategy);
    const bool described = !run.model.empty() && run.missing.empty();
    const auto model = described ? loaded<Model>(run.model) : Model{};
    const auto exported =
        value_of(export_launch(run.format, strategy, described ? &model : nullptr), file);
    const auto again = import_text(exported.text, devices, settled);
    ASSERT_TRUE(again) << file << ": " << again.error().message << exported.text;
    auto read = loaded<Strategy>(again->strategy);
    read.framework.name = strategy.framework.name;  // written out, or by reference
    EXPECT_EQ(yaml::echo(read), yaml::echo(strategy)) << exported.text;
  }
}

TEST(LaunchFormats, NameTheKeysThatTheyCannotSay) {
  Strategy strategy;
  strategy.schedule = "gpipe";
  strategy.pipeline_parallel = 2;
  strategy.capacity_factor = 2;
  EXPECT_EQ(message_of(export_launch("deepspeed", strategy, nullptr)),
            "error: strategy.capacity_factor: deepspeed cannot say '2'\n"
            "error: strategy.pipeline_parallel: deepspeed cannot say '2'\n"
            "error: strategy.schedule: deepspeed cannot say 'gpipe'");
  Model model = dense();
  model.branches = Branches::kParallel;
  EXPECT_EQ(message_of(export_launch("megatron", Strategy{}, &model)),
            "error: model.branches: megatron cannot say 'parallel'");
  model = dense();
  model.multi_token_prediction = 1;
  EXPECT_THAT(export_launch("nemo", Strategy{}, &model).error().message,
              HasSubstr("error: model.multi_token_prediction: nemo cannot say '1'"));
  EXPECT_THAT(export_launch("pytorch", strategy, nullptr).error().message,
              HasSubstr("there is no format 'pytorch'"));
}

}  // namespace
}  // namespace foreshard::launch
