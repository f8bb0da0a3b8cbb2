/// \file
/// Distributed attributes: how one tensor lies on a process mesh (requirement R2.1, broadcast,
/// split and partial per mesh axis; README.md).
///
/// Along each mesh axis a tensor is *split* along one of its dimensions, *partial* (every rank
/// holds a full-sized summand; the value is the reduction over the axis) or *replicated*.
/// Example, mesh {tensor 8, data 4}, activation [batch, sequence, hidden]:
///
///     dims = {{data}, {tensor}, {}}   batch split 4 ways, sequence 8 ways, hidden whole
///
/// An attribute together with a mesh of ranks is a `Layout` (layout.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/program/ir/program.h"

namespace foreshard {

using program::MeshAxis;

/// An axis: its index in the mesh.
using Axis = std::int32_t;

/// How the summands of a partial tensor combine into its value.
enum class Reduction : std::uint8_t { kSum, kMax, kMin };
std::string_view name_of(Reduction reduction);

/// An axis along which a tensor is partial.
struct Partial {
  Axis axis = 0;
  Reduction reduction = Reduction::kSum;
  auto operator<=>(const Partial&) const = default;
};

/// How one tensor is divided over the axes of a mesh.
/// Invariants: an axis occurs at most once, over `dims` and `partial` together; `partial` ascends.
/// layout.h has the verifier.
struct Attribute {
  std::vector<std::vector<Axis>> dims;  ///< Per dimension: the axes that split it, major to minor.
  std::vector<Partial> partial{};
  /// Dimension -> extents of its slices in order, one for each position along its axes; empty for a
  /// dimension that is whole or split evenly. An empty outer vector: all dimensions are.
  std::vector<std::vector<std::int64_t>> sizes{};
  bool operator==(const Attribute&) const = default;
  auto operator<=>(const Attribute&) const = default;
};

/// \pre The mesh has an axis of that name.
Axis axis_of(const std::vector<MeshAxis>& mesh, std::string_view name);

/// A tensor with `dimensions` dimensions, replicated along all axes.
Attribute replicated(std::size_t dimensions);

/// A tensor that is partial along `axes`, which must ascend, and is summed over them.
std::vector<Partial> sums_over(const std::vector<Axis>& axes);
/// The axes of `partial`.
std::vector<Axis> axes_of(const std::vector<Partial>& partial);

/// What the attribute does with `axis`.
struct AxisState {
  enum class Kind : std::uint8_t { kReplicated, kSplit, kPartial } kind = Kind::kReplicated;
  std::int32_t dim = -1;                  ///< Only with kSplit.
  Reduction reduction = Reduction::kSum;  ///< Only with kPartial.
  bool operator==(const AxisState&) const = default;
};
AxisState state_of(const Attribute& attribute, Axis axis);

/// Number of ways in which `axes` split: the product of their sizes.
std::int64_t ways(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

/// The part of `shape` that one rank holds.
/// \pre `attribute` is even: every dimension is divisible by the sizes of its axes (the strategy
///     check sees to it).
std::vector<std::int64_t> local_shape(const std::vector<std::int64_t>& shape,
                                      const Attribute& attribute,
                                      const std::vector<MeshAxis>& mesh);

/// "[S(data), S(tensor), -]", "[-, -] partial(tensor)", "[S(tensor){3,3,2}, -] max(data)".
std::string describe(const Attribute& attribute, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
