#include <fmt/format.h>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/state_sharding.h"

namespace foreshard {
namespace {

// Whether a layer of the model has operators of the part.
bool has_part(const Model& model, const Framework& framework, Part part) {
  const bool has_dense = model.has_dense_layers();
  switch (part) {
    case Part::kNone:
      return false;
    case Part::kRope:
      return model.positions == Positions::kRotary && model.has_mixer(Mixer::kAttention);
    case Part::kMlpGate:
      return has_dense && model.activation == Activation::kSwiglu && framework.gate_apart;
    case Part::kMlpUp:
    case Part::kActivation:
    case Part::kMlpDown:
      return has_dense;
    case Part::kRouting:
    case Part::kExpertsUp:
    case Part::kExpertActivation:
    case Part::kExpertsDown:
      return model.experts > 0;
    case Part::kSharedExperts:
      return model.shared_ffn > 0;
    case Part::kMamba:
      return model.has_mixer(Mixer::kMamba);
    case Part::kAdapters:
      return model.adapters.has_value();
    case Part::kQkv:
    case Part::kCoreAttention:
    case Part::kAttentionOut:
      return model.has_mixer(Mixer::kAttention);
    case Part::kNorm:
    case Part::kResidual:
      break;
  }
  return true;
}

}  // namespace

void recompute_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const std::string how(yaml::name_of(strategy.recompute));
  if (strategy.recompute_layers > 0 && strategy.recompute == Recompute::kNone)
    fault("recompute_layers", "with recompute: none no layer is recomputed",
          "set recompute: full, or leave recompute_layers out");
  if (strategy.recompute != Recompute::kSelective) {
    if (strategy.recompute_parts != usual_recompute_parts())
      fault("recompute_parts", fmt::format("recompute: {} does not go by parts", how),
            "set recompute: selective, or leave recompute_parts out");
    return;
  }
  if (strategy.recompute_parts.empty())
    fault("recompute_parts", "recompute: selective recomputes some part",
          "name one, such as [norm], or set recompute: none");
  for (const Part part : strategy.recompute_parts)
    if (!has_part(model, *strategy.framework, part))
      fault("recompute_parts",
            fmt::format("no layer of model '{}' has a part '{}'{}", model.name, yaml::name_of(part),
                        part == Part::kMlpGate ? " of its own under this framework" : ""),
            "leave it out");
}

void adapter_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults) {
  if (model.frozen && model.freezes_embedding() && strategy.stages() > 1 &&
      layers_of_stages(strategy, model.layers).front() <= model.frozen->layers)
    faults.push_back(
        {"layers_per_stage",
         fmt::format("nothing of the first of {} stages is trained (the model's frozen), and "
                     "pipelines that begin behind such a stage are not modelled",
                     strategy.stages()),
         fmt::format("give the first stage more than {} layers", model.frozen->layers)});
  if (!model.adapters) return;
  const std::int64_t tp = strategy.tensor_parallel;
  if (model.adapters->base == AdapterBase::kNf4) {
    const bool shards = state_sharding(strategy).cuts_parameters && strategy.framework->shards.fp32;
    if (strategy.quantization != Quantization::kNone)
      faults.push_back({"quantization",
                        fmt::format("weights in nf4 (the model's adapters.base) are multiplied in "
                                    "16 bits, not by '{}'",
                                    yaml::name_of(strategy.quantization)),
                        "leave out quantization, or the model's adapters.base"});
    if (size_of(strategy.precision) != 2_B)
      faults.push_back({"precision",
                        fmt::format("weights in nf4 (the model's adapters.base) are brought to 16 "
                                    "bits, not to {}",
                                    name_of(strategy.precision)),
                        "set precision: bf16"});
    if (shards || strategy.offload_parameters)
      faults.push_back(
          {shards ? "framework" : "offload_parameters",
           shards ? "shards of weights in nf4 (the model's adapters.base) in fp32 are not modelled"
                  : "weights in nf4 (the model's adapters.base) on the host are not "
                    "modelled",
           shards ? "use a framework whose shards are in the training precision, or ZeRO 2"
                  : "leave it out"});
  }
  const bool by_columns =
      model.has_adapter(AdapterTarget::kQkv) || model.has_adapter(AdapterTarget::kMlpUp);
  if (by_columns && model.adapters->rank % tp != 0)
    faults.push_back(
        {"tensor_parallel",
         fmt::format("adapters of rank {} cannot be split {} ways", model.adapters->rank, tp),
         fmt::format("set the model's adapters.rank to a multiple of {}", tp)});
  if (model.hidden % tp != 0)
    faults.push_back({"tensor_parallel",
                      fmt::format("what adapters make, of {} values, cannot be split {} ways",
                                  grouped(model.hidden), tp),
                      "use a divisor of the model's hidden"});
}

}  // namespace foreshard
