/// \file
/// Device subsets: the parts of a study's pool that a search tries by themselves, because ranks on
/// a part alone may be faster than on the whole pool, or because groups of ranks then do not
/// straddle nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/study.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Devices that ranks may run on, and their names for the study's `use`.
struct DeviceSubset {
  study::Pool pool;
  std::vector<std::string> use;  ///< Nodes and devices; empty: the study's own `use`.
};

/// The places of a study: its own pool, which comes first; the intact nodes (no device or link of
/// the node is down or slower than built); the devices of full speed; and for each kind of node
/// (device type, devices, host and bandwidth to the network) the nodes of that kind, and all nodes
/// of other kinds, each also without damaged nodes and without slow devices. No two places have the
/// same devices. Only the study's own pool where its `use` names the devices.
///
/// The order of a place's devices does not depend on which of several equal devices is slow or
/// down. Where one switch connects all nodes, the nodes of a kind with the most capacity left come
/// first. Where all devices of a node reach each other alike, the devices of full speed come first
/// (at the same positions in all nodes). Elsewhere the order is the cluster's.
/// Not tried: other parts, such as two of four kinds together; other orders.
/// \return the errors of build_cluster.
Result<std::vector<DeviceSubset>> device_subsets_of(const study::LoadedStudy& study,
                                                    const ClusterView& cluster);

/// How many devices the first 1, 2, 4, ... nodes of a place have, without the whole place.
std::vector<std::int64_t> parts_of(const DeviceSubset& place, const ClusterView& cluster);

}  // namespace foreshard::search
