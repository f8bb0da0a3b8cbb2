/// \file
/// A list of a cluster's parts in the order of their first use, and a key that describes how they
/// are connected: equal keys mean that routes carry over (topology/route_symmetry.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "sim/simulate/internal/signature.h"
#include "topology/route_symmetry.h"

namespace foreshard::sim::internal {

using PartKey = std::vector<std::uint64_t>;
struct PartKeyHash {
  std::size_t operator()(const PartKey& key) const noexcept {
    std::uint64_t hash = key.size();
    for (const std::uint64_t value : key) hash = mixed(hash ^ value);
    return hash;
  }
};

class PartList {
 public:
  explicit PartList(const RouteSymmetry& congruence)
      : congruence_(congruence),
        slot_(congruence.part_count(), 0),
        met_(congruence.part_count(), 0) {}

  void start() {
    ++round_;
    key_.clear();
    parts_.clear();
  }
  /// Adds other values that tell lists apart.
  void add(std::initializer_list<std::uint64_t> values) {
    key_.insert(key_.end(), values.begin(), values.end());
  }
  /// The position of a part in the list; a new part is appended.
  std::uint64_t meet(std::int32_t part) {
    const auto p = static_cast<std::size_t>(part);
    if (met_[p] != round_) {
      met_[p] = round_;
      slot_[p] = static_cast<std::int32_t>(parts_.size());
      parts_.push_back(part);
    }
    return static_cast<std::uint64_t>(slot_[p]);
  }
  /// Adds the structure of the parts, and all switches above them.
  void close() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {  // grows up to the roots
      const std::int32_t part = parts_[i];
      add({congruence_.shape(part)});
      for (const std::int32_t above : congruence_.parents(part)) add({meet(above)});
    }
  }

  const PartKey& key() const { return key_; }
  const std::vector<std::int32_t>& parts() const { return parts_; }
  /// \pre the part is in the list.
  std::int32_t slot_of(std::int32_t part) const { return slot_[static_cast<std::size_t>(part)]; }

 private:
  const RouteSymmetry& congruence_;
  PartKey key_;
  std::vector<std::int32_t> parts_;
  std::vector<std::int32_t> slot_;  // by part
  std::vector<std::uint32_t> met_;
  std::uint32_t round_ = 0;
};

}  // namespace foreshard::sim::internal
