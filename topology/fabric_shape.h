/// \file
/// Regular shapes that a fabric can have. The builders of fabrics (topology/fabrics/) set them. The
/// router then follows the shape instead of searching for paths, unless links are down and routing
/// is not adaptive.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard {

/// A dragonfly: switches in groups. Cables between switches of different groups are the global ones
/// of that term; they are links of the ClusterView, as all are.
struct SwitchGroups {
  std::vector<std::vector<VertexId>> groups;
};

/// A torus or mesh: each point of the grid is a switch, joined to the next switch along every
/// dimension.
struct SwitchGrid {
  std::vector<std::int64_t> dims;  ///< Switches along each dimension. Invariant: each >= 1.
  /// One per point of the grid, row-major: the last dimension varies fastest.
  std::vector<VertexId> switches;
  /// Whether it is a torus, not a mesh: in lines of three and more switches, a cable joins the last
  /// to the first. (Two are joined by one cable either way, and one has none.)
  bool wraps = true;
};

/// Empty (monostate) for fabrics that have no shape of these.
using FabricShape = std::variant<std::monostate, SwitchGroups, SwitchGrid>;

}  // namespace foreshard
