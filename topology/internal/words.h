/// \file
/// Numbers and words of texts: what importers read, lists of names.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::internal {

/// All of `text` as a whole number; nothing for anything else.
inline std::optional<std::int64_t> whole_number(std::string_view text, int base = 10) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The words between blanks.
inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while ((begin = line.find_first_not_of(" \t\r", begin)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// For messages: plain ASCII, and no longer than a line.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string result;
  for (const char c : text.substr(0, kMost)) result += c < ' ' || c > '~' ? '?' : c;
  return text.size() > kMost ? result + "..." : result;
}

}  // namespace foreshard::internal
