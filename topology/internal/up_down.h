/// \file
/// Which end of each cable is up, for Routing::kUpDown.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {

/// One number per vertex, all different: a cable leads up if it ends at the larger number.
///
/// - By hops from the nearest switch with NICs, if no cable joins switches of equal hops and every
///   switch with NICs can then reach, first up and then down, every other one in its connected
///   part.
/// - Else breadth first, with up towards the root, the first switch of the connected part. Down
///   paths lead from the root to every switch, so a legal path joins any two switches.
std::vector<std::int64_t> up_order(const FabricGraph& graph);

}  // namespace foreshard::internal
