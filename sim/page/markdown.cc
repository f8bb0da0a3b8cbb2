#include <algorithm>
#include <fmt/format.h>

#include "base/printable.h"

#include "sim/page/internal/document.h"

namespace foreshard::page {
namespace {

// Text that Markdown takes for nothing else, on one line.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_[]<>|#~";
  std::string result;
  for (const char c : printable(text)) {
    if (kSpecial.find(c) != kSpecial.npos) result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

}  // namespace

void Markdown::heading(std::string_view text) {
  text_ += fmt::format("{}## {}\n\n", text_.empty() ? "" : "\n", escaped(text));
}

void Markdown::paragraph(std::string_view text) {
  text_ += escaped(text) + "\n\n";
}

void Markdown::note(std::string_view text) {
  text_ += fmt::format("<sub>{}</sub>\n\n", escaped(text));
}

void Markdown::warning(std::string_view text) {
  text_ += fmt::format("> **Note:** {}\n\n", escaped(text));
}

void Markdown::verdict(std::string_view strong, std::string_view rest) {
  text_ += fmt::format("**{}** {}\n\n", escaped(strong), escaped(rest));
}

// Texts of the SVG are escaped for XML already; Markdown shows such escapes as the characters.
void Markdown::charts(const std::vector<std::string>& svgs) {
  constexpr std::size_t kMostMarks = 48;
  for (const std::string& svg : svgs) {
    const auto [title, marks] = told(svg);
    text_ += fmt::format("<details><summary>{}</summary><ul>\n", title);
    for (std::size_t i = 0; i < std::min(marks.size(), kMostMarks); ++i)
      text_ += fmt::format("<li>{}</li>\n", marks[i]);
    if (marks.size() > kMostMarks)
      text_ += fmt::format("<li>and {} more, in the result</li>\n", marks.size() - kMostMarks);
    text_ += "</ul></details>\n\n";
  }
}

void Markdown::table(const Row& header, const std::vector<Row>& rows, std::size_t most) {
  std::string rule;
  for (const Cell& cell : header) {
    text_ += "| " + escaped(cell.text) + " ";
    rule += cell.number ? "| ---: " : "| --- ";
  }
  text_ += "|\n" + rule + "|\n";
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) {
    for (const Cell& cell : rows[i]) text_ += "| " + escaped(cell.text) + " ";
    text_ += "|\n";
  }
  text_ += '\n';
  if (rows.size() > most) note(fmt::format("{} more rows are in the result.", rows.size() - most));
}

void Markdown::list(const std::vector<std::string>& items) {
  for (const std::string& item : items) text_ += "- " + escaped(item) + "\n";
  text_ += '\n';
}

bool Markdown::time_line(std::string_view) {
  return true;  // Pictures do not move here: there is nothing to miss.
}

void Markdown::without_time_line(std::string_view) {}

}  // namespace foreshard::page
