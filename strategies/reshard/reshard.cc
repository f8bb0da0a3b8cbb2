#include "strategies/reshard/reshard.h"

#include <algorithm>
#include <array>

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

std::string_view name_of(Primitive primitive) {
  constexpr std::array<std::string_view, 6> kNames{"all_reduce", "reduce_scatter", "all_gather",
                                                   "all_to_all", "slice",          "pad"};
  return kNames[static_cast<std::size_t>(primitive)];
}

std::optional<program::CollectiveKind> collective_of(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAllReduce:
      return program::CollectiveKind::kAllReduce;
    case Primitive::kReduceScatter:
      return program::CollectiveKind::kReduceScatter;
    case Primitive::kAllGather:
      return program::CollectiveKind::kAllGather;
    case Primitive::kAllToAll:
      return program::CollectiveKind::kAllToAll;
    case Primitive::kSlice:
    case Primitive::kPad:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<Step> plan(const std::vector<std::int64_t>& shape, Bytes element, const Attribute& from,
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

  std::vector<Step> steps;
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
      Step step{.primitive = *primitive, .axis = axis, .logical = held};
      switch (*primitive) {
        case Primitive::kAllReduce:
          step.patent_total = held * (2 * p);
          step.exact_total = held * (2 * (p - 1));
          break;
        case Primitive::kReduceScatter:
        case Primitive::kAllGather:
          step.patent_total = held * p;
          step.exact_total = held * (p - 1);
          break;
        case Primitive::kAllToAll:
          step.patent_total = held;
          step.exact_total = held * ((p - 1) / p);
          break;
        case Primitive::kSlice:
        case Primitive::kPad:
          break;
      }
      steps.push_back(step);
    }
  }
  return steps;
}

}  // namespace foreshard::reshard
