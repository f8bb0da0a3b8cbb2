/// \file
/// Small helpers for messages: lists of words and the nearest legal name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (the
/// optimal-string-alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that a person who typed `word` most likely meant, ignoring case: an exact match;
/// else the shortest candidate that continues the word ("H100-SXM" for "h100"); else the first with
/// the smallest distance, at most a third of the word's length (at least 1); else the first that
/// `word` abbreviates ("tp" for "tensor_parallel") or contains word by word.
std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& candidates);

/// `text` with ASCII letters in lower case; other bytes stay.
std::string lower_case(std::string_view text);

/// Whether `part` occurs in `text`.
bool contains(std::string_view text, std::string_view part);

/// The noun as it stands after `count`: "class" after 1, otherwise "classes".
std::string plural(std::int64_t count, std::string_view noun);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// "'a', 'b' or 'c'"; at most `most` words, then "... (17 more)".
std::string quoted_choice(const std::vector<std::string>& words, std::size_t most = 12);

}  // namespace foreshard
