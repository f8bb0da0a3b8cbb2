/// \file
/// The steps to which a conversion in a graph is lowered: from one attribute to another on the same
/// mesh, by collectives along its axes and local steps.
/// Not modelled: collective permutes (to change the order of a dimension's axes, the tensor is
/// gathered and cut again).
///
///     steps_within({DType::kBf16, {8192, 4096}}, from, to, mesh)   // for example two steps:
///     // reduce_scatter(tensor), all_gather(data)
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

// The direct conversion from one even attribute to another on the same mesh: each axis that
// differs is converted by the one primitive that its pair of states (split, partial, replicated)
// determines (requirement R2.4, README.md). Axes with the same primitive form one group: one
// collective among all ranks that differ only in these axes. It uses no prices and builds no
// layouts, so that the search can call it millions of times. `candidates` finds the cheapest
// composition (plan.h, whose table has the primitives' bytes).
//
// Source: frameworks reduce over such joint groups: NVIDIA/Megatron-LM,
// megatron/core/parallel_state.py (RankGenerator.get_ranks("dp-cp"), the expert groups);
// pytorch/pytorch, torch/distributed/device_mesh.py (DeviceMesh._flatten).
//
// | axis, from -> to        | primitive      |
// |-------------------------|----------------|
// | partial -> replicated   | all_reduce     |
// | partial -> split        | reduce_scatter |
// | split -> replicated     | all_gather     |
// | split(i) -> split(j)    | all_to_all     |
// | replicated -> split     | slice          |
// | -> partial              | pad            |

/// One primitive on a group of axes. `volume` is one group's.
struct AxesStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending, without axes of one rank.
  Volume volume{};
};

/// The steps from `from` to `to`. Steps that shrink a rank's slice come first (slices, then
/// reduce-scatters), then all-to-alls, then steps that keep or grow it (all-reduces, all-gathers,
/// pads), so that every step moves as few bytes as possible. Summands with different reductions are
/// reduced separately. All-to-alls are joined if their axes all leave one dimension, or all enter
/// one: only then does each rank send equally much to every other rank. The order of two axes
/// within a dimension is ignored. Not modelled: local copies that pack the pieces.
/// \pre both attributes fit `shape` and `mesh` and are even
std::vector<AxesStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

/// One primitive on some axes of the attributes' mesh.
struct MeshStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending.
  Attribute from{};
  Attribute to{};
  Volume volume{};  ///< Volume of one group.
};

/// The direct steps where they can run one after another, else the series of primitives that moves
/// the fewest bytes over links. Direct steps are impossible where slices have unequal sizes, where
/// a major axis of a dimension would change while a minor one stays (the state in between is not a
/// slice), or where the source's and the target's summands have different reductions. Node
/// boundaries within an axis are ignored.
/// \pre both attributes fit the tensor's shape and the mesh (layout.h)
std::vector<MeshStep> steps_within(const TensorSpec& tensor, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

/// The series that takes the least time by `price`; the result of `steps_within` if no series is
/// faster or none has a price.
/// \pre as for steps_within
std::vector<MeshStep> fastest_within(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const ProcessMesh& mesh,
                                     const StepPrice& price);

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
