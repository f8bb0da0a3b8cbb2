// The texts that the YAML reader has read, for diagnostics.cc, which prints places in them and
// their lines. A Mark counts lines from 0 and bytes of a line from 0; what is printed counts lines
// and characters from 1. A value of `--set` has no line; a line beyond the text is empty.
#include "base/yaml/internal/sources.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace foreshard::yaml::internal {
namespace {

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Columns on a screen: one for each UTF-8 character, which is right for most writing systems.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

// `count` characters of `text` from the character `first` (counted from 0) on; control characters
// become blanks.
std::string slice(std::string_view text, std::size_t first, std::size_t count) {
  std::string result;
  std::size_t at = 0;
  for (const char c : text) {
    if (!continues_character(c)) ++at;
    if (at <= first) continue;
    if (at > first + count) break;
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return result;
}

}  // namespace

int Sources::add(Source source) {
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i < source.text.size(); ++i)
    if (source.text[i] == '\n') starts.push_back(i + 1);
  sources_.push_back(std::move(source));
  line_starts_.push_back(std::move(starts));
  return static_cast<int>(sources_.size()) - 1;
}

std::string_view Sources::line_of(const Mark& mark) const {
  const auto& starts = line_starts_[static_cast<std::size_t>(mark.source)];
  const std::string_view text = (*this)[mark.source].text;
  const auto line = static_cast<std::size_t>(std::max(mark.line, 0));
  if (line >= starts.size()) return {};
  std::string_view result = text.substr(starts[line]);
  result = result.substr(0, result.find('\n'));
  if (result.ends_with('\r')) result.remove_suffix(1);
  return result;
}

std::string Sources::place(const Mark& mark) const {
  const Source& source = (*this)[mark.source];
  if (source.is_override) return source.name;  // "--set KEY": there is no line
  const auto before = line_of(mark).substr(0, static_cast<std::size_t>(std::max(mark.column, 0)));
  return fmt::format("{}:{}:{}", source.name, mark.line + 1, characters(before) + 1);
}

std::string Sources::excerpt(const Mark& mark, std::size_t width) const {
  if ((*this)[mark.source].is_override) return {};
  const std::string_view line = line_of(mark);
  const auto column = std::min(static_cast<std::size_t>(std::max(mark.column, 0)), line.size());
  const auto length = static_cast<std::size_t>(std::max(mark.length, 1));
  const std::size_t at = characters(line.substr(0, column));
  const std::size_t all = characters(line);
  const std::size_t marked = std::max<std::size_t>(1, characters(line.substr(column, length)));

  const std::string margin = fmt::format("{:>4} | ", mark.line + 1);
  const std::string margin_below = std::string(margin.size() - 2, ' ') + "| ";
  const std::size_t room = std::max<std::size_t>(20, width - std::min(width, margin.size()));
  std::size_t first = 0;
  std::string prefix;
  std::string suffix;
  std::size_t shown = all;
  if (all > room) {  // a part of the line, with the mark after a third of the room
    constexpr std::size_t kEllipsis = 3;
    if (at > room / 2) {
      first = at - room / 3;
      prefix = "...";
    }
    shown = room - kEllipsis - prefix.size();
    if (first + shown < all) suffix = "...";
  }
  const std::size_t before = prefix.size() + (at - first);
  const std::size_t end = first + shown;
  const std::size_t carets = std::min(marked, std::max<std::size_t>(1, end - std::min(at, end)));
  return margin + prefix + slice(line, first, shown) + suffix + "\n" + margin_below +
         std::string(before, ' ') + std::string(carets, '^');
}

}  // namespace foreshard::yaml::internal
