/// \file
/// What the ranks of a strategy run on: kinds of device, told apart by type, speed and host, and
/// which of them each pipeline stage has. On a cluster of equal nodes there is one kind.
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
  double speed = 1;  ///< As Device::speed.
  Bytes memory{};
  Host host{};
};
/// Indices of kinds, ascending.
using Kinds = std::vector<std::int32_t>;

class Places {
 public:
  /// Rank r runs on device `devices`[r] of `cluster`, which must outlive it.
  /// \param margin  the part of each device's memory that counts as not there.
  Places(const ClusterView& cluster, std::vector<std::int32_t> devices, double margin = 0);

  DeviceId device(std::int64_t rank) const {
    return DeviceId{devices_[static_cast<std::size_t>(rank)]};
  }
  std::int32_t kind_of(std::int64_t rank) const {
    return kind_of_rank_[static_cast<std::size_t>(rank)];
  }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  const ClusterView& cluster() const { return cluster_; }

  /// The kinds of each stage's devices where ranks are numbered as `mesh` says, as what `set`
  /// takes. Cost: that of a look at every rank, the first time that the mesh is asked for.
  const std::vector<std::int32_t>& of_stages(const std::vector<MeshAxis>& mesh);
  const Kinds& set(std::int32_t number) const {
    return sets_[static_cast<std::size_t>(number)].first;
  }
  /// What the slowest host of a set takes to launch a kernel, as Host::launching.
  Seconds launching(std::int32_t number, Seconds host_time) const;
  /// The same set for stages that differ from others of it in what they communicate over: the
  /// `ordinal`-th of such; 0: none does.
  std::int32_t variant(std::int32_t number, std::int32_t ordinal);

 private:
  std::int32_t number_of(Kinds kinds, std::int32_t ordinal);

  const ClusterView& cluster_;
  std::vector<std::int32_t> devices_;
  std::vector<std::int32_t> kind_of_rank_;
  std::vector<DeviceKind> kinds_;
  std::vector<std::pair<Kinds, std::int32_t>> sets_;  // with their ordinals
  // By stride and size of the axis, and all ranks.
  std::map<std::array<std::int64_t, 3>, std::vector<std::int32_t>> of_stages_;
};

}  // namespace foreshard::search
