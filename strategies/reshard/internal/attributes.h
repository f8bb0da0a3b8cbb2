/// \file
/// Small changes of attributes on one mesh, without its ranks: removing the minor axes of a
/// dimension, and appending one. Only the minor end of a dimension may change, so that every slice
/// stays one box.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard::reshard::internal {

/// The tensor's shape and the mesh axes to which all attributes here refer. Holds references only.
struct Grid {
  const Shape& shape;
  const std::vector<MeshAxis>& axes;

  std::int64_t size(Axis axis) const { return axes[static_cast<std::size_t>(axis)].size; }
};

/// The attribute in its canonical form, for comparison: without axes of size 1, and without sizes
/// where the dimension is cut evenly.
Attribute canonical(Attribute attribute, const Grid& grid);

/// Extents of the slices of `dim`.
std::vector<std::int64_t> sizes_of(const Attribute& attribute, const Grid& grid, std::size_t dim);

/// The largest extent of the slices of each dimension.
std::vector<std::int64_t> extents_of(const Attribute& attribute, const Grid& grid);

/// Sums of every `run` neighbouring sizes: the sizes after removing minor axes with `run` parts
/// together.
std::vector<std::int64_t> merged(const std::vector<std::int64_t>& sizes, std::int64_t run);

/// Number of leading axes of `dim` in which `attribute` equals `guide`, with the same slices.
std::size_t settled(const Attribute& attribute, const Attribute& guide, const Grid& grid,
                    std::size_t dim);

/// The attribute without the last `count` axes of `dim`.
Attribute without_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                        std::size_t count);

enum class Cut : std::uint8_t { kEven, kBalanced };
/// The attribute with `axis` as the new minor axis of `dim`. If the axes are then the first axes of
/// `guide`'s dimension, the cut is `guide`'s (empty if its slices do not fit into the present
/// ones). Else every slice is cut evenly (empty if that is impossible), or with Cut::kBalanced as
/// evenly as possible.
std::optional<Attribute> with_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                                    Axis axis, const Attribute& guide, Cut cut);

/// The attribute with `axis`, which `guide` does not split, as minor axis of some dimension. Among
/// the dimensions that it cuts evenly: the first that does not wait for an axis of `guide`, else
/// the first. If it cuts none evenly: the longest, balanced. Empty only for a tensor without
/// dimensions.
std::optional<Attribute> parked(const Attribute& attribute, const Grid& grid, Axis axis,
                                const Attribute& guide);

/// The attribute with all of `axes` appended where `guide` has them; empty unless all fit there
/// now.
std::optional<Attribute> placed(const Attribute& attribute, const Grid& grid,
                                const std::vector<Axis>& axes, const Attribute& guide);

bool contains(const std::vector<Axis>& axes, Axis axis);

/// The dimension that `axis` splits, or -1.
std::int32_t dim_of(const Attribute& attribute, Axis axis);

/// The attribute without partial sums.
Attribute without_partial(Attribute attribute);

}  // namespace foreshard::reshard::internal
