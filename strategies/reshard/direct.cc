#include "strategies/reshard/direct.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace foreshard::reshard {
namespace {

using Kind = AxisState::Kind;

std::optional<Primitive> primitive_for(const AxisState& from, const AxisState& to) {
  if (from == to) return std::nullopt;
  if (to.kind == Kind::kPartial) return Primitive::kPad;
  switch (from.kind) {
    case Kind::kPartial:
      return to.kind == Kind::kSplit ? Primitive::kReduceScatter : Primitive::kAllReduce;
    case Kind::kSplit:
      return to.kind == Kind::kSplit ? Primitive::kAllToAll : Primitive::kAllGather;
    case Kind::kReplicated:
      return Primitive::kSlice;
  }
  return std::nullopt;
}

bool shrinks_or_keeps(Primitive primitive) {
  return primitive == Primitive::kSlice || primitive == Primitive::kReduceScatter ||
         primitive == Primitive::kAllToAll;
}

}  // namespace

std::vector<AxisStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(from.dims.size() == shape.size() && to.dims.size() == shape.size());
  Bytes whole = element;
  for (const std::int64_t extent : shape) whole = whole * static_cast<double>(extent);

  // How many ways the axes that are split right now divide the tensor.
  double divided = 1;
  const auto axes = static_cast<Axis>(mesh.size());
  const auto size = [&](Axis axis) {
    return static_cast<double>(mesh[static_cast<std::size_t>(axis)].size);
  };
  for (Axis axis = 0; axis < axes; ++axis) {
    if (state_of(from, axis).kind == Kind::kSplit) divided *= size(axis);
  }

  std::vector<AxisStep> steps;
  for (const bool shrinking : {true, false}) {
    for (Axis axis = 0; axis < axes; ++axis) {
      const AxisState before = state_of(from, axis);
      const AxisState after = state_of(to, axis);
      const auto primitive = primitive_for(before, after);
      if (!primitive || shrinks_or_keeps(*primitive) != shrinking) continue;
      const double p = size(axis);
      if (before.kind == Kind::kSplit) divided /= p;
      const Bytes held = whole / divided;
      if (after.kind == Kind::kSplit) divided *= p;
      if (p == 1) continue;
      AxisStep step{.primitive = *primitive, .axis = axis};
      step.volume = volume_of_group(*primitive, held, p);
      steps.push_back(step);
    }
  }
  return steps;
}

}  // namespace foreshard::reshard
