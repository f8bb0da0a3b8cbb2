#include "strategies/graph/attribute.h"

#include <algorithm>

#include "base/check.h"

namespace foreshard {

Attribute replicated(std::size_t rank) {
  return Attribute{.dims = std::vector<std::vector<Axis>>(rank), .partial = {}};
}

AxisState state_of(const Attribute& attribute, Axis axis) {
  for (std::size_t d = 0; d < attribute.dims.size(); ++d) {
    if (std::ranges::find(attribute.dims[d], axis) != attribute.dims[d].end())
      return {AxisState::Kind::kSplit, static_cast<std::int32_t>(d)};
  }
  if (std::ranges::find(attribute.partial, axis) != attribute.partial.end())
    return {AxisState::Kind::kPartial, -1};
  return {};
}

std::int64_t ways(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  std::int64_t product = 1;
  for (const Axis axis : axes) product *= mesh[static_cast<std::size_t>(axis)].size;
  return product;
}

std::vector<std::int64_t> local_shape(const std::vector<std::int64_t>& shape,
                                      const Attribute& attribute,
                                      const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(shape.size() == attribute.dims.size());
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
  }
  text += "]";
  if (!attribute.partial.empty()) text += " partial(" + names(attribute.partial) + ")";
  return text;
}

}  // namespace foreshard
