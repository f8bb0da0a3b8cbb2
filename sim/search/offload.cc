#include "sim/search/offload.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "strategies/parallelism/layers.h"

namespace foreshard::search {
namespace {

// A way to offload optimizer states and parameters.
struct Kept {
  OptimizerOffload optimizer;
  bool parameters;
};
constexpr Kept kWays[] = {{OptimizerOffload::kNone, false},
                          {OptimizerOffload::kFetch, false},
                          {OptimizerOffload::kCpu, false},
                          {OptimizerOffload::kCpu, true}};

std::int64_t most_layers(const Strategy& strategy, const Model& model) {
  const auto layers = layers_of_stages(strategy, model.layers);
  return *std::ranges::max_element(layers);
}

// Checks whether strategies fit with the margin `left`.
class Room {
 public:
  Room(const Model& model, std::int64_t devices, Estimator& estimator, double left)
      : model_(model), devices_(devices), estimator_(estimator), left_(left) {}

  bool allows(const Strategy& one) const { return faults_in(one, model_, devices_).empty(); }
  bool holds(const Strategy& one) const {
    if (!allows(one)) return false;
    const auto memory = estimator_.memory(one);
    return memory && memory->peak * (1 + left_) <= memory->memory;
  }

 private:
  const Model& model_;
  std::int64_t devices_;
  Estimator& estimator_;
  double left_;
};

Strategy kept(const Strategy& strategy, const Kept& way) {
  Strategy one = strategy;
  one.offload_optimizer = way.optimizer;
  one.offload_parameters = way.parameters;
  return one;
}

}  // namespace

bool fits_with_hosts(const Strategy& strategy, const Model& model, std::int64_t devices,
                     Estimator& estimator, double left) {
  const Room room(model, devices, estimator, left);
  const auto fits = [&](const Kept& way) {
    Strategy one = kept(strategy, way);
    if (room.holds(one)) return true;
    one.offload_activation_layers = most_layers(one, model);
    return room.holds(one);
  };
  return std::any_of(std::rbegin(kWays), std::rend(kWays), fits);  // the last one most likely fits
}

std::vector<Strategy> least_offloads(const Strategy& strategy, const Model& model,
                                     std::int64_t devices, Estimator& estimator, double left) {
  const Room room(model, devices, estimator, left);
  std::vector<Strategy> found;
  for (const Kept& way : kWays) {
    Strategy one = kept(strategy, way);
    if (!room.allows(one)) continue;
    if (room.holds(one)) {
      found.push_back(one);
      continue;
    }
    std::int64_t least = 0;  // activation layers: too few to fit
    std::int64_t most = most_layers(one, model);
    one.offload_activation_layers = most;
    if (!room.holds(one)) continue;
    while (least + 1 < most) {
      one.offload_activation_layers = (least + most) / 2;
      (room.holds(one) ? most : least) = one.offload_activation_layers;
    }
    one.offload_activation_layers = most;
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace foreshard::search
