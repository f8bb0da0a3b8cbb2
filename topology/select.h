/// \file
/// Selects parts of a cluster by name, with the selectors that `down:` and `degraded:` of a cluster
/// file and the disturbances of a study use: "node3/gpu5", "node*/nic0", "node3/nic0 - pod0/leaf0".
/// `*` stands for any text, `?` for any character.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard::internal {

/// `*` stands for any text, `?` for any one character.
bool matches(std::string_view pattern, std::string_view text);

/// The links that a selector names, ascending. "a - b": links between matching vertices, in both
/// directions; "a": every link of the matching vertices.
std::vector<LinkId> select_links(std::string_view selector, std::span<const Vertex> vertices,
                                 std::span<const Link> links);

/// The devices that match a selector without " - ". Ascending.
std::vector<DeviceId> select_devices(std::string_view selector, std::span<const Vertex> vertices);

}  // namespace foreshard::internal

namespace foreshard {

/// The links that a selector names, ascending. "a - b": links between matching vertices, in both
/// directions; "a": every link of the matching vertices.
std::vector<LinkId> select_links(std::string_view selector, const ClusterView& cluster);

/// The vertices of these kinds whose names match. Ascending.
std::vector<VertexId> select_vertices(std::string_view selector, std::span<const VertexKind> kinds,
                                      const ClusterView& cluster);

/// The devices whose names match. Ascending.
std::vector<DeviceId> select_devices(std::string_view selector, const ClusterView& cluster);

}  // namespace foreshard
