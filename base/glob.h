/// \file
/// Patterns of names in which '*' stands for any text, or none.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace foreshard {

/// Whether all of `text` matches `pattern`. `step` compares what stands between stars: given the
/// rest of the pattern and the rest of the text, it returns how many characters the first element
/// of each takes, or nothing if the two elements differ; an empty rest has no element.
/// Cost: O(pattern * text): after a failure only the last star has to take more text, because the
/// pattern between an earlier star and the next one has already matched at its first possible
/// place.
template <class Step>
bool matches_glob(std::string_view pattern, std::string_view text, Step step) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (const auto taken = step(pattern.substr(p), text.substr(t))) {
      p += taken->first;
      t += taken->second;
    } else if (star != std::string_view::npos && resume < text.size()) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return true;
}

using GlobStep = std::optional<std::pair<std::size_t, std::size_t>>;

/// A step by one letter: both letters must be equal, unless the pattern's is `any`.
inline GlobStep letter_step(std::string_view pattern, std::string_view text, char any = '*') {
  if (pattern.empty() || text.empty()) return std::nullopt;
  if (pattern.front() != any && pattern.front() != text.front()) return std::nullopt;
  return std::pair<std::size_t, std::size_t>(1, 1);
}

}  // namespace foreshard
