/// \file
/// The devices that a study's ranks may run on: all working ones, in the cluster's order, or those
/// that its `use` names, in the order of `use`. Rank r runs on device r of the pool; devices
/// without a rank are idle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/program/ir/program.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

struct Pool {
  std::vector<std::int32_t> devices{};  ///< Indexed by rank; working devices, each once.
  /// Why these are not all of the cluster's devices: "node1/gpu3 is down"; empty if they are.
  std::string shortage{};
  bool named = false;  ///< Whether `use` names the devices.

  std::int64_t size() const { return static_cast<std::int64_t>(devices.size()); }
  /// `program` with its ranks on the first devices of the pool.
  /// \pre The pool has a device for each rank.
  program::Program placed(program::Program program) const;
};

/// The cluster's node groups that hold one of `devices`, in the cluster's order.
std::vector<NodeGroup> groups_with(const ClusterConfig& cluster,
                                   std::span<const std::int32_t> devices);

/// \param use  selectors of devices ("node3/gpu5", "node*/gpu?") or of whole nodes ("node3");
///     devices that are down are left out. Empty: every working device.
/// \return kInvalidInput, with a place, for a selector that leaves no device, or if the cluster
///     cannot be built.
Result<Pool> pool_of(const ClusterConfig& cluster, const std::vector<std::string>& use,
                     const yaml::Loader& loader);

}  // namespace foreshard::study
