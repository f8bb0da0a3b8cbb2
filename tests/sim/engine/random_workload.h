/// \file
/// Random workloads, the same for the same seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "tests/sim/engine/workloads.h"

namespace foreshard::engine {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  int below(int n) { return static_cast<int>(bits_() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::mt19937_64 bits_;
};

struct RandomOptions {
  int resources = 8;
  int shapes = 10;
  int activities = 30;
  int longest_path = 4;
  bool plain = false;       ///< Unit weights and nothing else: what SimGrid can express.
  bool occupations = true;  ///< Where not plain.
};

inline void add_random_shapes(Workload& w, Random& random, const RandomOptions& options) {
  std::vector<ResourceId> resources;
  resources.reserve(static_cast<std::size_t>(options.resources));
  for (int r = 0; r < options.resources; ++r)
    // Often equal, so that ties occur.
    resources.push_back(w.add_resource(random.one_in(2) ? 10 : random.between(1, 20),
                                       "resource " + std::to_string(r)));
  for (int s = 0; s < options.shapes; ++s) {
    for (int i = options.resources - 1; i > 0; --i)
      std::swap(resources[static_cast<std::size_t>(i)],
                resources[static_cast<std::size_t>(random.below(i + 1))]);
    Shape shape;
    const int path = 1 + random.below(options.longest_path);
    for (int i = 0; i < path; ++i) {
      Usage usage{.resource = resources[static_cast<std::size_t>(i)]};
      if (!options.plain && !random.one_in(3)) usage.weight = random.between(0.01, 5);
      if (!options.plain && random.one_in(3)) usage.multiplicity = 1 + random.below(4);
      shape.usages.push_back(usage);
    }
    if (!options.plain && random.one_in(3)) shape.connections = 1 + random.below(8);
    if (!options.plain && random.one_in(3)) shape.rate_cap = random.between(0.1, 5);
    // At most a fifth each: more than five at once may fill a resource, and others wait.
    if (!options.plain && options.occupations && random.one_in(3))
      shape.occupations.push_back(
          {.resource = resources[static_cast<std::size_t>(random.below(options.resources))],
           .amount = random.between(0, 2)});
    for (Occupation& o : shape.occupations)
      o.amount = std::min(o.amount, w.capacity(o.resource) / 5);
    w.add_shape(std::move(shape));
  }
}

inline Workload random_workload(std::uint64_t seed, const RandomOptions& options = {}) {
  Random random(seed);
  Workload w;
  add_random_shapes(w, random, options);
  for (int a = 0; a < options.activities; ++a) {
    Activity activity =
        task(ShapeId(random.below(options.shapes)), random.one_in(8)   ? 0
                                                    : random.one_in(2) ? 10 * (1 + random.below(5))
                                                                       : random.between(0.1, 100));
    if (random.one_in(2)) activity.latency = Seconds::from_base(random.between(0, 3));
    if (random.one_in(4)) activity.release_lag = Seconds::from_base(random.between(0, 20));
    if (a > 0 && random.one_in(4)) activity.release_from = ActivityId(random.below(a));
    const ActivityId id = w.add_activity(activity);
    for (int i = random.below(3); a > 0 && i > 0; --i)
      w.add_edge(ActivityId(std::max(0, a - 1 - random.below(8))), id);
  }
  return w;
}

}  // namespace foreshard::engine
