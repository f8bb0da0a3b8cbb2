/// \file
/// Planners that choose the series of primitives for a conversion within a mesh.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/placement.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::reshard {

/// Maps a tensor, its source and target attributes, and the mesh to steps. `steps_within` is such a
/// planner.
using MeshPlanner = std::function<std::vector<MeshStep>(
    const TensorSpec&, const Attribute&, const Attribute&, const std::vector<MeshAxis>&)>;

/// A planner that calls `fastest_within` with the closed form of `cost` (price.h), where position i
/// of the mesh is rank `ranks[i]`. Packing, unpacking and local steps cost nothing, as in Programs.
/// The planner caches its answers; its copies share the cache.
/// Cost: O(links of the cluster) for each conversion that is not in the cache, beside the search.
/// \pre `ranks` has one rank for each position of the meshes that the planner is asked about, and
///     all ranks have devices. The cost model and the placement's cluster outlive the planner.
MeshPlanner planner_by_time(const CostModel& cost, Placement placement,
                            std::vector<std::int32_t> ranks);

}  // namespace foreshard::reshard
