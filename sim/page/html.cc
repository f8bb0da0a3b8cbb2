#include <algorithm>
#include <fmt/format.h>

#include "sim/page/internal/document.h"
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

std::string cell(const Cell& cell, std::string_view element) {
  return fmt::format("<{0}{1}>{2}</{0}>", element, cell.number ? " class=\"number\"" : "",
                     xml_escaped(cell.text));
}

std::string paragraph_of(std::string_view style, std::string_view text) {
  return fmt::format("<p class=\"{}\">{}</p>\n", style, xml_escaped(text));
}

}  // namespace

ToldPicture told(std::string_view svg) {
  ToldPicture picture;
  std::size_t at = 0;
  picture.title = between(svg, at, "<title>", "</title>");
  while (at != svg.npos) {
    const auto name = between(svg, at, " data-name=\"", "\"");
    if (at == svg.npos) break;
    const auto words = between(svg, at, "<title>", "</title>");
    if (name != "key" && at != svg.npos) picture.marks.push_back(words);
  }
  return picture;
}

void Html::heading(std::string_view text) {
  text_ += fmt::format("<h2>{}</h2>\n", xml_escaped(text));
}

void Html::paragraph(std::string_view text) {
  text_ += fmt::format("<p>{}</p>\n", xml_escaped(text));
}

void Html::note(std::string_view text) {
  text_ += paragraph_of("note", text);
}

void Html::warning(std::string_view text) {
  text_ += paragraph_of("warning", text);
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
    const auto marks = told(svg).marks;
    for (std::size_t i = 0; i < std::min(marks.size(), kMostMarks); ++i)
      text_ += fmt::format("<li>{}</li>\n", marks[i]);
    if (marks.size() > kMostMarks)
      text_ += fmt::format("<li>and {} more, in the result</li>\n", marks.size() - kMostMarks);
    text_ += "</ul></details></figure>\n";
  }
  text_ += "</div>\n";
}

void Html::table(const Row& header, const std::vector<Row>& rows, std::size_t most) {
  text_ += "<div class=\"wide\"><table><thead><tr>";
  for (const Cell& one : header) text_ += cell(one, "th");
  text_ += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) {
    text_ += "<tr>";
    for (const Cell& one : rows[i]) text_ += cell(one, "td");
    text_ += "</tr>\n";
  }
  text_ += "</tbody></table></div>\n";
  if (rows.size() > most) note(fmt::format("{} more rows are in the result.", rows.size() - most));
}

void Html::list(const std::vector<std::string>& items) {
  text_ += "<ul>\n";
  for (const std::string& item : items) text_ += "<li>" + xml_escaped(item) + "</li>\n";
  text_ += "</ul>\n";
}

bool Html::time_line(std::string_view json) {
  if (scripted_) return false;
  scripted_ = true;
  std::string data(json);
  for (std::size_t at = 0; (at = data.find('<', at)) != data.npos;)
    data.replace(at, 1, "\\u003c");  // no end of the element within a text
  text_ += R"(<div class="screen">
<p class="note">Click into the chart: arrows pan and choose a row, + and - zoom, 0 shows all, space
opens a row's streams, Enter counts the tasks in view.</p>
<p id="line-tools"><button value="+" aria-label="zoom in">+</button>
<button value="-" aria-label="zoom out">-</button>
<button value="0" aria-label="show all of the step">all</button>
<button value="Enter" aria-label="count the tasks in view">tasks</button></p>
<div id="line-rows"><canvas id="line-canvas" tabindex="0" role="img" aria-label="Time line of the step"
title="arrows: pan, choose a row; + -: zoom; 0: all; space: open a row; Enter: count tasks"></canvas></div>
<output id="line-told"></output>
<table id="line-kernels" hidden><caption></caption><thead><tr><th>task</th><th class="number">number</th>
<th class="number">time</th></tr></thead><tbody></tbody></table>
</div>
<noscript><p>The time line needs scripts; the charts above do not.</p></noscript>
<script type="application/json" id="line-data">)" +
           data + "</script>\n";
  return true;
}

}  // namespace foreshard::page
