/// \file
/// Small steps between attributes of one mesh, on the attribute alone (no ranks): what remains when
/// the minor axes of a dimension go, and what becomes of it when one is appended. Only the minor
/// end of a dimension may change, so that every slice stays one box.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard::reshard::internal {

/// What all attributes here refer to. Holds references only.
struct Grid {
  const Shape& shape;
  const std::vector<MeshAxis>& axes;

  std::int64_t size(Axis axis) const { return axes[static_cast<std::size_t>(axis)].size; }
};

/// The same slices in the one spelling that is compared: without axes of size 1 and without sizes
/// where the dimension is cut evenly.
Attribute canonical(Attribute attribute, const Grid& grid);

/// Extents of the slices of `dim`.
std::vector<std::int64_t> sizes_of(const Attribute& attribute, const Grid& grid, std::size_t dim);

/// The largest extent of the slices of each dimension.
std::vector<std::int64_t> extents_of(const Attribute& attribute, const Grid& grid);

/// Sums of every `run` neighbours: the sizes once the minor axes, `run` parts together, are gone.
std::vector<std::int64_t> merged(const std::vector<std::int64_t>& sizes, std::int64_t run);

/// How many leading axes of `dim` are those of `guide`, with the same slices.
std::size_t settled(const Attribute& attribute, const Attribute& guide, const Grid& grid,
                    std::size_t dim);

/// Without the last `count` axes of `dim`.
Attribute without_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                        std::size_t count);

enum class Cut : std::uint8_t { kEven, kBalanced };
/// With `axis` as the new minor axis of `dim`: cut as `guide` is where the axes are now the first
/// of guide's (nothing if its slices do not fit into the present ones), else every slice evenly, or
/// as equal as can be.
std::optional<Attribute> with_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                                    Axis axis, const Attribute& guide, Cut cut);

/// With `axis`, which `guide` does not split, as minor axis of some dimension: of those that it
/// cuts evenly the first that waits for no axis of `guide`, else the first; else the longest,
/// balanced. Nothing only for a tensor without dimensions.
std::optional<Attribute> parked(const Attribute& attribute, const Grid& grid, Axis axis,
                                const Attribute& guide);

/// With all of `axes` appended where `guide` has them; nothing unless all fit there now.
std::optional<Attribute> placed(const Attribute& attribute, const Grid& grid,
                                const std::vector<Axis>& axes, const Attribute& guide);

bool contains(const std::vector<Axis>& axes, Axis axis);

/// The dimension that `axis` splits, or -1.
std::int32_t dim_of(const Attribute& attribute, Axis axis);

/// Without partial sums.
Attribute without_partial(Attribute attribute);

}  // namespace foreshard::reshard::internal
