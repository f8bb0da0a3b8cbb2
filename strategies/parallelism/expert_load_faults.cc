#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {

void expert_load_faults(const Strategy& strategy, const Model& model,
                        std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"expert_load", std::move(message), std::move(help)});
  };
  const ExpertLoad& load = strategy.expert_load;
  const std::int64_t layers = layers_with_experts(model);
  if (!load.is_balanced() && strategy.capacity_factor > 1)
    fault(fmt::format("with capacity_factor {:.6g} all experts have as many slots, whoever chooses "
                      "them",
                      strategy.capacity_factor),
          "leave out one of the two");
  if (load.layers.size() > 1 && std::ssize(load.layers) != layers)
    fault(fmt::format("shares are given of {} layers, and {} have experts", load.layers.size(),
                      layers),
          fmt::format("give {} lists, or one for all", layers));
  for (const auto& shares : load.layers) {
    if (std::ssize(shares) == model.experts) continue;
    fault(fmt::format("a list has {} shares, and a layer {} experts", shares.size(), model.experts),
          fmt::format("give {} shares in each list", model.experts));
    break;
  }
}

}  // namespace foreshard
