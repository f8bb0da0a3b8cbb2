#include <algorithm>
#include <fmt/format.h>

#include "strategies/parallelism/expert_groups.h"
#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/pipeline.h"

namespace foreshard {

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
