/// \file
/// Distributed attributes (R1.3, R2.1, R4.1): how one tensor lies on a process mesh.
///
/// Per mesh axis a tensor is *split* along one of its dimensions, *partial* (every rank holds a
/// full sized summand; the value is the sum over the axis) or, if neither, *replicated*. Example,
/// mesh {tensor 8, data 4}, activation [batch, sequence, hidden]:
///
///     dims = {{data}, {tensor}, {}}   batch split 4 ways, sequence 8 ways, hidden whole
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/program/ir/program.h"

namespace foreshard {

using program::MeshAxis;

/// Index of an axis in the mesh.
using Axis = std::int32_t;

/// Invariants: an axis occurs at most once, over `dims` and `partial` together; `partial` ascends.
struct Attribute {
  std::vector<std::vector<Axis>> dims;  ///< Per dimension: the axes that split it, major to minor.
  std::vector<Axis> partial;
  bool operator==(const Attribute&) const = default;
  auto operator<=>(const Attribute&) const = default;
};

/// Replicated everywhere.
Attribute replicated(std::size_t rank);

/// What the attribute does with `axis`.
struct AxisState {
  enum class Kind : std::uint8_t { kReplicated, kSplit, kPartial } kind = Kind::kReplicated;
  std::int32_t dim = -1;  ///< Of kSplit.
  bool operator==(const AxisState&) const = default;
};
AxisState state_of(const Attribute& attribute, Axis axis);

/// Product of the sizes of `axes`.
std::int64_t ways(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

/// The part of `shape` that one rank holds.
/// \pre every dimension is divisible by the sizes of its axes (the strategy check sees to it).
std::vector<std::int64_t> local_shape(const std::vector<std::int64_t>& shape,
                                      const Attribute& attribute,
                                      const std::vector<MeshAxis>& mesh);

/// "[S(data), S(tensor), -]" or "[-, -] partial(tensor)".
std::string describe(const Attribute& attribute, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
