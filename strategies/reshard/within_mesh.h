/// \file
/// The composition that a graph's conversion is lowered to, and executed by (R2.3, R2.6, R2.7):
/// from one attribute to another on the same mesh by collectives along its axes and local steps.
/// Not modelled: collective permutes (a change of the order of a dimension's axes is gathered and
/// cut again).
///
///     steps_within({DType::kBf16, {8192, 4096}}, from, to, mesh)   // for example two steps:
///     // reduce_scatter(tensor), all_gather(data)
#pragma once

#include <vector>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// One primitive on axes of the mesh that the attributes refer to.
struct MeshStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending.
  Attribute from{};
  Attribute to{};
  Volume volume{};  ///< Of one group.
};

/// The direct steps (direct.h) where they can be taken one after another, else the series of
/// primitives that moves the least bytes over links. Direct steps cannot where slices are of
/// unequal size, or where a major axis of a dimension would change below a minor one (what lies
/// between is no slice), or where summands are to be reduced in another way. Node boundaries within
/// an axis are not regarded.
/// \pre both attributes fit the tensor's shape and the mesh (layout.h).
std::vector<MeshStep> steps_within(const TensorSpec& tensor, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

/// The series that takes the least time by `price`; `steps_within` where none takes less, and where
/// no series has a price.
/// \pre as above.
std::vector<MeshStep> fastest_within(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const ProcessMesh& mesh,
                                     const StepPrice& price);

}  // namespace foreshard::reshard
