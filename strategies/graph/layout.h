/// \file
/// The complete layout of a tensor: on which ranks it lies and how. A *process mesh* names the
/// ranks; an Attribute states what each axis of the mesh does. Together they determine the slice, a
/// box of the logical tensor, that every rank holds.
///
///     Layout{.mesh = {.axes = {{"tp", 4}}, .ranks = {0, 1, 2, 3}},
///            .attribute = {.dims = {{}, {0}}}}          // columns split over ranks 0 to 3
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/graph/attribute.h"

namespace foreshard {

using Shape = std::vector<std::int64_t>;

/// Ranks on an n-dimensional grid. The first axis varies fastest, as in Program::mesh. The rank at
/// coordinates (c0, c1, ...) is ranks[c0 + n0 (c1 + n1 (...))].
struct ProcessMesh {
  std::vector<MeshAxis> axes{};
  /// Distinct ranks; their number is the product of the axis sizes.
  std::vector<std::int32_t> ranks{};
  bool operator==(const ProcessMesh&) const = default;

  std::int64_t size() const { return static_cast<std::int64_t>(ranks.size()); }
};

/// A mesh over ranks first, first + 1, ...
ProcessMesh mesh_from(std::vector<MeshAxis> axes, std::int32_t first = 0);

struct Layout {
  ProcessMesh mesh{};
  Attribute attribute{};
  bool operator==(const Layout&) const = default;
};

/// Whether ranks hold summands: partial over an axis of more than one rank.
bool is_partial(const Layout& layout);

/// Whole on every rank of `mesh`.
Layout replicated_on(ProcessMesh mesh, std::size_t dimensions);

/// A box of a tensor: half-open ranges, one for each dimension. It is empty if any range is.
struct Box {
  std::vector<std::int64_t> begin{};
  std::vector<std::int64_t> end{};
  auto operator<=>(const Box&) const = default;

  bool empty() const;
  std::int64_t elements() const;
};
Box whole_of(const Shape& shape);
Box intersection(const Box& a, const Box& b);

/// Coordinate along `axis` of the position `position` in the mesh (an index into `ranks`).
std::int64_t coordinate_of(const ProcessMesh& mesh, std::int64_t position, Axis axis);

/// Extents of the slices of dimension `dim`, in order: `sizes`, or equal parts.
/// \pre `fault_in(layout, shape)` is empty.
std::vector<std::int64_t> slice_sizes(const Layout& layout, const Shape& shape, std::size_t dim);

/// The part of the tensor that position `position` of the mesh holds; for a partial tensor it holds
/// summands of that part.
/// \pre `fault_in(layout, shape)` is empty.
Box slice_of(const Layout& layout, const Shape& shape, std::int64_t position);

/// The slices of a layout, prepared once for all positions of its mesh.
/// \pre `fault_in(layout, shape)` is empty. Holds no reference to its arguments.
class Slices {
 public:
  Slices(const Layout& layout, const Shape& shape);

  /// Index of the slice of dimension `dim` that the position holds.
  std::int64_t part_of(std::int64_t position, std::size_t dim) const;
  /// The begins of the slices of `dim`, followed by the end of the last slice.
  const std::vector<std::int64_t>& bounds(std::size_t dim) const { return bounds_[dim]; }
  Box of(std::int64_t position) const;
  /// Begin and end of the position's range in `dim`.
  std::pair<std::int64_t, std::int64_t> range(std::int64_t position, std::size_t dim) const {
    const auto part = static_cast<std::size_t>(part_of(position, dim));
    return {bounds_[dim][part], bounds_[dim][part + 1]};
  }
  /// The largest extent of the slices of `dim`.
  std::int64_t widest(std::size_t dim) const;
  /// Elements of the largest slice: the product over the dimensions of the largest extents.
  std::int64_t largest() const;

 private:
  struct Digit {
    std::int64_t stride;  ///< Stride of the axis in the mesh's positions.
    std::int64_t size;
    std::int64_t weight;  ///< Parts per step of the axis's coordinate.
  };
  std::vector<std::vector<Digit>> digits_{};
  std::vector<std::vector<std::int64_t>> bounds_{};
};

/// Slice extents that are as equal as possible: 10 in 4 parts is 3, 3, 2, 2.
std::vector<std::int64_t> balanced_sizes(std::int64_t extent, std::int64_t parts);

/// The verifier. Returns the first constraint that `layout` breaks for a tensor of `shape`, as a
/// message that names it and says what would be legal; nothing if all hold:
///  1. a mesh has at least one rank, axis sizes are at least 1, their product is the rank count;
///  2. axis names are distinct, and so are ranks, none negative;
///  3. `dims` has an entry for each dimension;
///  4. every axis exists and is used once, over `dims` and `partial` together; `partial` ascends
///     and has one reduction only (the sum of maxima is not the maximum of sums);
///  5. `sizes` is empty or has an entry for each dimension; an entry that is not empty has a
///     non-negative extent for each part, and they add up to the dimension;
///  6. a dimension without `sizes` is divisible by its number of parts.
std::optional<std::string> fault_in(const Layout& layout, const Shape& shape);

/// "tp=4 @0-3 [-, tp] sum(dp)": as parse_layout() reads it back.
std::string describe(const Layout& layout);
/// "0-3,8,10-11"; ranks stay in the given order.
std::string describe_ranks(const std::vector<std::int32_t>& ranks);

// Layouts as text on one line, for the command line:
//
//     layout  = [axis {"," axis}] ["@" ranks] "[" [dim {"," dim}] "]" {partial}
//     axis    = NAME "=" SIZE                         the first varies fastest over the ranks
//     ranks   = range {"," range}                     default: 0 to the number of ranks - 1
//     range   = RANK ["-" RANK]
//     dim     = "-" | (NAME {"+" NAME} | "-") ["~" | "{" SIZE {"," SIZE} "}"]
//     partial = ("sum" | "max" | "min") "(" NAME {"," NAME} ")"
//
//     tp=4,dp=2 @0-7 [-, dp+tp]         columns over both axes, dp the major one
//     tp=4 [tp{3,3,2,2}, -]             rows in slices of 3, 3, 2 and 2
//     tp=4 @0,8,16,24 [tp~, -]          as equal as can be (of 10 rows: 3, 3, 2, 2)
//     tp=4 [-, -] sum(tp)               every rank holds a summand
//
// A NAME has letters, digits, `_`, `.` and `'`, and begins with a letter or `_`. Blanks between
// the parts do not matter. `parse_layout` reads back what `describe(layout)` writes.

/// Cost: O(text + ranks).
/// \return kInvalidInput, with a caret under the place, if the text breaks the grammar or names an
///     axis that it does not declare; also, with the message of `fault_in(layout, shape)`, if the
///     layout does not fit a tensor of `shape`. At most 2^22 ranks.
Result<Layout> parse_layout(std::string_view text, const Shape& shape);

}  // namespace foreshard
