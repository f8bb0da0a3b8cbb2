#include "tests/strategies/lower/random_strategy.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/check.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/schedule/schedule.h"

namespace foreshard {
namespace {

class Draw {
 public:
  explicit Draw(std::mt19937& random) : random_(random) {}
  std::int64_t from(std::initializer_list<std::int64_t> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(random_() % choices.size()));
  }
  bool chance() { return random_() % 2 == 0; }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937& random_;
};

// What few families have.
void variants_of(Model& model, Draw& draw) {
  model.norm = std::array{Norm::kLayerNorm, Norm::kRmsNorm, Norm::kLayerNormScale,
                          Norm::kLayerNormPlain}[draw.random()() % 4];
  model.branches = std::array{Branches::kSequential, Branches::kParallel,
                              Branches::kParallelOneNorm}[draw.random()() % 3];
  if (model.branches == Branches::kSequential)
    model.norm_places =
        std::array{NormPlaces::kBefore, NormPlaces::kAfter, NormPlaces::kBoth}[draw.random()() % 3];
  model.qk_norm =
      std::array{QkNorm::kNone, QkNorm::kPerHead, QkNorm::kEveryHead}[draw.random()() % 3];
  model.attention_out_bias = draw.chance();
  model.head_bias = draw.chance();
  model.embedding_norm = draw.chance();
  model.position_table = draw.from({0, 8, 10});
}

Model random_model(Draw& draw) {
  Model model{.name = "random", .source = ""};
  model.layers = draw.from({1, 2, 3, 4, 6});
  model.heads = draw.from({4, 8});
  model.kv_heads = draw.chance() ? 0 : 4;
  model.hidden = model.heads * draw.from({2, 4});
  model.head_dim = draw.from({0, 0, 4});
  model.ffn = draw.from({0, 24});
  model.vocabulary = draw.from({10, 64});
  model.sequence = draw.from({4, 8});
  model.norm = draw.chance() ? Norm::kLayerNorm : Norm::kRmsNorm;
  model.activation = draw.chance() ? Activation::kGelu : Activation::kSwiglu;
  model.positions = draw.chance() ? Positions::kLearned : Positions::kRotary;
  model.bias = draw.chance();
  model.qkv_bias = draw.chance();
  model.tied_embeddings = draw.chance();
  model.dropout = draw.chance();
  model.attention_bias = draw.chance();
  model.mlp_bias = draw.chance();
  if (draw.chance()) variants_of(model, draw);
  return model;
}

Framework random_framework(Draw& draw) {
  Framework framework;
  framework.attention =
      draw.chance() ? AttentionImplementation::kFlash2 : AttentionImplementation::kUnfused;
  framework.fused_gradient_accumulation = draw.chance();
  framework.weights_at_activation = framework.fused_gradient_accumulation;
  framework.quantized_dispatch = framework.fused_gradient_accumulation;
  framework.quantized_expert_inputs = framework.fused_gradient_accumulation;
  framework.gradient_dtype = draw.chance() ? DType::kFp32 : DType::kBf16;
  framework.gradient_reduction =
      draw.chance() ? GradientReduction::kAfterBackward : GradientReduction::kOverlapped;
  framework.overlap_parameter_gather = draw.chance();
  framework.overlap_tensor_gradients = draw.chance();
  framework.pipeline_transfers =
      draw.chance() ? PipelineTransfers::kBlocking : PipelineTransfers::kOverlapped;
  framework.pipeline_host_sync = draw.chance();
  framework.pipeline_scatter_gather = draw.chance();
  const auto prefetch = [&] {
    return draw.chance() ? Prefetch::kPre : draw.chance() ? Prefetch::kPost : Prefetch::kNone;
  };
  framework.shards = {.forward_prefetch = prefetch(),
                      .backward_prefetch = prefetch(),
                      .fp32 = draw.chance(),
                      .copied_out = draw.chance()};
  const auto other = [&] { return draw.chance() ? OtherKernels::kFused : OtherKernels::kEager; };
  framework.pointwise = {
      .norm = draw.chance()   ? NormKernels::kFused
              : draw.chance() ? NormKernels::kRecomputedFp32
                              : NormKernels::kEager,
      .rope = other(),
      .activation = other(),
      .cross_entropy = draw.chance()   ? LossKernels::kFused
                       : draw.chance() ? LossKernels::kRecomputed
                                       : LossKernels::kEager,
      .routing = framework.weights_at_activation ? OtherKernels::kEager : OtherKernels::kFused};
  framework.pointwise.expert_bias = framework.pointwise.clamp = framework.pointwise.routing;
  framework.counts_tokens_on_host = framework.fused_gradient_accumulation;
  framework.optimizer = draw.chance() ? OptimizerKernels::kFused : OptimizerKernels::kLoop;
  framework.gradient_clipping = draw.chance();
  framework.vocabulary_multiple = draw.from({1, 8});
  framework.shards.experts = draw.chance();
  return framework;
}

}  // namespace

Training random_training(std::mt19937& random, std::int64_t max_devices) {
  Draw draw(random);
  Training training{.model = random_model(draw), .strategy = {}};
  Strategy& s = training.strategy;
  do {
    s.tensor_parallel = draw.from({1, 2, 4});
    s.pipeline_parallel = draw.from({1, 1, 2, 3, 4});
    s.data_parallel = draw.from({1, 2, 3, 4, 8});
  } while (s.devices() > max_devices);
  s.sequence_parallel = draw.chance();
  s.schedule = draw.chance() ? "1f1b" : "gpipe";
  std::int64_t micro_batches = draw.from({1, 2, 3, 5});
  if (s.pipeline_parallel > 1 && draw.chance()) {
    s.schedule = "interleaved";
    s.virtual_stages = draw.from({2, 3});
    micro_batches = s.pipeline_parallel * draw.from({1, 2});
  }
  s.micro_batch = draw.from({1, 2});
  s.global_batch = micro_batches * s.micro_batch * s.data_parallel;
  // Layers fall where they will; some stages get none.
  s.layers_per_stage.assign(static_cast<std::size_t>(s.stages()), 0);
  for (std::int64_t layer = 0; layer < training.model.layers; ++layer)
    ++s.layers_per_stage[random() % s.layers_per_stage.size()];
  if (training.model.layers % s.stages() == 0 && draw.chance()) s.layers_per_stage.clear();
  s.zero_stage = draw.from({0, 1, 2, 3});
  s.recompute = std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[random() % 3];
  s.precision = std::array{DType::kBf16, DType::kFp16, DType::kFp32}[random() % 3];
  std::shuffle(s.rank_order.begin(), s.rank_order.end(), random);
  s.framework.value = random_framework(draw);
  FORESHARD_CHECK(faults_in(s, training.model, s.devices()).empty());
  return training;
}

void replicate_shards(Strategy& strategy, unsigned i) {
  if (strategy.zero_stage == 0 || i % 2 == 0) return;
  for (const std::int64_t sets : {2, 3, 4})
    if (strategy.data_parallel % sets == 0 && strategy.data_parallel > sets)
      strategy.shard_replicas = sets;
}

void give_context(Training& training, unsigned i) {
  if (i % 4 != 1) return;
  Strategy& s = training.strategy;
  s.context_parallel = i % 3 == 0 ? 4 : 2;
  training.model.sequence *= s.context_parallel;
  training.model.position_table *= s.context_parallel;
  const bool divides = training.model.kv() % (s.tensor_parallel * s.context_parallel) == 0;
  const bool fused = s.framework->attention != AttentionImplementation::kUnfused;
  if (!fused || (divides && i % 8 == 1)) s.context_exchange = ContextExchange::kAllToAll;
  if (!fused && !divides) {
    s.context_parallel = 1;
    s.context_exchange = ContextExchange::kAllGather;
  }
  if (s.context_parallel > 1 && s.context_exchange == ContextExchange::kAllGather && i % 16 < 8) {
    s.context_exchange = ContextExchange::kRing;
    if (s.context_parallel == 4 && training.model.kv() % (2 * s.tensor_parallel) == 0)
      s.context_heads = 2;
  }
  FORESHARD_CHECK(faults_in(s, training.model, s.devices()).empty());
}

void reschedule(Training& training, unsigned i) {
  Strategy& s = training.strategy;
  if (i % 3 != 1 || s.pipeline_parallel == 1) return;
  std::mt19937 random(i);
  Draw draw(random);
  constexpr std::array kNames{"breadth-first", "dualpipe-v", "v-half", "v-min", "zb-1p",
                              "zb-2p",         "zb-h1",      "zb-h2",  "zb-v"};
  const Strategy plain = s;
  for (int attempt = 0; attempt < 8; ++attempt) {
    s = plain;
    s.schedule = kNames[random() % kNames.size()];
    const schedule::Schedule& known = *schedule::find_schedule(s.schedule);
    s.virtual_stages = known.fewest_chunks;
    if (known.goes_by_times && draw.chance()) s.pass_times = {2, 3, 1};
    const std::int64_t micro_batches =
        s.schedule == "dualpipe-v" ? 2 * s.pipeline_parallel : draw.from({1, 2, 3, 5});
    s.global_batch = micro_batches * s.micro_batch * s.data_parallel;
    s.layers_per_stage.assign(static_cast<std::size_t>(s.stages()), 0);
    for (std::int64_t layer = 0; layer < training.model.layers; ++layer)
      ++s.layers_per_stage[random() % s.layers_per_stage.size()];
    if (faults_in(s, training.model, s.devices()).empty()) return;
  }
  s = plain;
}

void give_experts(Training& training, unsigned i) {
  if (i % 3 != 0) return;
  std::mt19937 random(i);
  Draw draw(random);
  Model& model = training.model;
  model.bias = model.mlp_bias = false;
  model.experts = draw.from({4, 8});
  model.experts_per_token = draw.from({1, 2, 3});
  model.expert_ffn = draw.from({0, 8});
  model.shared_ffn = draw.from({0, 8});
  model.dense_layers = draw.from({0, 0, 1});
  model.expert_interval = draw.from({1, 2});
  if (!model.has_expert_layers()) model.dense_layers = 0, model.expert_interval = 1;
  if (!model.has_dense_layers() && model.expert_ffn > 0) model.ffn = 0;
  FORESHARD_CHECK(checked(model).has_value());
  Strategy& strategy = training.strategy;
  strategy.capacity_factor =
      static_cast<double>(model.experts) / static_cast<double>(model.experts_per_token);
  const Strategy plain = strategy;
  for (int attempt = 0; attempt < 8; ++attempt) {
    strategy.expert_parallel = draw.from({1, 2, 4, 8});
    strategy.expert_tensor_parallel = draw.from({0, 1, 2});
    if (faults_in(strategy, model, strategy.devices()).empty()) return;
  }
  strategy = plain;
  FORESHARD_CHECK(faults_in(strategy, model, strategy.devices()).empty());
}

void overlap_exchanges(Training& training, unsigned i) {
  Strategy& strategy = training.strategy;
  if (i % 2 == 0 || strategy.expert_parallel == 1) return;
  const Strategy plain = strategy;
  strategy.overlap_experts = true;
  strategy.zero_stage = std::min<std::int64_t>(strategy.zero_stage, 2);
  if (strategy.pipeline_parallel == 1) strategy.schedule = "1f1b";
  if (!faults_in(strategy, training.model, strategy.devices()).empty()) strategy = plain;
}

void give_adapters(Training& training, unsigned i) {
  if ((i % 3 != 1 && i % 15 != 0) || training.model.has_latents()) return;
  std::mt19937 random(i);
  Draw draw(random);
  Adapters adapters{.rank = draw.from({4, 8}), .targets = {}, .dropout = draw.chance()};
  for (const AdapterTarget target : {AdapterTarget::kQkv, AdapterTarget::kAttentionOut,
                                     AdapterTarget::kMlpUp, AdapterTarget::kMlpDown}) {
    const bool is_dense = target == AdapterTarget::kMlpUp || target == AdapterTarget::kMlpDown;
    if (draw.chance() && !(is_dense && training.model.experts > 0))
      adapters.targets.push_back(target);
  }
  if (adapters.targets.empty()) adapters.targets = {AdapterTarget::kQkv};
  training.model.adapters = std::move(adapters);
  FORESHARD_CHECK(checked(training.model).has_value());
  FORESHARD_CHECK(
      faults_in(training.strategy, training.model, training.strategy.devices()).empty());
}

void give_predictions(Training& training, unsigned i) {
  std::mt19937 random(i);
  Draw draw(random);
  Model& model = training.model;
  if (model.adapters || draw.chance()) return;
  model.multi_token_prediction = draw.from({1, 1, 2});
  model.embedding_norm = false;
  if (model.positions == Positions::kLearned) model.positions = Positions::kRotary;
  model.position_table = 0;
  // Centred norms of two values that are nearly equal amplify rounding, and layers follow on
  // layers.
  if (model.head_size() == 2) model.qk_norm = QkNorm::kNone;
  FORESHARD_CHECK(checked(model).has_value());
  FORESHARD_CHECK(
      faults_in(training.strategy, training.model, training.strategy.devices()).empty());
}

void part_gates(Training& training, unsigned i) {
  if (i % 4 < 2 && !training.model.adapters) training.strategy.framework.value.gate_apart = true;
}

void recompute_parts(Training& training, unsigned i) {
  if (i % 2 == 0) return;
  std::mt19937 random(i);
  Draw draw(random);
  Strategy& strategy = training.strategy;
  strategy.recompute_layers = draw.from({0, 0, 1, 2});
  strategy.recompute = i % 8 == 3 ? Recompute::kFull : Recompute::kSelective;
  const auto is_sound = [&] {
    return faults_in(strategy, training.model, strategy.devices()).empty();
  };
  if (strategy.recompute == Recompute::kSelective) {
    std::vector<LayerPart> parts;
    for (auto part = static_cast<int>(LayerPart::kNorm);
         part <= static_cast<int>(LayerPart::kAdapters); ++part) {
      strategy.recompute_parts = {static_cast<LayerPart>(part)};
      if (draw.chance() && is_sound()) parts.push_back(static_cast<LayerPart>(part));
    }
    strategy.recompute_parts = parts.empty() ? usual_recompute_parts() : parts;
  }
  FORESHARD_CHECK(is_sound());
}

void offload(Training& training, unsigned i) {
  if (i % 3 != 2) return;
  std::mt19937 random(i);
  Draw draw(random);
  Strategy& strategy = training.strategy;
  const auto keep_if_sound = [&](const auto& change) {
    const Strategy before = strategy;
    change();
    if (!faults_in(strategy, training.model, strategy.devices()).empty()) strategy = before;
  };
  const std::int64_t layers = draw.from({0, 1, 2, 3});
  keep_if_sound([&] { strategy.offload_activation_layers = layers; });
  const bool on_cpu = draw.chance();
  keep_if_sound([&] {
    strategy.offload_optimizer = on_cpu ? OptimizerOffload::kCpu : OptimizerOffload::kFetch;
  });
  if (draw.chance()) keep_if_sound([&] { strategy.offload_parameters = true; });
  keep_if_sound([&] {
    strategy.offload_optimizer = OptimizerOffload::kCpu;
    strategy.offload_parameters = true;
  });
}

void give_attention(Training& training, unsigned i) {
  if (i % 5 > 1) return;
  std::mt19937 random(i);
  Draw draw(random);
  Model& model = training.model;
  if (i % 5 == 0) {
    const std::int64_t chunk = model.sequence / 2;
    model.window_kind = draw.chance() ? WindowKind::kChunk : WindowKind::kSliding;
    model.window = model.window_kind == WindowKind::kChunk ? chunk : draw.from({1, 2, chunk});
    model.full_interval = model.layers > 1 ? draw.from({0, 2}) : 0;
    model.full_layers = model.layers > 1 ? draw.from({0, 1}) : 0;
    if (model.full_layers == 1 && model.layers == 2) model.full_interval = 0;
    model.sinks = draw.chance();
    if (model.positions == Positions::kRotary) model.unrotated_interval = draw.from({0, 1});
  } else {
    model.kv_heads = 0;
    model.head_dim = 6;
    model.query_rank = draw.from({0, 8});
    model.key_value_rank = 6;
    model.rotary_dim = draw.from({2, 4});
    model.value_dim = draw.from({4, 6});
    model.positions = Positions::kRotary;
    model.position_table = 0;
    model.qk_norm = QkNorm::kNone;
    model.mlp_bias = model.mlp_bias || model.bias;
    model.bias = model.qkv_bias = model.attention_bias = false;
  }
  FORESHARD_CHECK(checked(model).has_value());
  Strategy& strategy = training.strategy;
  if (strategy.framework->attention == AttentionImplementation::kUnfused)
    strategy.framework.value.attention = AttentionImplementation::kFused;
  const bool ring = strategy.context_exchange == ContextExchange::kRing;
  if (model.sinks || (model.has_latents() && !ring) || (model.window > 0 && ring))
    strategy.context_exchange = ContextExchange::kAllGather;
  if (model.sinks || model.has_latents() || model.window > 0) strategy.context_heads = 1;
  FORESHARD_CHECK(faults_in(strategy, model, strategy.devices()).empty());
}

void fine_tune(Training& training, unsigned i) {
  std::mt19937 random(i);
  Draw draw(random);
  const auto keep_if_sound = [&](const auto& change) {
    const Training before = training;
    change(training.model, training.strategy);
    if (!checked(training.model).has_value() ||
        !faults_in(training.strategy, training.model, training.strategy.devices()).empty())
      training = before;
  };
  const std::int64_t first = draw.from({0, 1, 2});
  const std::int64_t last = draw.from({0, 1});
  const bool ends = draw.chance();
  if (training.strategy.quantization != Quantization::kNone)
    keep_if_sound([&](Model&, Strategy& strategy) { strategy.unquantized_layers = {first, last}; });
  if (training.model.adapters) {
    if (ends)
      keep_if_sound([](Model& model, Strategy&) { model.adapters->base = AdapterBase::kNf4; });
  } else if (i % 3 == 0) {
    keep_if_sound([&](Model& model, Strategy&) {
      model.frozen = Frozen{.embedding = ends || last == 1, .layers = first, .head = last == 1};
    });
  }
  if (i % 4 == 2)
    keep_if_sound([&](Model& model, Strategy&) {
      const std::int64_t half = std::max<std::int64_t>(1, model.sequence / 2);
      model.samples = Samples{.lengths = {half, half + 1}, .shares = {0.5, 0.5}};
    });
}

void give_routers(Training& training, unsigned i) {
  Model& model = training.model;
  if (model.experts == 0 || i % 2 == 0) return;
  // Only biases of whole experts are weighted (Megatron refuses the others): a run on one device is
  // to compute what the sharded one does.
  if (expert_tensor_ways(training.strategy) > 1)
    training.strategy.framework.value.pointwise.expert_bias = OtherKernels::kFused;
  model.router = i % 4 == 1 ? Router::kSigmoid : Router::kSoftmax;
  model.router_bias = i % 8 < 4;
  model.mlp_bias = model.shared_ffn == 0;
  model.clamped_activation = model.router_bias && model.activation == Activation::kSwiglu;
  model.shared_gate = model.shared_ffn > 0;
  FORESHARD_CHECK(checked(model).has_value());
}

void quantize(Strategy& strategy, unsigned i) {
  if (size_of(strategy.precision) != 2_B || i % 3 == 0) return;
  strategy.quantization = std::array{Quantization::kFp8Delayed, Quantization::kFp8Current,
                                     Quantization::kFp8Block, Quantization::kMxFp8}[i % 4];
  strategy.quantized_parameters = i % 5 < 2;
}

std::string describe(const Training& training) {
  const Strategy& s = training.strategy;
  const Framework& f = *s.framework;
  std::string text = "tp " + std::to_string(s.tensor_parallel) + (s.sequence_parallel ? "+sp" : "");
  text += " pp " + std::to_string(s.pipeline_parallel) + " (" + s.schedule +
          (s.overlap_experts ? " in pairs x " : " x ") + std::to_string(s.virtual_stages) +
          ") dp " + std::to_string(s.data_parallel) + " zero " + std::to_string(s.zero_stage) +
          " over " + std::to_string(s.shards()) + " micro-batches " +
          std::to_string(s.micro_batches()) + " recompute " + words_of_recomputation(s) +
          " layers " + std::to_string(training.model.layers) + " [";
  for (const std::int64_t n : s.layers_per_stage) text += std::to_string(n) + " ";
  text += "]";
  if (s.quantization != Quantization::kNone)
    text +=
        fmt::format(" {}{}", yaml::name_of(s.quantization), s.quantized_parameters ? " alone" : "");
  if (const Model& model = training.model; model.experts > 0)
    text +=
        fmt::format(" experts {} of {} (shared {}, dense {}, every {}) ep {} etp {}",
                    model.experts_per_token, model.experts, model.shared_ffn, model.dense_layers,
                    model.expert_interval, s.expert_parallel, s.expert_tensor_parallel);
  if (training.model.adapters)
    text += fmt::format(" adapters {} at {}{}", training.model.adapters->rank,
                        training.model.adapters->targets.size(),
                        training.model.adapters->dropout ? " dropped out" : "");
  if (training.model.multi_token_prediction > 0)
    text += fmt::format(" predictions {}", training.model.multi_token_prediction);
  if (training.model.tied_embeddings) text += " tied";
  if (f.gradient_reduction == GradientReduction::kOverlapped) text += " reduce-overlapped";
  if (f.pipeline_transfers == PipelineTransfers::kBlocking) text += " blocking";
  if (f.overlap_parameter_gather) text += " gather-early";
  for (const std::string& axis : s.rank_order) text += " " + axis;
  return text;
}

}  // namespace foreshard
