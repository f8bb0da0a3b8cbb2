#include "base/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <span>

#include "base/grouped.h"
#include "base/printable.h"

namespace foreshard {
namespace {

constexpr std::size_t kTableIndent = 2;
constexpr std::size_t kFurtherIndent = 4;  // more than that of what a line belongs to
constexpr std::size_t kGap = 2;            // between columns, if there is room for it; else 1
constexpr std::size_t kNarrowest = 16;     // columns of words become no narrower
constexpr std::size_t kMostLines = 2;  // of a cell, about, before its column stands below others

// Ranges of characters, the first of each and the one behind its last: combining marks, joiners and
// selectors of variants; and those that the C++ standard ([format.string.std]) estimates as wide.
constexpr std::array<char32_t, 10> kNarrow{0x300,  0x370,  0x200B, 0x2010, 0x20D0,
                                           0x2100, 0xFE00, 0xFE10, 0xFE20, 0xFE30};
constexpr std::array<char32_t, 26> kWide{
    0x1100,  0x1160,  0x2329,  0x232B,  0x2E80,  0x303F,  0x3040,  0xA4D0, 0xAC00,
    0xD7A4,  0xF900,  0xFB00,  0xFE30,  0xFE70,  0xFF00,  0xFF61,  0xFFE0, 0xFFE7,
    0x1F300, 0x1F650, 0x1F900, 0x1FA00, 0x20000, 0x2FFFE, 0x30000, 0x3FFFE};

bool is_in(std::span<const char32_t> ranges, char32_t code) {
  return (std::ranges::upper_bound(ranges, code) - ranges.begin()) % 2 == 1;
}

struct Glyph {
  std::size_t bytes;
  std::size_t columns;
};

// The first character of a text in UTF-8 that is not empty, or a change of colour before it.
Glyph first_glyph(std::string_view text) {
  if (text.starts_with("\x1b[")) return {std::min(text.find('m'), text.size() - 1) + 1, 0};
  const auto [code, length] = first_character(text);
  // What is cut in the middle of a character takes one column, like the character that a terminal
  // shows in its place.
  const auto follows = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
  };
  std::size_t bytes = std::max<std::size_t>(length, 1);
  while (length == 0 && bytes < text.size() && follows(bytes)) ++bytes;
  return {bytes, is_in(kNarrow, code) ? 0U : is_in(kWide, code) ? 2U : 1U};
}

// Whether a word has no more than `width` columns. Reads no more of it than that.
bool fits(std::string_view word, std::size_t width) {
  for (std::size_t used = 0; !word.empty();) {
    const Glyph glyph = first_glyph(word);
    used += glyph.columns;
    if (used > width) return false;
    word.remove_prefix(glyph.bytes);
  }
  return true;
}

// Bytes of the first part of a word that is wider than `width`.
std::size_t part_of(std::string_view word, std::size_t width) {
  constexpr std::string_view kSigns = "/-_.,:;=+>";
  std::size_t bytes = 0;
  std::size_t behind_sign = 0;
  for (std::size_t used = 0; bytes < word.size();) {
    const Glyph glyph = first_glyph(word.substr(bytes));
    used += glyph.columns;
    if (used > width && bytes > 0) break;
    bytes += glyph.bytes;
    if (kSigns.find(word[bytes - 1]) != std::string_view::npos) behind_sign = bytes;
  }
  return behind_sign > 0 ? behind_sign : bytes;
}

std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string repeated(std::string_view glyph, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += glyph;
  return text;
}

std::string padded(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(width - std::min(width, columns(text)), ' ');
}

}  // namespace

// Where the columns of a table stand on a page.
class TableLayout {
 public:
  TableLayout(const TextTable& table, std::size_t page) : page_(page), heads_(table.heads_) {
    width_.resize(heads_.size(), 0);
    count(heads_, 1);
    for (const TextTable::Row& row : table.rows_) count(row.cells, 0);
    for (std::size_t begin = 0; begin < width_.size(); begin = bands_.back().end)
      bands_.push_back(narrowed(band_from(begin)));
  }

  std::vector<std::string> lines_of(const std::vector<std::string>& cells) const {
    std::vector<std::string> lines;
    for (const Band& band : bands_) add(lines, band, cells);
    return lines;
  }

 private:
  // Columns side by side.
  struct Band {
    std::size_t begin;
    std::size_t end;
    std::size_t indent;
    std::size_t gap;
  };

  bool is_number(std::size_t c) const { return heads_[c].front() == '>'; }

  // Widens the columns as far as `cells` need. The first `sign` bytes of each cell do not count.
  void count(const std::vector<std::string>& cells, std::size_t sign) {
    for (std::size_t c = 0; c < cells.size(); ++c)
      for (const std::string_view line : lines_in(std::string_view(cells[c]).substr(sign)))
        width_[c] = std::max(width_[c], columns(line));
  }

  std::size_t least(std::size_t c) const {
    return is_number(c) ? width_[c]
                        : std::min(width_[c], std::max(kNarrowest, width_[c] / kMostLines));
  }

  std::size_t gap_before(const Band& band, std::size_t c) const {
    return c > band.begin && width_[c] > 0 ? band.gap : 0;
  }

  std::size_t needed(const Band& band) const {
    std::size_t columns = band.indent;
    for (std::size_t c = band.begin; c < band.end; ++c) columns += gap_before(band, c) + width_[c];
    return columns;
  }

  // The columns from `begin` on that fit side by side once columns of words are at their narrowest.
  Band band_from(std::size_t begin) const {
    Band band{begin, begin, kTableIndent + (begin > 0 ? kFurtherIndent : 0), 1};
    std::size_t used = band.indent;
    std::size_t gaps = 0;
    for (; band.end < width_.size(); ++band.end) {
      const std::size_t more = gap_before(band, band.end) + least(band.end);
      if (used + more > page_ && band.end > begin) break;
      used += more;
      gaps += gap_before(band, band.end);
    }
    if (used + gaps <= page_) band.gap = kGap;
    return band;
  }

  // The widest columns of words give way until the band fits.
  Band narrowed(Band band) {
    for (std::size_t over = needed(band); over > page_; --over) {
      std::size_t* widest = nullptr;
      for (std::size_t c = band.begin; c < band.end; ++c)
        if (!is_number(c) && (widest == nullptr || width_[c] > *widest)) widest = &width_[c];
      if (widest == nullptr || *widest == 1) break;
      --*widest;
    }
    return band;
  }

  void add(std::vector<std::string>& lines, const Band& band,
           const std::vector<std::string>& cells) const {
    std::vector<std::vector<std::string>> parts(band.end);
    std::size_t height = 0;
    for (std::size_t c = band.begin; c < std::min(band.end, cells.size()); ++c) {
      if (cells[c].empty()) continue;
      for (const std::string_view line : lines_in(cells[c]))
        std::ranges::move(wrapped(line, width_[c]), std::back_inserter(parts[c]));
      height = std::max(height, parts[c].size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string& line = lines.emplace_back(band.indent, ' ');
      for (std::size_t c = band.begin; c < band.end; ++c) {
        const std::string text = i < parts[c].size() ? parts[c][i] : "";
        line.append(gap_before(band, c) + (is_number(c) ? width_[c] - columns(text) : 0), ' ');
        line += is_number(c) ? text : padded(text, width_[c]);
      }
    }
  }

  std::size_t page_;
  const std::vector<std::string>& heads_;
  std::vector<std::size_t> width_;
  std::vector<Band> bands_;
};

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    count += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return count;
}

std::string Page::toned(std::string_view text, Tone tone) const {
  constexpr std::array<int, 7> kCodes{0, 1, 2, 32, 33, 31, 36};  // in the order of Tone
  if (!paper_.colour || tone == Tone::kPlain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

void Page::put(std::string_view line) {
  const auto end = line.find_last_not_of(' ');
  text_ += line.substr(0, end == std::string_view::npos ? 0 : end + 1);
  text_ += '\n';
  is_below_line_ = end != std::string_view::npos;
}

void Page::line(std::string_view text) {
  for (const std::string_view one : lines_in(text)) {
    const std::size_t indent = std::min(one.find_first_not_of(' '), one.size());
    const std::size_t further = indent > 0 ? indent + kTableIndent : 0;
    std::string begin(indent, ' ');
    for (const std::string& part : wrapped(one.substr(indent), paper_.width - further)) {
      put(begin + part);
      begin.assign(further, ' ');
    }
  }
}

void Page::add(std::string_view text) {
  if (!text.empty()) line(text.substr(0, text.size() - 1));
}

void Page::verbatim(std::string_view text) {
  for (const std::string_view one : lines_in(text)) put(one);
}

void Page::heading(std::string_view text, std::string_view remark) {
  line();
  const std::size_t gap = paper_.width - std::min(paper_.width, columns(text) + columns(remark));
  put(toned(text, Tone::kStrong) + std::string(gap, ' ') + toned(remark, Tone::kFaint));
  is_below_line_ = false;
}

void Page::box(std::string_view title, const std::vector<Entry>& entries) {
  const std::size_t inside = paper_.width - 4;
  std::size_t label_width = 0;
  for (const Entry& entry : entries) label_width = std::max(label_width, columns(entry.label) + 2);
  const auto row = [&](std::string_view text, Tone tone) {
    put("│ " + toned(padded(text, inside), tone) + " │");
  };
  put("╭" + repeated("─", inside + 2) + "╮");
  for (const std::string& text : wrapped(title, inside)) row(text, Tone::kStrong);
  for (const Entry& entry : entries) {
    std::string label = entry.label;
    for (const std::string& text : wrapped(entry.text, inside - label_width)) {
      row(padded(label, label_width) + text, Tone::kPlain);
      label.clear();
    }
  }
  put("╰" + repeated("─", inside + 2) + "╯");
}

void Page::remark(std::string_view mark, std::string_view text, Tone tone) {
  std::string begin = fmt::format("  {} ", mark);
  const std::size_t indent = columns(begin);
  for (const std::string& part : wrapped(text, paper_.width - indent)) {
    put(toned(begin, tone) + part);
    begin.assign(indent, ' ');
  }
}

void Page::table(const TextTable& table) {
  if (table.rows_.empty()) return;
  const TableLayout layout(table, paper_.width);
  std::vector<std::string> heads;
  for (const std::string& head : table.heads_) heads.push_back(head.substr(1));
  const auto line_of_heads = layout.lines_of(heads);
  if (!line_of_heads.empty() && is_below_line_) line();
  for (const std::string& text : line_of_heads) put(toned(text, Tone::kFaint));
  for (const TextTable::Row& row : table.rows_) {
    for (const std::string& text : layout.lines_of(row.cells)) put(text);
    for (const std::string& note : row.notes)
      line(std::string(kTableIndent + kFurtherIndent, ' ') + note);
  }
}

void Page::table(TextTable whole, std::int64_t most, std::string_view where) {
  const auto shown = std::clamp<std::int64_t>(most, 0, std::ssize(whole.rows_));
  const auto left_out = std::ssize(whole.rows_) - shown;
  whole.rows_.resize(static_cast<std::size_t>(shown));
  table(whole);
  more(left_out, where);
}

void Page::more(std::int64_t count, std::string_view where) {
  if (count > 0) line(fmt::format("  ... and {} more {}", grouped(count), where));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    if (begin > 0 && columns(lines.back()) + 1 + columns(word) <= width) {
      lines.back().append(" ").append(word);
    } else {
      if (begin > 0) lines.emplace_back();
      for (; !fits(word, width); lines.emplace_back()) {
        const std::size_t part = part_of(word, width);
        lines.back() = word.substr(0, part);
        word.remove_prefix(part);
      }
      lines.back() = word;
    }
    begin = end + 1;
  }
  return lines;
}

std::string in_ascii(std::string_view text) {
  constexpr auto kSigns = std::to_array<std::pair<std::string_view, char>>({{"╭", '+'},
                                                                            {"╮", '+'},
                                                                            {"╰", '+'},
                                                                            {"╯", '+'},
                                                                            {"─", '-'},
                                                                            {"│", '|'},
                                                                            {"█", '#'},
                                                                            {"▏", '|'},
                                                                            {"✓", 'y'},
                                                                            {"✗", 'n'}});
  std::string ascii;
  while (!text.empty()) {
    const auto sign =
        std::ranges::find_if(kSigns, [&](const auto& one) { return text.starts_with(one.first); });
    const std::size_t bytes = sign == kSigns.end() ? 1 : sign->first.size();
    ascii += sign == kSigns.end() ? text.front() : sign->second;
    text.remove_prefix(bytes);
  }
  return ascii;
}

std::string stretch(double from, double to, std::size_t width) {
  const auto cell = [&](double ratio) {
    const double at = std::round(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(width));
    return static_cast<std::size_t>(at);
  };
  const std::size_t begin = cell(from);
  const std::size_t end = cell(to);
  const bool fills = (to - from) * static_cast<double>(width) >= 0.5;  // half a cell or more
  const std::string bar =
      fills && end > begin ? std::string(begin, ' ') + repeated("█", end - begin)
                           : std::string(std::min(begin, width - 1), ' ') + (to > from ? "▏" : "");
  return padded(bar, width);
}

}  // namespace foreshard
