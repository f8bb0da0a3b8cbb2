// Lays out text reports (page.h), for text.cc, disturbed_text.cc and side_by_side.cc. Widths are
// columns of a terminal.
#include "sim/report/internal/page.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/report/numbers.h"

namespace foreshard::report {
namespace {

std::string repeated(std::string_view glyph, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += glyph;
  return text;
}

std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kStrong:
      return "1";
    case Tone::kFaint:
      return "2";
    case Tone::kGood:
      return "32";
    case Tone::kWarn:
      return "33";
    case Tone::kBad:
      return "31";
    case Tone::kBar:
      return "36";
  }
  return "";
}

}  // namespace

std::string Page::toned(std::string_view text, Tone tone) const {
  const std::string_view code = code_of(tone);
  if (!colour_ || code.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

void Page::line(std::string_view text) {
  const auto end = text.find_last_not_of(' ');
  text_ += text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  text_ += '\n';
}

void Page::heading(std::string_view text, std::string_view remark) {
  line();
  const std::size_t gap = kPageWidth - std::min(kPageWidth, columns(text) + columns(remark));
  line(toned(text, Tone::kStrong) + std::string(gap, ' ') + toned(remark, Tone::kFaint));
}

void Page::box(std::string_view title, const std::vector<Entry>& entries) {
  constexpr std::size_t kInside = kPageWidth - 4;
  std::size_t label_width = 0;
  for (const Entry& entry : entries) label_width = std::max(label_width, columns(entry.label) + 2);
  const auto row = [&](std::string_view text, Tone tone) {
    line("│ " + toned(left(text, kInside), tone) + " │");
  };
  line("╭" + repeated("─", kPageWidth - 2) + "╮");
  for (const std::string& text : wrapped(title, kInside)) row(text, Tone::kStrong);
  for (const Entry& entry : entries) {
    std::string label = entry.label;
    for (const std::string& text : wrapped(entry.text, kInside - label_width)) {
      row(left(label, label_width) + text, Tone::kPlain);
      label.clear();
    }
  }
  line("╰" + repeated("─", kPageWidth - 2) + "╯");
}

void Page::remark(std::string_view mark, std::string_view text, Tone tone) {
  std::string begin = fmt::format("  {} ", mark);
  const std::size_t indent = columns(begin);
  for (const std::string& part : wrapped(text, kPageWidth - indent)) {
    line(toned(begin, tone) + part);
    begin.assign(indent, ' ');
  }
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    std::string& last = lines.back();
    if (last.empty()) {
      last = word;
    } else if (columns(last) + 1 + columns(word) <= width) {
      last.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
    begin = end + 1;
  }
  return lines;
}

std::string stretch(double from, double to, std::size_t width) {
  const auto cell = [&](double ratio) {
    const double at = std::round(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(width));
    return static_cast<std::size_t>(at);
  };
  const std::size_t begin = cell(from);
  const std::size_t end = cell(to);
  const bool fills = (to - from) * static_cast<double>(width) >= 0.5;  // half a cell or more
  if (fills && end > begin) return std::string(begin, ' ') + repeated("█", end - begin);
  return std::string(std::min(begin, width - 1), ' ') + (to > from ? "▏" : "");
}

}  // namespace foreshard::report
