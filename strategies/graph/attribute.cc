// Distributed attributes: how one tensor is divided over the axes of a process mesh. The rules of
// operators (rule.h), layouts (layout.h) and the lowering to programs use these helpers; messages
// show an attribute as `describe` writes it.
#include "strategies/graph/attribute.h"

#include <algorithm>

#include "base/check.h"

namespace foreshard {

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
  }
  return "";
}

std::vector<Partial> sums_over(const std::vector<Axis>& axes) {
  std::vector<Partial> partial;
  partial.reserve(axes.size());
  for (const Axis axis : axes) partial.push_back({axis, Reduction::kSum});
  return partial;
}

std::vector<Axis> axes_of(const std::vector<Partial>& partial) {
  std::vector<Axis> axes;
  axes.reserve(partial.size());
  for (const Partial& each : partial) axes.push_back(each.axis);
  return axes;
}

Axis axis_of(const std::vector<MeshAxis>& mesh, std::string_view name) {
  const auto it = std::ranges::find(mesh, name, &MeshAxis::name);
  FORESHARD_CHECK(it != mesh.end());
  return static_cast<Axis>(it - mesh.begin());
}

Attribute replicated(std::size_t dimensions) {
  return Attribute{.dims = std::vector<std::vector<Axis>>(dimensions)};
}

AxisState state_of(const Attribute& attribute, Axis axis) {
  for (std::size_t d = 0; d < attribute.dims.size(); ++d) {
    if (std::ranges::find(attribute.dims[d], axis) != attribute.dims[d].end())
      return {AxisState::Kind::kSplit, static_cast<std::int32_t>(d)};
  }
  const auto partial = std::ranges::find(attribute.partial, axis, &Partial::axis);
  if (partial != attribute.partial.end())
    return {AxisState::Kind::kPartial, -1, partial->reduction};
  return {};  // replicated
}

std::int64_t ways(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  std::int64_t product = 1;
  for (const Axis axis : axes) product *= mesh[static_cast<std::size_t>(axis)].size;
  return product;
}

std::vector<std::int64_t> local_shape(const std::vector<std::int64_t>& shape,
                                      const Attribute& attribute,
                                      const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(shape.size() == attribute.dims.size() && attribute.sizes.empty());
  std::vector<std::int64_t> local = shape;
  for (std::size_t d = 0; d < local.size(); ++d) {
    const std::int64_t parts = ways(attribute.dims[d], mesh);
    FORESHARD_CHECK(local[d] % parts == 0);
    local[d] /= parts;
  }
  return local;
}

std::string describe(const Attribute& attribute, const std::vector<MeshAxis>& mesh) {
  const auto names = [&](const std::vector<Axis>& axes) {
    std::string text;
    for (const Axis axis : axes)
      text += (text.empty() ? "" : ", ") + mesh[static_cast<std::size_t>(axis)].name;
    return text;
  };
  std::string text = "[";
  for (std::size_t d = 0; d < attribute.dims.size(); ++d) {
    if (d > 0) text += ", ";
    text += attribute.dims[d].empty() ? "-" : "S(" + names(attribute.dims[d]) + ")";
    if (d >= attribute.sizes.size() || attribute.sizes[d].empty()) continue;
    text += "{";
    for (std::size_t i = 0; i < attribute.sizes[d].size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(attribute.sizes[d][i]);
    text += "}";
  }
  text += "]";
  // A sum, the usual reduction, is written "partial(axes)"; the others by their names.
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    std::vector<Axis> axes;
    for (const Partial& partial : attribute.partial)
      if (partial.reduction == reduction) axes.push_back(partial.axis);
    if (axes.empty()) continue;
    text +=
        reduction == Reduction::kSum ? " partial(" : " " + std::string(name_of(reduction)) + "(";
    text += names(axes) + ")";
  }
  return text;
}

}  // namespace foreshard
