#include "strategies/graph/mesh_axes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

namespace foreshard {
namespace {

template <std::size_t kCount>
using AxisNames = std::array<std::string_view, kCount>;
using NameSpan = std::span<const std::string_view>;

constexpr AxisNames<3> kTensorAxes{"tensor", "tensor_experts", "tensor_copies"};
constexpr AxisNames<3> kContextAxes{"context", "context_experts", "context_parts"};
constexpr AxisNames<3> kHeadsAxes{"context_heads", "context_heads_experts", "context_heads_parts"};
constexpr AxisNames<3> kDataAxes{"data", "expert", "expert_parts"};
// Axes of the groups of experts; the first one varies fastest.
constexpr AxisNames<4> kPartsAxes{"tensor", "context_heads_parts", "context_parts", "expert_parts"};
constexpr AxisNames<4> kExpertsAxes{"tensor_experts", "context_heads_experts", "context_experts",
                                    "expert"};

std::vector<Axis> axes_named(const std::vector<MeshAxis>& mesh, NameSpan names) {
  std::vector<Axis> found;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (std::ranges::find(names, mesh[axis].name) != names.end())
      found.push_back(static_cast<Axis>(axis));
  return found;
}

std::vector<Axis> axes_named(const std::vector<MeshAxis>& mesh, std::string_view name) {
  return axes_named(mesh, NameSpan(&name, 1));
}

// Reverses axes in the mesh's order: the last one varies slowest and is the major one.
std::vector<Axis> major_first(std::vector<Axis> axes) {
  std::ranges::reverse(axes);
  return axes;
}

std::vector<Axis> last_first(const std::vector<MeshAxis>& mesh, NameSpan names) {
  std::vector<Axis> axes;
  for (auto name = names.rbegin(); name != names.rend(); ++name)
    std::ranges::copy(axes_named(mesh, *name), std::back_inserter(axes));
  return axes;
}

}  // namespace

Parameters kind_of(const Graph& graph, TensorId parameter) {
  const bool is_of_experts = std::ranges::any_of(graph.operators, [&](const Operator& op) {
    return (op.part == LayerPart::kExpertsUp || op.part == LayerPart::kExpertsDown) &&
           std::ranges::find(op.inputs, parameter) != op.inputs.end();
  });
  return is_of_experts ? Parameters::kExperts : Parameters::kAllElse;
}

std::vector<Axis> tensor_axes(const std::vector<MeshAxis>& mesh) {
  return major_first(axes_named(mesh, kTensorAxes));
}

std::vector<Axis> expert_tensor_axes(const std::vector<MeshAxis>& mesh) {
  return last_first(mesh, kPartsAxes);
}

std::vector<Axis> expert_axes(const std::vector<MeshAxis>& mesh) {
  return last_first(mesh, kExpertsAxes);
}

std::vector<Axis> sample_axes(const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = axes_named(mesh, kDataAxes);
  std::ranges::copy(axes_named(mesh, "replica"), std::back_inserter(axes));
  std::ranges::sort(axes);
  return axes;
}

std::vector<Axis> context_axes(const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = major_first(axes_named(mesh, kContextAxes));
  std::ranges::copy(major_first(axes_named(mesh, kHeadsAxes)), std::back_inserter(axes));
  return axes;
}

bool exchanges_heads(const MeshAxis& axis) {
  return std::ranges::find(kHeadsAxes, axis.name) != kHeadsAxes.end();
}

// Axes along which copies lie within one set of shards, that is without "replica". Ascending.
static std::vector<Axis> copies_in_set(const std::vector<MeshAxis>& mesh, Parameters of) {
  std::vector<Axis> axes = context_axes(mesh);
  std::ranges::copy(axes_named(mesh, kDataAxes), std::back_inserter(axes));
  if (of == Parameters::kExperts) axes = without(std::move(axes), {expert_tensor_axes(mesh)});
  if (of != Parameters::kAllElse)
    std::ranges::copy(axes_named(mesh, "tensor_copies"), std::back_inserter(axes));
  std::ranges::sort(axes);
  return axes;
}

std::vector<Axis> copy_axes(const std::vector<MeshAxis>& mesh, Parameters of) {
  std::vector<Axis> axes = copies_in_set(mesh, of);
  std::ranges::copy(axes_named(mesh, "replica"), std::back_inserter(axes));
  if (of != Parameters::kAllElse)
    std::ranges::copy(axes_named(mesh, kWholeExperts), std::back_inserter(axes));
  std::ranges::sort(axes);
  return axes;
}

std::vector<Axis> shard_axes(const std::vector<MeshAxis>& mesh, Parameters of) {
  if (of == Parameters::kExperts && !axes_named(mesh, kWholeExperts).empty()) return {};
  return copies_in_set(mesh, of);
}

bool are_whole_experts(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies) {
  return std::ranges::any_of(copies, [&](Axis axis) {
    return mesh[static_cast<std::size_t>(axis)].name == kWholeExperts;
  });
}

std::vector<Axis> cut_axes(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies) {
  if (are_whole_experts(mesh, copies)) return {};
  std::vector<Axis> cut;
  std::ranges::set_intersection(copies, shard_axes(mesh, Parameters::kAny),
                                std::back_inserter(cut));
  return cut;
}

std::vector<Axis> split_axes(const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = tensor_axes(mesh);
  std::ranges::copy(expert_axes(mesh), std::back_inserter(axes));
  std::ranges::copy(expert_tensor_axes(mesh), std::back_inserter(axes));
  std::ranges::copy(axes_named(mesh, "pipeline"), std::back_inserter(axes));
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::vector<Axis> without(std::vector<Axis> axes, const std::vector<std::vector<Axis>>& dims) {
  for (const auto& split : dims)
    for (const Axis axis : split) std::erase(axes, axis);
  return axes;
}

}  // namespace foreshard
