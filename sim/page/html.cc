#include "sim/page/internal/html.h"

#include <fmt/format.h>

#include "sim/picture/svg.h"

namespace foreshard::page {
namespace {

using picture::xml_escaped;

// The text between `before` and `after`, from `at` on, which is moved behind it; empty: none.
std::string_view between(std::string_view text, std::size_t& at, std::string_view before,
                         std::string_view after) {
  const auto begin = text.find(before, at);
  if (begin == text.npos) return at = text.npos, std::string_view();
  const auto end = text.find(after, begin + before.size());
  if (end == text.npos) return at = text.npos, std::string_view();
  at = end;
  return text.substr(begin + before.size(), end - begin - before.size());
}

// The marks of a picture in words, as the picture has them: escaped.
std::vector<std::string_view> marks_of(std::string_view svg) {
  std::vector<std::string_view> marks;
  for (std::size_t at = 0; at != svg.npos;) {
    const auto name = between(svg, at, " data-name=\"", "\"");
    if (at == svg.npos) break;
    const auto words = between(svg, at, "<title>", "</title>");
    if (name != "key" && at != svg.npos) marks.push_back(words);
  }
  return marks;
}

std::string cell(const Cell& cell, std::string_view element) {
  return fmt::format("<{0}{1}>{2}</{0}>", element, cell.number ? " class=\"number\"" : "",
                     xml_escaped(cell.text));
}

}  // namespace

void Html::heading(std::string_view text) {
  text_ += fmt::format("<h2>{}</h2>\n", xml_escaped(text));
}

void Html::paragraph(std::string_view text, std::string_view style) {
  text_ += style.empty() ? "<p>" : fmt::format("<p class=\"{}\">", style);
  text_ += xml_escaped(text) + "</p>\n";
}

void Html::verdict(std::string_view strong, std::string_view rest) {
  text_ += fmt::format("<p class=\"verdict\"><strong>{}</strong> {}</p>\n", xml_escaped(strong),
                       xml_escaped(rest));
}

void Html::charts(const std::vector<std::string>& svgs) {
  constexpr std::size_t kMostMarks = 400;
  text_ += "<div class=\"charts\">\n";
  for (const std::string& svg : svgs) {
    text_ += "<figure>\n" + svg + "<details><summary>Numbers</summary><ul>\n";
    const auto marks = marks_of(svg);
    for (std::size_t i = 0; i < marks.size() && i < kMostMarks; ++i)
      text_ += fmt::format("<li>{}</li>\n", marks[i]);
    if (marks.size() > kMostMarks)
      text_ += fmt::format("<li>and {} more, in the result</li>\n", marks.size() - kMostMarks);
    text_ += "</ul></details></figure>\n";
  }
  text_ += "</div>\n";
}

void Html::table(const std::vector<Cell>& header, const std::vector<std::vector<Cell>>& rows,
                 std::size_t most) {
  text_ += "<table><thead><tr>";
  for (const Cell& one : header) text_ += cell(one, "th");
  text_ += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < rows.size() && i < most; ++i) {
    text_ += "<tr>";
    for (const Cell& one : rows[i]) text_ += cell(one, "td");
    text_ += "</tr>\n";
  }
  text_ += "</tbody></table>\n";
  if (rows.size() > most)
    paragraph(fmt::format("{} more rows are in the result.", rows.size() - most), "note");
}

void Html::list(const std::vector<std::string>& items) {
  text_ += "<ul>\n";
  for (const std::string& item : items) text_ += "<li>" + xml_escaped(item) + "</li>\n";
  text_ += "</ul>\n";
}

}  // namespace foreshard::page
