/// \file
/// Which series of primitives a conversion within a mesh is carried out by.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/placement.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::reshard {

/// From the tensor, the attributes that it has and is to have, and the mesh. `steps_within` is one.
using MeshPlanner = std::function<std::vector<MeshStep>(
    const TensorSpec&, const Attribute&, const Attribute&, const std::vector<MeshAxis>&)>;

/// `fastest_within` by the closed form of `cost` (price.h), where position i of the mesh is rank
/// `ranks[i]`. Packing, unpacking and local steps are taken to cost nothing, as in Programs. It
/// remembers what it was asked; its copies share that.
/// Cost: O(links of the cluster) for each conversion that is new to it, beside the search.
/// \pre `ranks` has one for each position of the meshes that the planner is asked about, and all
///     have devices. The cost model and the placement's cluster outlive the planner.
MeshPlanner planner_by_time(const CostModel& cost, Placement placement,
                            std::vector<std::int32_t> ranks);

}  // namespace foreshard::reshard
