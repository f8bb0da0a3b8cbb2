#include "base/text.h"

#include <algorithm>

#include "base/other_names.h"

// Texts are bytes: case and length know ASCII only. nearest_name() finds the "did you mean" for
// unknown keys, options and names; plural(), join() and quoted_choice() build messages everywhere.

namespace foreshard {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes: a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view word,
                                        const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 100;  // Longer words are not worth a quadratic search.
  if (word.empty() || word.size() > kLongestName) return std::nullopt;
  const std::string wanted = lower_case(word);
  const std::size_t largest_accepted = std::max<std::size_t>(1, word.size() / 3);  // edits
  std::optional<std::string> nearest;         // the first candidate with the fewest edits
  std::size_t fewest = largest_accepted + 1;  // edits from the word to `nearest`
  std::optional<std::string> longer;  // the shortest candidate that is the word and more words
  for (const std::string& candidate : candidates) {
    const std::string low = lower_case(candidate);
    const bool goes_on = low.size() > wanted.size() && low.starts_with(wanted) &&
                         std::string_view("-_.").find(low[wanted.size()]) != std::string::npos;
    if (goes_on && (!longer || candidate.size() < longer->size())) longer = candidate;
    const std::size_t distance = edit_distance(wanted, low);
    if (distance < fewest) {
      fewest = distance;
      nearest = candidate;
    }
  }
  // First an exact match (no edit), then a longer candidate, a near spelling, an abbreviation.
  if (longer && fewest > 0) return longer;
  if (nearest) return nearest;
  return named_elsewhere(wanted, candidates);
}

std::string plural(std::int64_t count, std::string_view noun) {
  if (count == 1) return std::string(noun);
  if (noun.size() > 1 && noun.ends_with('y') &&
      std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos)
    return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  const bool hisses =
      noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") || noun.ends_with("sh");
  return std::string(noun) + (hisses ? "es" : "s");
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) result += separator;
    result += words[i];
  }
  return result;
}

std::string quoted_choice(const std::vector<std::string>& words, std::size_t most) {
  const std::size_t shown = std::min(words.size(), most);
  std::string result;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) result += i + 1 == words.size() ? " or " : ", ";
    result += "'" + words[i] + "'";
  }
  if (shown < words.size()) result += ", ... (" + std::to_string(words.size() - shown) + " more)";
  return result;
}

}  // namespace foreshard
