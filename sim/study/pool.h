/// \file
/// The devices that a study's ranks may run on: those that work, in the cluster's order, or those
/// that its `use` names, in that order. Rank r runs on the r-th of them; what no rank needs is
/// idle.
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
  std::vector<std::int32_t> devices{};  ///< By rank; they work, each once.
  /// Why they are not all of the cluster's: "node1/gpu3 is down"; empty if they are.
  std::string shortage{};
  bool named = false;  ///< By `use`.

  std::int64_t size() const { return static_cast<std::int64_t>(devices.size()); }
  /// `program` with its ranks on the first devices.
  /// \pre there are as many.
  program::Program placed(program::Program program) const;
};

/// The groups of nodes of the cluster that hold one of `devices`, in its order.
std::vector<NodeGroup> groups_with(const ClusterConfig& cluster,
                                   std::span<const std::int32_t> devices);

/// \param use  selectors of devices ("node3/gpu5", "node*/gpu?") or of whole nodes ("node3"); those
///     that are down are left out. Empty: every device that works.
/// \return kInvalidInput, with a place, for a selector that leaves no device, and where the cluster
///     cannot be built.
Result<Pool> pool_of(const ClusterConfig& cluster, const std::vector<std::string>& use,
                     const yaml::Loader& loader);

}  // namespace foreshard::study
