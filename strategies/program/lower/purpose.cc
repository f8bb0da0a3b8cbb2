// The purpose of communication, by the mesh axes along which its ranks differ; callers are the
// blocks of passes, of the optimizer and of rings.
#include "strategies/program/lower/purpose.h"

#include <algorithm>

#include "strategies/graph/mesh_axes.h"

namespace foreshard::lower {
namespace {

bool has_axis(const std::vector<Axis>& axes, Axis axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

}  // namespace

program::Purpose purpose_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  const MeshAxis& outermost = mesh[static_cast<std::size_t>(*std::ranges::max_element(axes))];
  if (outermost.name.starts_with("tensor") || outermost.name.ends_with("_parts"))
    return program::Purpose::kTensor;
  if (outermost.name.starts_with("context")) return program::Purpose::kContext;
  if (outermost.name == "pipeline") return program::Purpose::kPipeline;
  return program::Purpose::kData;
}

program::Purpose purpose_of_states(const std::vector<Axis>& axes,
                                   const std::vector<MeshAxis>& mesh) {
  const std::vector<Axis> copies = copy_axes(mesh, Parameters::kAny);
  const bool is_of_copies =
      std::ranges::any_of(axes, [&](Axis axis) { return has_axis(copies, axis); });
  return is_of_copies ? program::Purpose::kData : purpose_of(axes, mesh);
}

bool exchanges_tokens(const reshard::MeshStep& step, const std::vector<MeshAxis>& mesh) {
  if (step.primitive != reshard::Primitive::kAllToAll) return false;
  const std::vector<Axis> experts = expert_axes(mesh);
  return std::ranges::all_of(step.axes, [&](Axis axis) {
    return has_axis(experts, axis) &&
           (has_axis(step.from.dims[0], axis) || has_axis(step.to.dims[0], axis));
  });
}

}  // namespace foreshard::lower
