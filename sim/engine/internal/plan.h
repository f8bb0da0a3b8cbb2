/// \file
/// A workload in the form that the event engines read: shapes with progress normalised (largest
/// weight 1) and laid out flat, and each activity's successors in one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/mman.h>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine::internal {

// Large arrays on large pages. A run visits activities in order of time, which jumps through
// arrays of tens of megabytes; with small pages most of the time goes into address translation.

/// Reserves `size` elements and asks for large pages under them: a hint, the vector works as usual.
template <class T>
void reserve_on_huge_pages(std::vector<T>& v, std::size_t size) {
  if (size <= v.capacity()) return;
  v.reserve(size);
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(v.data());
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + size * sizeof(T)) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

/// Use of a resource at rate 1, by all real activities of the class together.
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
  double scale = 1;  ///< Largest weight; `work` and caps are multiplied by it.
  double connections = 1;
  double cap = 0;                ///< Normalised cap; may be infinite.
  double alone_rate = 0;         ///< Rate with nothing else on any of the shape's resources.
  std::int32_t alone_bound = 0;  ///< The resource that bounds `alone_rate`, or kCapped.
};

/// Value in place of a resource: only the activity's own cap bounds its rate.
inline constexpr std::int32_t kCapped = -1;

/// If less than this part of a resource's capacity is left, nothing is left: occupations that fill
/// it exactly have sums that are exact only up to rounding.
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

/// Which activities wait for which; counts pending predecessors down during a run. `release_from`
/// counts as a predecessor.
class Dependencies {
 public:
  explicit Dependencies(const Workload& workload);
  std::span<const std::int32_t> successors(std::int32_t activity) const {
    const auto a = static_cast<std::size_t>(activity);
    return {targets_.data() + nodes_[a].begin, targets_.data() + nodes_[a + 1].begin};
  }
  /// Whether all predecessors of the activity are done.
  bool ready(std::int32_t activity) const {
    return nodes_[static_cast<std::size_t>(activity)].pending == 0;
  }
  /// Call when one of the activity's predecessors is done.
  /// \return Whether that was the last one.
  bool count_down(std::int32_t activity) {
    return --nodes_[static_cast<std::size_t>(activity)].pending == 0;
  }
  /// The activity's first successor, or -1. Most activities in chains have just one, and its data
  /// can be prefetched from memory while the activity runs.
  std::int32_t first_successor(std::int32_t activity) const {
    return nodes_[static_cast<std::size_t>(activity)].first;
  }
  void prefetch(std::int32_t activity) const {
    __builtin_prefetch(&nodes_[static_cast<std::size_t>(activity)]);
  }
  void prefetch_successors(std::int32_t activity) const {
    __builtin_prefetch(targets_.data() + nodes_[static_cast<std::size_t>(activity)].begin);
  }

 private:
  struct Node {
    // begin of the successors in targets_; they end where the next node's begin
    std::uint32_t begin = 0;
    std::int32_t pending = 0;  // predecessors that are not done
    std::int32_t first = -1;
  };
  std::vector<Node> nodes_;
  std::vector<std::int32_t> targets_;
};

}  // namespace foreshard::engine::internal
