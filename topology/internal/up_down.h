/// \file
/// Which end of each cable is up, for Routing::kUpDown.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {

/// By vertex, all different: a cable leads up if its end has the larger number.
///
/// - By hops from the nearest switch with NICs, if no cable joins switches of equal hops and every
///   switch with NICs can so reach every other one that it is connected to, first up, then down.
/// - Else towards the switch with the least number, breadth first. From there down to any switch
///   there is a way, hence between all.
std::vector<std::int64_t> up_order(const FabricGraph& graph);

}  // namespace foreshard::internal
