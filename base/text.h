/// \file
/// Small helpers for messages to users: the nearest legal name for a misspelt one, plurals, and
/// lists of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// The fewest insertions, deletions, substitutions and swaps of neighbouring characters that turn
/// `a` into `b` (the optimal-string-alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that a person who typed `word` most likely meant, ignoring case: an exact match;
/// else the shortest candidate that continues the word ("H100-SXM" for "h100"); else the first with
/// the smallest distance, at most a third of the word's length (at least 1); else the first that
/// `word` abbreviates ("tp" for "tensor_parallel") or contains word by word.
/// \return nothing if no candidate is that near, or if the word is empty or longer than 100.
std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& candidates);

/// `text` with ASCII letters in lower case; other bytes stay.
std::string lower_case(std::string_view text);

/// Whether `part` occurs in `text`.
bool contains(std::string_view text, std::string_view part);

/// The noun as it stands after `count`, without the count: "class" after 1, otherwise "classes".
std::string plural(std::int64_t count, std::string_view noun);

/// "a, b, c"; empty for no words.
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// "'a', 'b' or 'c'"; empty for no words. After `most` words follows "... (17 more)".
std::string quoted_choice(const std::vector<std::string>& words, std::size_t most = 12);

}  // namespace foreshard
