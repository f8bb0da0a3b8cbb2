/// \file
/// The placement of ranks: the cluster, and the device of each rank.
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

  /// \pre `rank` has a device (`fault_in`)
  DeviceId device(std::int32_t rank) const {
    return DeviceId{device_of_rank.empty() ? rank : device_of_rank[static_cast<std::size_t>(rank)]};
  }
};

/// A message about the first rank of `mesh` without a device, which says what ranks there are;
/// empty if all ranks have one.
std::optional<std::string> fault_in(const Placement& placement, const ProcessMesh& mesh);

/// rank -> node, for every rank that has a device.
std::vector<std::int32_t> nodes_of_ranks(const Placement& placement);

}  // namespace foreshard::reshard
