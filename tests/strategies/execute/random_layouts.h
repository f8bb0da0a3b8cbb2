/// \file
/// Random tensors, meshes and layouts, from a seed.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard {

class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}

  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  /// 1 to 4 dimensions of at most 12; one in thirty tensors has an empty dimension.
  Shape shape() {
    Shape shape(static_cast<std::size_t>(1 + below(4)));
    for (auto& extent : shape) extent = one_in(3) ? 1 + below(7) : 2 * (1 + below(6));
    if (one_in(30)) shape[0] = 0;
    return shape;
  }

  /// 1 to 3 axes, at most 24 ranks.
  std::vector<MeshAxis> axes() {
    static const std::vector<std::vector<std::int64_t>> choices{
        {2},    {3},    {4},    {5},       {6},       {8},       {2, 2},    {2, 3},
        {3, 2}, {4, 2}, {2, 4}, {1, 4},    {3, 3},    {6, 2},    {2, 2, 2}, {2, 3, 2},
        {4, 4}, {3, 4}, {8, 2}, {2, 2, 3}, {4, 2, 2}, {2, 1, 4}, {2, 3, 4}, {1}};
    std::vector<MeshAxis> axes;
    for (const auto size :
         choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))])
      axes.push_back({.name = std::string(1, static_cast<char>('a' + axes.size())), .size = size});
    return axes;
  }

  /// Sizes of `parts` slices of `extent`: balanced, or any at all, some of them empty.
  std::vector<std::int64_t> sizes(std::int64_t extent, std::int64_t parts) {
    if (one_in(2)) return balanced_sizes(extent, parts);
    std::vector<std::int64_t> bounds{0, extent};
    for (std::int64_t i = 1; i < parts; ++i) bounds.push_back(below(extent + 1));
    std::ranges::sort(bounds);
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 1; i < bounds.size(); ++i) sizes.push_back(bounds[i] - bounds[i - 1]);
    return sizes;
  }

  Layout on(ProcessMesh mesh, const Shape& shape) {
    Layout layout = replicated_on(std::move(mesh), shape.size());
    Attribute& attribute = layout.attribute;
    const auto reduction = static_cast<Reduction>(below(3));
    std::vector<Axis> order(layout.mesh.axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const Axis axis : order) {
      const auto what = below(8);
      if (what < 5)
        attribute.dims[static_cast<std::size_t>(below(static_cast<std::int64_t>(shape.size())))]
            .push_back(axis);
      else if (what < 6)
        attribute.partial.push_back({axis, reduction});
    }
    std::ranges::sort(attribute.partial);
    attribute.sizes.resize(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto parts = ways(attribute.dims[d], layout.mesh.axes);
      if (shape[d] % parts != 0 || one_in(6)) attribute.sizes[d] = sizes(shape[d], parts);
    }
    if (std::ranges::all_of(attribute.sizes, [](const auto& s) { return s.empty(); }))
      attribute.sizes.clear();
    return layout;
  }

  /// A mesh for the target: the same, the same ranks in another shape, others that overlap or do
  /// not, any order.
  ProcessMesh mesh_after(const ProcessMesh& mesh) {
    const auto kind = below(6);
    if (kind == 0) return mesh;
    ProcessMesh next = mesh_from(axes(), 0);
    if (kind <= 2) {  // One of the same size, if chance finds one.
      for (int i = 0; i < 30 && next.size() != mesh.size(); ++i) next = mesh_from(axes(), 0);
      if (next.size() == mesh.size()) next.ranks = mesh.ranks;
    } else {
      const auto first = static_cast<std::int32_t>(below(mesh.size() + 3));
      std::iota(next.ranks.begin(), next.ranks.end(), first);
    }
    if (one_in(4)) std::shuffle(next.ranks.begin(), next.ranks.end(), random_);
    return next;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace foreshard
