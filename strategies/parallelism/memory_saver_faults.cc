#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {
namespace {

// Whether a layer of the model has operators of the part.
bool has_part(const Model& model, const Framework& framework, LayerPart part) {
  const bool has_dense = model.has_dense_layers();
  switch (part) {
    case LayerPart::kNone:
      return false;
    case LayerPart::kRope:
      return model.positions == Positions::kRotary && model.has_mixer(Mixer::kAttention);
    case LayerPart::kMlpGate:
      return has_dense && model.activation == Activation::kSwiglu && framework.gate_apart;
    case LayerPart::kMlpUp:
    case LayerPart::kActivation:
    case LayerPart::kMlpDown:
      return has_dense;
    case LayerPart::kRouting:
    case LayerPart::kExpertsUp:
    case LayerPart::kExpertActivation:
    case LayerPart::kExpertsDown:
      return model.experts > 0;
    case LayerPart::kSharedExperts:
      return model.shared_ffn > 0;
    case LayerPart::kMamba:
      return model.has_mixer(Mixer::kMamba);
    case LayerPart::kAdapters:
      return model.adapters.has_value();
    case LayerPart::kQkv:
    case LayerPart::kCoreAttention:
    case LayerPart::kAttentionOut:
      return model.has_mixer(Mixer::kAttention);
    case LayerPart::kNorm:
    case LayerPart::kResidual:
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
  for (const LayerPart part : strategy.recompute_parts)
    if (!has_part(model, *strategy.framework, part))
      fault("recompute_parts",
            fmt::format("no layer of model '{}' has a part '{}'{}", model.name, yaml::name_of(part),
                        part == LayerPart::kMlpGate ? " of its own under this framework" : ""),
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

void capture_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"cuda_graphs", std::move(message), std::move(help)});
  };
  const std::set<Capture> named(strategy.cuda_graphs.begin(), strategy.cuda_graphs.end());
  if (named.size() < strategy.cuda_graphs.size()) fault("names a part twice", "name it once");
  if (named.size() > 1 && named.contains(Capture::kStep))
    fault("'step' has all the other parts", "leave them out");
  for (const Capture one : named)
    if (const std::string_view what = lacking(model, one); !what.empty())
      fault(fmt::format("model '{}' has no {} to capture", model.name, what),
            fmt::format("leave out '{}'", yaml::name_of(one)));
}

void optimizer_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const Optimizer& of = strategy.optimizer;
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"optimizer", std::move(message), std::move(help)});
  };
  if (of == Optimizer{}) return;
  if (strategy.mode == Mode::kForward)
    return fault("mode: forward updates no parameters", "leave optimizer out");
  if (of.master != DType::kFp32 && size_of(of.master) < size_of(strategy.precision))
    fault(fmt::format("a master copy in {} has fewer bits than parameters in {}",
                      name_of(of.master), name_of(strategy.precision)),
          "leave master out");
  if (of.remainders && strategy.precision != DType::kBf16)
    fault(fmt::format("parameters in {} are not the upper half of an fp32 master copy",
                      name_of(strategy.precision)),
          "leave remainders out, or set precision: bf16");
  if (of.remainders && strategy.framework->shards.fp32)
    fault("the framework's shards lie in fp32 and are the master copy, whole",
          "leave remainders out, or set framework.shards.fp32: false");
  if (of.master != DType::kFp32 && strategy.framework->shards.fp32)
    fault(fmt::format("the framework's shards lie in fp32 and are the master copy, not in {}",
                      name_of(of.master)),
          "leave master out, or set framework.shards.fp32: false");
  if (of.rule != "adam" && strategy.framework->optimizer == OptimizerKernels::kLoop)
    fault(fmt::format("the framework steps in a loop of Adam's operations (optimizer: loop), which "
                      "'{}' does not have",
                      of.rule),
          "set framework.optimizer: fused");
}

void offload_faults(const Strategy& strategy, std::int64_t layers,
                    std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const bool trains = strategy.mode == Mode::kTrain;
  const bool on_cpu = strategy.offload_optimizer == OptimizerOffload::kCpu;
  if (const std::int64_t count = strategy.offload_activation_layers; count > 0) {
    const auto known = strategy.layers_per_stage.empty() ? even_split(layers, strategy.stages())
                                                         : strategy.layers_per_stage;
    const std::int64_t most = *std::ranges::max_element(known);
    if (!trains)
      fault("offload_activation_layers", "mode: forward keeps no activations", "leave it out");
    else if (count > most)
      fault("offload_activation_layers",
            fmt::format("{} layers are offloaded, but {} has {}", count,
                        strategy.stages() > 1 ? "the longest stage" : "the model", most),
            fmt::format("use at most {}", most));
    if (splits_backward(strategy))
      fault("offload_activation_layers",
            fmt::format("schedule {} runs backward passes in two parts, of which each reads "
                        "activations of its own: that is not modelled together",
                        strategy.schedule),
            "use a schedule with whole backward passes, such as 1f1b");
    if (strategy.overlap_experts)
      fault("offload_activation_layers",
            "offloading is not modelled where passes run beside one another (overlap_experts)",
            "leave one of the two out");
  }
  if (strategy.offload_optimizer != OptimizerOffload::kNone && !trains)
    fault("offload_optimizer", "mode: forward takes no step", "leave it out");
  if (strategy.offload_optimizer != OptimizerOffload::kNone && strategy.optimizer != Optimizer{})
    fault("offload_optimizer",
          fmt::format("offloading is modelled of adam with states in fp32 alone, not of {}",
                      words_of(strategy.optimizer)),
          "leave optimizer out, or keep its states on the device");
  const bool shards_are_masters = strategy.zero_stage == 3 && strategy.framework->shards.fp32 &&
                                  size_of(strategy.precision) != size_of(DType::kFp32);
  if (on_cpu && shards_are_masters && !strategy.offload_parameters)
    fault("offload_optimizer",
          fmt::format("framework '{}' has one copy of its parameters, in fp32, which a step on the "
                      "CPU updates where they are",
                      strategy.framework.name),
          "set offload_parameters: true too");
  if (!strategy.offload_parameters) return;
  if (strategy.zero_stage != 3)
    fault("offload_parameters", "parameters that no rank has shards of are needed on the device",
          "set zero_stage: 3, or leave it out");
  else if (strategy.shards() == 1)
    fault("offload_parameters",
          "one rank has no shards to gather: that parameters come to it before each pass is not "
          "modelled",
          "use more data_parallel ranks, or leave it out");
  if (strategy.expert_parallel > 1 &&
      strategy.tensor_parallel * strategy.shards() == expert_ranks(strategy))
    fault("offload_parameters",
          "no rank shares its experts with another, so that nothing gathers them: that they come "
          "to it before each pass is not modelled",
          "use more data_parallel ranks, or leave it out");
  if (strategy.framework->shards.gather_each)
    fault("offload_parameters",
          fmt::format("framework '{}' gathers parameters one by one; that each comes from the host "
                      "by itself is not modelled",
                      strategy.framework.name),
          "use another framework, or leave it out");
  if (strategy.quantized_parameters)
    fault(
        "offload_parameters",
        "parameters that are held quantized would be quantized on the host, which is not modelled",
        "leave one of the two out");
  if (trains && !on_cpu)
    fault("offload_parameters", "the step would have to come to the parameters on the host",
          "set offload_optimizer: cpu, which updates them there");
}

}  // namespace foreshard
