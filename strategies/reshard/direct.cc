#include "strategies/reshard/direct.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

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

constexpr std::array kOrder{Primitive::kSlice,     Primitive::kReduceScatter, Primitive::kAllToAll,
                            Primitive::kAllReduce, Primitive::kAllGather,     Primitive::kPad};

// The state of an axis before and after.
struct Change {
  Axis axis = 0;
  AxisState from{};
  AxisState to{};
};

// The changes, all by one primitive, that one operation can make together with the first.
std::vector<Change> together(Primitive primitive, const std::vector<Change>& changes) {
  const Change& first = changes.front();
  const auto those = [&](auto alike) {
    std::vector<Change> found;
    std::ranges::copy_if(changes, std::back_inserter(found), alike);
    return found;
  };
  if (primitive != Primitive::kAllToAll)
    return those([&](const Change& change) {
      return change.from.reduction == first.from.reduction &&
             change.to.reduction == first.to.reduction;
    });
  auto reach = those([&](const Change& change) { return change.to.dim == first.to.dim; });
  auto leave = those([&](const Change& change) { return change.from.dim == first.from.dim; });
  return leave.size() > reach.size() ? leave : reach;
}

}  // namespace

std::vector<AxesStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(from.dims.size() == shape.size() && to.dims.size() == shape.size());
  Bytes whole = element;
  for (const std::int64_t extent : shape) whole = whole * static_cast<double>(extent);

  // Ways that the currently split axes divide the tensor.
  double divided = 1;
  std::map<Primitive, std::vector<Change>> changes;
  for (Axis axis = 0; axis < static_cast<Axis>(mesh.size()); ++axis) {
    const std::int64_t ranks = mesh[static_cast<std::size_t>(axis)].size;
    if (ranks == 1) continue;
    const Change change{axis, state_of(from, axis), state_of(to, axis)};
    if (change.from.kind == Kind::kSplit) divided *= static_cast<double>(ranks);
    if (const auto primitive = primitive_for(change.from, change.to))
      changes[*primitive].push_back(change);
  }

  std::vector<AxesStep> steps;
  for (const Primitive primitive : kOrder) {
    std::vector<Change>& left = changes[primitive];
    while (!left.empty()) {
      AxesStep step{.primitive = primitive};
      const std::vector<Change> joint = together(primitive, left);
      for (const Change& change : joint) step.axes.push_back(change.axis);
      std::erase_if(left, [&](const Change& change) {
        return std::ranges::find(step.axes, change.axis) != step.axes.end();
      });
      const auto ranks = static_cast<double>(ways(step.axes, mesh));
      const auto splits = [&](const AxisState Change::*state) {
        double product = 1;
        for (const Change& change : joint)
          if ((change.*state).kind == Kind::kSplit)
            product *= static_cast<double>(mesh[static_cast<std::size_t>(change.axis)].size);
        return product;
      };
      divided /= splits(&Change::from);
      step.volume = volume_of_group(primitive, whole / divided, ranks);
      divided *= splits(&Change::to);
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

}  // namespace foreshard::reshard
