/// \file
/// Where the ranks of layouts are: which device of which cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/layout.h"
#include "topology/cluster_view.h"

namespace foreshard::reshard {

struct Placement {
  const ClusterView* cluster = nullptr;
  std::vector<std::int32_t> device_of_rank{};  ///< Empty: rank r is on device r. Distinct.

  /// \pre `rank` has a device (`fault_in`).
  DeviceId device(std::int32_t rank) const {
    return DeviceId{device_of_rank.empty() ? rank : device_of_rank[static_cast<std::size_t>(rank)]};
  }
};

/// The first rank of `mesh` without a device, in words that say which there are; nothing if all
/// have one.
std::optional<std::string> fault_in(const Placement& placement, const ProcessMesh& mesh);

/// Node of every rank that has a device.
std::vector<std::int32_t> nodes_of_ranks(const Placement& placement);

}  // namespace foreshard::reshard
