#include "strategies/parallelism/strategy.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace foreshard {
namespace {

// Beyond every machine that can be thought of, and small enough for products of them to be exact.
constexpr double kMaxWays = 1 << 20;
constexpr double kMaxBatch = 1 << 30;

// As equal as possible, the larger ones first: 10 layers on 4 stages are 3 3 2 2.
std::vector<std::int64_t> even_split(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> split;
  for (std::int64_t i = 0; i < stages; ++i)
    split.push_back(layers / stages + (i < layers % stages ? 1 : 0));
  return split;
}

std::string divisors_of(std::int64_t n, std::int64_t limit) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= limit; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return fmt::format("{}", fmt::join(divisors, ", "));
}

void forward_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  if (strategy.zero_stage == 1 || strategy.zero_stage == 2) {
    faults.push_back(
        {"zero_stage",
         fmt::format("ZeRO {} shares optimizer state{}, and mode: forward has none",
                     strategy.zero_stage, strategy.zero_stage == 2 ? " and gradients" : ""),
         "set zero_stage: 0, or 3 to share the parameters"});
  }
  if (strategy.recompute != Recompute::kNone) {
    faults.push_back(
        {"recompute",
         fmt::format("recompute: {} is for a backward pass, and mode: forward has none",
                     yaml::name_of(strategy.recompute)),
         "set recompute: none"});
  }
}

}  // namespace

const yaml::Names<Recompute>& yaml_names(const Recompute*) {
  static const yaml::Names<Recompute> names{
      {"none", Recompute::kNone, "Every activation that the backward pass reads is kept."},
      {"selective", Recompute::kSelective, "Core attention is recomputed."},
      {"full", Recompute::kFull, "Whole layers are recomputed from their inputs."},
  };
  return names;
}

const yaml::Names<Mode>& yaml_names(const Mode*) {
  static const yaml::Names<Mode> names{
      {"train", Mode::kTrain, "Forward, backward, and the update of the parameters."},
      {"forward", Mode::kForward, "Forward alone: evaluation, inference over whole sequences."},
  };
  return names;
}

const yaml::Table<Strategy>& yaml_table(const Strategy*) {
  static const auto table =
      yaml::Table<Strategy>("strategy", "How a training step is divided over devices.")
          .folder("strategies")
          .optional("mode", &Strategy::mode, "What a step consists of.")
          .optional("tensor_parallel", &Strategy::tensor_parallel,
                    "Ways that each layer's matrices are split.", yaml::between(1, kMaxWays))
          .optional("pipeline_parallel", &Strategy::pipeline_parallel,
                    "Ways that the layers are split into stages.", yaml::between(1, kMaxWays))
          .optional("data_parallel", &Strategy::data_parallel,
                    "Replicas, each with its part of the batch.", yaml::between(1, kMaxWays))
          .optional("sequence_parallel", &Strategy::sequence_parallel,
                    "Split norms and dropouts along the sequence over the tensor-parallel ranks.")
          .optional("schedule", &Strategy::schedule, "Pipeline schedule: gpipe, 1f1b, interleaved.")
          .optional("virtual_stages", &Strategy::virtual_stages,
                    "Model chunks per pipeline rank (schedule interleaved).",
                    yaml::between(1, kMaxWays))
          .optional("layers_per_stage", &Strategy::layers_per_stage,
                    "Layers of each stage, chunk by chunk (default: equal).")
          .optional("micro_batch", &Strategy::micro_batch, "Sequences per device and micro-batch.",
                    yaml::between(1, kMaxBatch))
          .required("global_batch", &Strategy::global_batch, "Sequences per step.",
                    yaml::between(1, kMaxBatch))
          .optional("zero_stage", &Strategy::zero_stage,
                    "ZeRO stage, which data-parallel ranks shard: 0 nothing, 1 optimizer state, 2 "
                    "also gradients, 3 also parameters (FSDP).",
                    yaml::between(0, 3))
          .optional("recompute", &Strategy::recompute,
                    "Which activations are recomputed in the backward pass.")
          .optional("precision", &Strategy::precision,
                    "Precision of parameters, activations and matrix products.")
          .optional("rank_order", &Strategy::rank_order,
                    "Mesh axes tensor, data and pipeline, the one that varies fastest first.")
          .optional("framework", &Strategy::framework,
                    "The training framework, which decides what is overlapped and fused.")
          .check("precision", [](const Strategy& of) { return fault_in_precision(of.precision); });
  return table;
}

std::vector<StrategyFault> faults_in(const Strategy& strategy, const Model& model,
                                     std::int64_t devices) {
  std::vector<StrategyFault> faults;
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const std::int64_t tp = strategy.tensor_parallel;
  const std::int64_t pp = strategy.pipeline_parallel;
  const std::int64_t dp = strategy.data_parallel;

  if (strategy.devices() > devices) {
    const std::int64_t most = devices / (tp * pp);
    fault(
        "data_parallel",
        fmt::format("tensor_parallel {} x pipeline_parallel {} x data_parallel {} = {} ranks, but "
                    "there are {} devices for them",
                    tp, pp, dp, strategy.devices(), devices),
        most == 0
            ? fmt::format("tensor_parallel x pipeline_parallel = {} is too much already", tp * pp)
            : fmt::format("data_parallel: {} would use {}", most,
                          most * tp * pp == devices ? "them all"
                                                    : fmt::format("{} of them", most * tp * pp)));
  }
  if (strategy.mode == Mode::kForward) forward_faults(strategy, faults);
  if (model.heads % tp != 0) {
    fault("tensor_parallel",
          fmt::format("{} attention heads cannot be split {} ways", model.heads, tp),
          "use one of " + divisors_of(model.heads, std::min<std::int64_t>(model.heads, 64)));
  } else if (model.kv() % tp != 0) {
    fault("tensor_parallel",
          fmt::format("{} key/value heads cannot be split {} ways", model.kv(), tp),
          "use one of " + divisors_of(model.kv(), model.kv()));
  }
  if (model.qk_norm == QkNorm::kAllHeads && tp > 1) {
    fault("tensor_parallel",
          "queries and keys are normalised over all heads of a token together (qk_norm: "
          "all-heads), and sums over heads that ranks share are not modelled",
          "set tensor_parallel: 1");
  }
  if (model.ffn_width() % tp != 0) {
    fault("tensor_parallel",
          fmt::format("the feed-forward width {} cannot be split {} ways", model.ffn_width(), tp),
          "use one of " + divisors_of(model.ffn_width(), 64));
  }
  if (strategy.sequence_parallel && model.sequence % tp != 0) {
    fault("sequence_parallel",
          fmt::format("a sequence of {} tokens cannot be split {} ways", model.sequence, tp),
          "set sequence_parallel: false or another tensor_parallel");
  }
  if (strategy.virtual_stages > 1 && strategy.schedule != "interleaved") {
    fault("virtual_stages",
          fmt::format("schedule '{}' has one stage per rank, not {}", strategy.schedule,
                      strategy.virtual_stages),
          "set schedule: interleaved");
  }
  if (strategy.virtual_stages > 1 && pp == 1) {
    fault("virtual_stages", "a pipeline of one rank cannot be interleaved",
          "set virtual_stages: 1 or pipeline_parallel > 1");
  }
  const std::int64_t stages = strategy.stages();
  if (strategy.layers_per_stage.empty()) {
    if (model.layers % stages != 0) {
      fault("pipeline_parallel",
            fmt::format("{} layers do not divide into {} equal stages", model.layers, stages),
            fmt::format("give them: layers_per_stage: [{}]",
                        fmt::join(even_split(model.layers, stages), ", ")));
    }
  } else {
    const auto& split = strategy.layers_per_stage;
    const std::int64_t sum = std::accumulate(split.begin(), split.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(split.size()) != stages) {
      fault(
          "layers_per_stage",
          fmt::format("{} entries for {} stages (pipeline_parallel x virtual_stages)", split.size(),
                      stages),
          fmt::format("layers_per_stage: [{}]", fmt::join(even_split(model.layers, stages), ", ")));
    } else if (std::ranges::any_of(split, [](std::int64_t n) { return n < 0; })) {
      fault("layers_per_stage", "a stage cannot have a negative number of layers", "");
    } else if (sum != model.layers) {
      fault(
          "layers_per_stage",
          fmt::format("the stages have {} layers together, the model has {}", sum, model.layers),
          fmt::format("layers_per_stage: [{}]", fmt::join(even_split(model.layers, stages), ", ")));
    }
  }
  if (strategy.global_batch % (dp * strategy.micro_batch) != 0) {
    const std::int64_t unit = dp * strategy.micro_batch;
    const std::int64_t down = strategy.global_batch / unit * unit;
    fault("global_batch",
          fmt::format("{} sequences do not divide into data_parallel {} x micro_batch {} = {}",
                      strategy.global_batch, dp, strategy.micro_batch, unit),
          fmt::format("use {}{}", down > 0 ? fmt::format("{} or ", down) : "", down + unit));
  }
  const std::int64_t passes =
      strategy.micro_batches() * ((model.layers + pp - 1) / std::max<std::int64_t>(pp, 1));
  if (passes > kMaxLayerPasses) {
    fault("global_batch",
          fmt::format("{} micro-batches through the layers of a stage are {} layer passes on each "
                      "device, more than the {} that a simulated step may have",
                      strategy.micro_batches(), passes, kMaxLayerPasses),
          "use a larger micro_batch, more data_parallel or a smaller global_batch");
  }
  auto order = strategy.rank_order;
  std::ranges::sort(order);
  if (order != std::vector<std::string>{"data", "pipeline", "tensor"}) {
    fault("rank_order", "names each of tensor, data and pipeline once",
          "rank_order: [tensor, data, pipeline]");
  }
  return faults;
}

std::vector<std::int64_t> layers_of_stages(const Strategy& strategy, const Model& model) {
  if (!strategy.layers_per_stage.empty()) return strategy.layers_per_stage;
  return even_split(model.layers, strategy.stages());
}

}  // namespace foreshard
