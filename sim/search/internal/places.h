/// \file
/// The devices that the ranks of a strategy run on: kinds of device, which differ in type, speed or
/// host, and the kinds that each pipeline stage has. A cluster of equal nodes has one kind.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strategies/program/lower/block.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Devices of one kind take the same time for a kernel and its launch, and have the same memory.
struct DeviceKind {
  DeviceTypeId type;
  double speed = 1;  ///< Same as Device::speed.
  Bytes memory{};
  Host host{};
};
/// Indices of kinds, ascending.
using Kinds = std::vector<std::int32_t>;

class Places {
 public:
  /// Rank r runs on device `devices`[r] of `cluster`, which must outlive it.
  /// \param margin  the part of each device's memory that is kept free.
  Places(const ClusterView& cluster, std::vector<std::int32_t> devices, double margin = 0);

  DeviceId device(std::int64_t rank) const {
    return DeviceId{devices_[static_cast<std::size_t>(rank)]};
  }
  std::int32_t kind_of(std::int64_t rank) const {
    return kind_of_rank_[static_cast<std::size_t>(rank)];
  }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  const ClusterView& cluster() const { return cluster_; }

  /// stage -> number of the set of its devices' kinds (argument of `set`), where ranks are numbered
  /// as in `mesh`. Cost: O(ranks) the first time that a mesh is asked for.
  const std::vector<std::int32_t>& of_stages(const std::vector<MeshAxis>& mesh);
  const Kinds& set(std::int32_t number) const {
    return sets_[static_cast<std::size_t>(number)].first;
  }
  /// Time in which the slowest host of a set launches a kernel (Host::launching).
  Seconds launching(std::int32_t number, Seconds host_time) const;
  /// A second number for the same set of kinds, for stages whose groups communicate differently
  /// from other stages with that set. `ordinal`: 0 for the set itself, else the n-th such variant.
  std::int32_t variant(std::int32_t number, std::int32_t ordinal);

 private:
  std::int32_t number_of(Kinds kinds, std::int32_t ordinal);

  const ClusterView& cluster_;
  std::vector<std::int32_t> devices_;
  std::vector<std::int32_t> kind_of_rank_;
  std::vector<DeviceKind> kinds_;
  std::vector<std::pair<Kinds, std::int32_t>> sets_;  // sets and their ordinals
  // Key: stride and size of the pipeline's axis, and the number of ranks.
  std::map<std::array<std::int64_t, 3>, std::vector<std::int32_t>> of_stages_;
};

}  // namespace foreshard::search
