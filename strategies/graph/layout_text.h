/// \file
/// Layouts as text on one line, for the command line:
///
///     layout  = [axis {"," axis}] ["@" ranks] "[" [dim {"," dim}] "]" {partial}
///     axis    = NAME "=" SIZE                         the first varies fastest over the ranks
///     ranks   = range {"," range}                     default: 0 to the number of ranks - 1
///     range   = RANK ["-" RANK]
///     dim     = "-" | (NAME {"+" NAME} | "-") ["~" | "{" SIZE {"," SIZE} "}"]
///     partial = ("sum" | "max" | "min") "(" NAME {"," NAME} ")"
///
///     tp=4,dp=2 @0-7 [-, dp+tp]         columns over both axes, dp the major one
///     tp=4 [tp{3,3,2,2}, -]             rows in slices of 3, 3, 2 and 2
///     tp=4 @0,8,16,24 [tp~, -]          as equal as can be (of 10 rows: 3, 3, 2, 2)
///     tp=4 [-, -] sum(tp)               every rank holds a summand
///
/// A NAME has letters, digits, `_`, `.` and `'`, and begins with a letter or `_`. Blanks between
/// the parts do not matter. `parse_layout` reads back what `describe(layout)` (layout.h) writes.
#pragma once

#include <string_view>

#include "base/result.h"

#include "strategies/graph/layout.h"

namespace foreshard {

/// Cost: O(text + ranks).
/// \return kInvalidInput, with a caret under the place, if the text breaks the grammar or names an
///     axis that it does not declare; also, with the message of `fault_in(layout, shape)`, if the
///     layout does not fit a tensor of `shape`. At most 2^22 ranks.
Result<Layout> parse_layout(std::string_view text, const Shape& shape);

}  // namespace foreshard
