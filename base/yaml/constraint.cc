#include "base/yaml/constraint.h"

#include <fmt/format.h>
#include <utility>

#include "base/text.h"

namespace foreshard::yaml {

Constraint positive() {
  return {.lowest = 0, .lowest_excluded = true, .doc = "positive"};
}
Constraint non_negative() {
  return {.lowest = 0, .doc = "not negative"};
}
Constraint non_empty() {
  return {.non_empty = true, .doc = "not empty"};
}
Constraint at_least(double lowest) {
  return {.lowest = lowest, .doc = fmt::format("at least {}", lowest)};
}
Constraint at_most(double highest) {
  return {.highest = highest, .doc = fmt::format("at most {}", highest)};
}
Constraint between(double lowest, double highest) {
  return {.lowest = lowest,
          .highest = highest,
          .doc = fmt::format("between {} and {}", lowest, highest)};
}
Constraint one_of(std::vector<std::string> words) {
  std::string doc = quoted_choice(words, words.size());
  return {.allowed = std::move(words), .doc = std::move(doc)};
}

}  // namespace foreshard::yaml
