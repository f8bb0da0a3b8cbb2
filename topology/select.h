/// \file
/// Parts of a cluster by name, as `down:` and `degraded:` of a cluster file and the disturbances of
/// a study write them: "node3/gpu5", "node*/nic0", "node3/nic0 - pod0/leaf0". `*` stands for any
/// text, `?` for any character.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard {

/// Of "a - b": the links between vertices that match, in both directions; of "a": every link of the
/// vertices that match. Ascending.
std::vector<LinkId> select_links(std::string_view selector, const ClusterView& cluster);

/// The vertices of these kinds whose names match. Ascending.
std::vector<VertexId> select_vertices(std::string_view selector, std::span<const VertexKind> kinds,
                                      const ClusterView& cluster);

/// The devices whose names match. Ascending.
std::vector<DeviceId> select_devices(std::string_view selector, const ClusterView& cluster);

}  // namespace foreshard
