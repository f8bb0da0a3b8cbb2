/// \file
/// What a value must satisfy beyond its type. A constraint on a list, a map, an optional or a
/// sourced number holds for each value in it; only `non_empty` looks at the container.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace foreshard::yaml {

struct Constraint {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool above_lowest = false;           ///< `lowest` itself is excluded.
  std::vector<std::string> allowed{};  ///< Legal values of a text; empty: all.
  bool non_empty = false;              ///< A text, list or map must not be empty.
  std::string doc{};                   ///< "at least 1": ends "must be ..." in a message.
};

Constraint positive();
Constraint non_negative();
Constraint non_empty();
/// Bounds of counts and ratios; both inclusive.
Constraint at_least(double lowest);
Constraint at_most(double highest);
Constraint between(double lowest, double highest);
/// A text that is one of these words. An enum does not need it.
Constraint one_of(std::vector<std::string> words);

/// Bounds of quantities, with their unit.
template <int B, int S, int F, int J, int D, int K>
Constraint at_least(Quantity<B, S, F, J, D, K> lowest) {
  return {.lowest = lowest.in_base(), .doc = "at least " + format_exact(lowest)};
}
template <int B, int S, int F, int J, int D, int K>
Constraint at_most(Quantity<B, S, F, J, D, K> highest) {
  return {.highest = highest.in_base(), .doc = "at most " + format_exact(highest)};
}

}  // namespace foreshard::yaml
