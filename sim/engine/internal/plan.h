/// \file
/// A workload as the event engines read it: shapes with progress normalised (largest weight 1) and
/// laid out flat, and each activity's successors in one array.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine::internal {

/// What running at rate 1 takes of a resource, all real activities of the class together.
struct Load {
  std::int32_t resource;
  double load;
};
struct Hold {
  std::int32_t resource;
  double amount;
};

struct NormalShape {
  std::int32_t first_load = 0;
  std::int32_t loads = 0;
  std::int32_t first_hold = 0;
  std::int32_t holds = 0;
  double scale = 1;  ///< Largest weight: `work` and caps are multiplied by it.
  double connections = 1;
  double cap = 0;                ///< Normalised, or infinite.
  double alone_rate = 0;         ///< With nobody else on any of its resources.
  std::int32_t alone_bound = 0;  ///< The resource that bounds `alone_rate`, or kCapped.
};

/// In place of a resource: nothing but the activity's own cap bounds its rate.
inline constexpr std::int32_t kCapped = -1;

/// Of what is left of a resource, less than this part of its capacity is nothing: sums of
/// occupations that fill it exactly are right only up to rounding.
inline constexpr double kNothingLeft = 1e-12;

inline double capacity_left(double capacity, double held) {
  const double left = capacity - held;
  return left > kNothingLeft * capacity ? left : 0;
}

class Shapes {
 public:
  explicit Shapes(const Workload& workload);
  const NormalShape& operator[](std::int32_t shape) const {
    return shapes_[static_cast<std::size_t>(shape)];
  }
  std::size_t size() const { return shapes_.size(); }
  std::span<const Load> loads(const NormalShape& s) const {
    return {loads_.data() + s.first_load, static_cast<std::size_t>(s.loads)};
  }
  std::span<const Hold> holds(const NormalShape& s) const {
    return {holds_.data() + s.first_hold, static_cast<std::size_t>(s.holds)};
  }

 private:
  std::vector<NormalShape> shapes_;
  std::vector<Load> loads_;
  std::vector<Hold> holds_;
};

/// Who waits for whom. `release_from` counts as a predecessor.
class Successors {
 public:
  explicit Successors(const Workload& workload);
  std::span<const std::int32_t> of(std::int32_t activity) const {
    const auto a = static_cast<std::size_t>(activity);
    return {targets_.data() + begin_[a], begin_[a + 1] - begin_[a]};
  }
  /// How many predecessors each activity has. Taken once, to be counted down.
  std::vector<std::int32_t> take_pending() { return std::move(pending_); }

 private:
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> targets_;
  std::vector<std::int32_t> pending_;
};

}  // namespace foreshard::engine::internal
