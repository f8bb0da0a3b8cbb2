/// \file
/// Places: the parts of a study's pool that a search looks at for themselves, because ranks on them
/// alone may be faster than on all of it, or because groups of ranks then do not straddle nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/study.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Devices that ranks may run on, and the nodes and devices to name for them in the study's `use`.
struct Place {
  study::Pool pool;
  std::vector<std::string> use;  ///< Empty: as the study does.
};

/// The study's own pool, which comes first; its nodes that have lost nothing (no device or link of
/// theirs is down or slower than it was built); its devices of full speed; and, of each kind of
/// node (device type, devices, host and bandwidth to the network), those nodes alone and all nodes
/// but those, each also without the nodes that have lost something and without slow devices. No two
/// have the same devices. Only the first where the study's `use` names the devices.
///
/// The order of a place's devices does not depend on which of equal ones is slow or down: where one
/// switch connects all nodes, those of a kind with the most left come first, and where the devices
/// of a node all reach each other alike, those of full speed (in all nodes those of the same
/// place). Elsewhere it is the cluster's.
/// Not tried: other parts, such as two of four kinds together; other orders.
/// \return the errors of build_cluster.
Result<std::vector<Place>> places_of(const study::LoadedStudy& study, const ClusterView& cluster);

/// How many devices the first 1, 2, 4, ... nodes of a place have, as long as these are not all.
std::vector<std::int64_t> parts_of(const Place& place, const ClusterView& cluster);

}  // namespace foreshard::search
