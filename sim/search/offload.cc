#include "sim/search/offload.h"

#include <algorithm>

#include "strategies/parallelism/layers.h"

namespace foreshard::search {
namespace {

// Where optimizer states and parameters are.
struct Kept {
  OptimizerOffload optimizer;
  bool parameters;
};
constexpr Kept kWays[] = {{OptimizerOffload::kNone, false},
                          {OptimizerOffload::kFetch, false},
                          {OptimizerOffload::kCpu, false},
                          {OptimizerOffload::kCpu, true}};

}  // namespace

std::vector<Strategy> least_offloads(const Strategy& strategy, const Model& model,
                                     std::int64_t devices, Estimator& estimator) {
  const auto fits = [&](const Strategy& one) {
    if (!faults_in(one, model, devices).empty()) return false;
    const auto memory = estimator.memory(one);
    return memory && memory->peak <= memory->memory;
  };
  std::vector<Strategy> found;
  for (const Kept& way : kWays) {
    Strategy one = strategy;
    one.offload_optimizer = way.optimizer;
    one.offload_parameters = way.parameters;
    if (!faults_in(one, model, devices).empty()) continue;
    if (fits(one)) {
      found.push_back(one);
      continue;
    }
    std::int64_t least = 0;  // which does not fit
    const auto layers = layers_of_stages(one, model.layers);
    std::int64_t most = *std::ranges::max_element(layers);
    one.offload_activation_layers = most;
    if (!fits(one)) continue;
    while (least + 1 < most) {
      one.offload_activation_layers = (least + most) / 2;
      (fits(one) ? most : least) = one.offload_activation_layers;
    }
    one.offload_activation_layers = most;
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace foreshard::search
