/// \file
/// What a value of a YAML file must satisfy beyond its type. Tables (table.h) attach constraints to
/// their fields; the reader reports what breaks one (internal/reader.cc), and the JSON Schema shows
/// them (schema.cc). A constraint on a list, a map, an optional or a sourced number (a value with
/// its source, sourced.h) holds for each value in it; only `non_empty` looks at the container.
///
///     .optional("count", &P::count, "Number of planes.", yaml::between(1, 64))
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace foreshard::yaml {

struct Constraint {
  /// Bounds of a number; for a quantity in its base unit (bytes, seconds, ...: base/units.h). An
  /// infinite one bounds nothing.
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool lowest_excluded = false;        ///< Whether the value must be larger than `lowest`.
  std::vector<std::string> allowed{};  ///< Legal values of a text; empty: all.
  bool non_empty = false;              ///< A text, list or map must not be empty.
  std::string doc{};                   ///< Text after "must be" in a message: "at least 1".
};

Constraint positive();
Constraint non_negative();
Constraint non_empty();
/// Bounds of counts and ratios; both inclusive.
Constraint at_least(double lowest);
Constraint at_most(double highest);
Constraint between(double lowest, double highest);
/// A text that is one of these words; without words every text is legal. An enum does not need it.
Constraint one_of(std::vector<std::string> words);

/// Bounds of quantities, both inclusive: at_least(1_us). The template's numbers are the exponents
/// of bytes, seconds, flop, joules, dollars and kilograms in the unit.
template <int B, int S, int F, int J, int D, int K>
Constraint at_least(Quantity<B, S, F, J, D, K> lowest) {
  return {.lowest = lowest.in_base(), .doc = "at least " + format_exact(lowest)};
}
template <int B, int S, int F, int J, int D, int K>
Constraint at_most(Quantity<B, S, F, J, D, K> highest) {
  return {.highest = highest.in_base(), .doc = "at most " + format_exact(highest)};
}

}  // namespace foreshard::yaml
