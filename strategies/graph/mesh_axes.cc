#include "strategies/graph/mesh_axes.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace foreshard {
namespace {

constexpr std::array<std::string_view, 3> kSamples{"data", "expert", "replica"};
constexpr std::array<std::string_view, 5> kCopies{"context", "context_heads", "data", "expert",
                                                  "replica"};
constexpr std::array<std::string_view, 4> kShards{"context", "context_heads", "data", "expert"};

template <class Names>
std::vector<Axis> axes_named(const std::vector<MeshAxis>& mesh, const Names& names) {
  std::vector<Axis> found;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (std::ranges::find(names, mesh[axis].name) != names.end())
      found.push_back(static_cast<Axis>(axis));
  return found;
}

}  // namespace

std::vector<Axis> sample_axes(const std::vector<MeshAxis>& mesh) {
  return axes_named(mesh, kSamples);
}
std::vector<Axis> context_axes(const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = axes_named(mesh, std::array<std::string_view, 1>{"context"});
  const auto inner = axes_named(mesh, std::array<std::string_view, 1>{"context_heads"});
  axes.insert(axes.end(), inner.begin(), inner.end());
  return axes;
}
std::vector<Axis> copy_axes(const std::vector<MeshAxis>& mesh) {
  return axes_named(mesh, kCopies);
}
std::vector<Axis> shard_axes(const std::vector<MeshAxis>& mesh) {
  return axes_named(mesh, kShards);
}

std::vector<Axis> split_axes(const std::vector<MeshAxis>& mesh) {
  return axes_named(mesh, std::array<std::string_view, 3>{"expert", "pipeline", "tensor"});
}

std::vector<Axis> without(std::vector<Axis> axes, const std::vector<std::vector<Axis>>& dims) {
  for (const auto& split : dims)
    for (const Axis axis : split) std::erase(axes, axis);
  return axes;
}

}  // namespace foreshard
