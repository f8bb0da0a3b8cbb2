/// \file
/// Picks links by the names of what they join.
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
