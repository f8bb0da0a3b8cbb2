/// \file
/// The steps to which a conversion in a graph is lowered: from one attribute to another on the same
/// mesh, by collectives along its axes and local steps.
/// Not modelled: collective permutes (to change the order of a dimension's axes, the tensor is
/// gathered and cut again).
///
///     steps_within({DType::kBf16, {8192, 4096}}, from, to, mesh)   // for example two steps:
///     // reduce_scatter(tensor), all_gather(data)
#pragma once

#include <vector>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// One primitive on some axes of the attributes' mesh.
struct MeshStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending.
  Attribute from{};
  Attribute to{};
  Volume volume{};  ///< Volume of one group.
};

/// The direct steps (direct.h) where they can run one after another, else the series of primitives
/// that moves the fewest bytes over links. Direct steps are impossible where slices have unequal
/// sizes, where a major axis of a dimension would change while a minor one stays (the state in
/// between is not a slice), or where the source's and the target's summands have different
/// reductions. Node boundaries within an axis are ignored.
/// \pre both attributes fit the tensor's shape and the mesh (layout.h)
std::vector<MeshStep> steps_within(const TensorSpec& tensor, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

/// The series that takes the least time by `price`; the result of `steps_within` if no series is
/// faster or none has a price.
/// \pre as for steps_within
std::vector<MeshStep> fastest_within(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const ProcessMesh& mesh,
                                     const StepPrice& price);

}  // namespace foreshard::reshard
