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

/// Of "a - b": the links between vertices that match, in both directions; of "a": every link of the
/// vertices that match. Ascending.
std::vector<LinkId> select_links(std::string_view selector, std::span<const Vertex> vertices,
                                 std::span<const Link> links);

/// The devices that match a selector without " - ". Ascending.
std::vector<DeviceId> select_devices(std::string_view selector, std::span<const Vertex> vertices);

}  // namespace foreshard::internal
