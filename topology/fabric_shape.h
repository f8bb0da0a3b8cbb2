/// \file
/// Regular structures of a fabric, from which its routes follow.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard {

/// A dragonfly: switches in groups; the cables between switches of different groups are global.
struct SwitchGroups {
  std::vector<std::vector<VertexId>> groups;
};

/// A torus or mesh: one switch at each point, joined to the next one in every dimension.
struct SwitchGrid {
  std::vector<std::int64_t> dims;  ///< Invariant: each >= 1.
  /// Row-major: the last dimension varies fastest.
  std::vector<VertexId> switches;
  bool wraps = true;  ///< A torus: the last switch of a line is joined to the first (dims > 2).
};

using FabricShape = std::variant<std::monostate, SwitchGroups, SwitchGrid>;

}  // namespace foreshard
