#include "sim/picture/svg.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.h"

namespace foreshard::picture {
namespace {

// Colours of Okabe and Ito, which people with any kind of colour vision can tell apart
// (https://jfly.uni-koeln.de/color/). Parts and kinds have the same names as in results.
constexpr std::string_view kStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-size: 15px; font-weight: 600 }
.note { font-size: 11px; fill: #666 }
.paper { fill: #fff }
.line, .curve { stroke: #888; fill: none }
.grid { stroke: #ddd }
.curve { stroke: #0072b2; stroke-width: 2 }
.limit { stroke: #d55e00; stroke-width: 1.5; stroke-dasharray: 6 3 }
.whisker { stroke: #888; stroke-width: 1 }
.hollow, .pipeline_bubble { fill: none; stroke: #888 }
.dot { fill: #56b4e9; stroke: #222; stroke-width: .5 }
.front { fill: #d55e00; stroke: #222; stroke-width: .5 }
.inside { font-size: 10px; fill: #000 }
.compute, .forward, .activations { fill: #56b4e9 }
.backward { fill: #e69f00 }
.weight_gradient { fill: #d55e00 }
.optimizer { fill: #f0e442 }
.tp_comm { fill: #cc79a7 }
.cp_comm, .gradients { fill: #e69f00 }
.ep_comm { fill: #d55e00 }
.pp_comm, .parameters { fill: #0072b2 }
.dp_comm { fill: #009e73 }
.host, .buffers { fill: #999 }
.series0 { fill: #0072b2; color: #0072b2 }
.series1 { fill: #e69f00; color: #e69f00 }
.series2 { fill: #009e73; color: #009e73 }
.series3 { fill: #cc79a7; color: #cc79a7 }
.series4 { fill: #56b4e9; color: #56b4e9 }
.series5 { fill: #d55e00; color: #d55e00 }
.steps { fill: none; stroke: currentColor; stroke-width: 2 }
.whole { fill: #ccc }
.rest { fill: #444 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .note { fill: #aaa } .paper { fill: #1b1b1b } .grid { stroke: #333 }
  .rest { fill: #ddd } .whole { fill: #555 }
}
</style>
)";

// A length in pixels, to a hundredth.
std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

// Straight lines through the points; horizontal and vertical ones in their short form.
std::string through(const std::vector<Point>& points) {
  std::string steps;
  std::string last_x;
  std::string last_y;
  for (const Point& point : points) {
    std::string x = pixels(point.x);
    std::string y = pixels(point.y);
    if (y == last_y && x != last_x)
      steps += fmt::format("H{}", x);
    else if (x == last_x)
      steps += fmt::format("V{}", y);
    else
      steps += fmt::format("{}{} {}", steps.empty() ? "M" : "L", x, y);
    last_x = std::move(x);
    last_y = std::move(y);
  }
  return steps;
}

// The class of a style: names of several words are joined.
std::string class_of(std::string_view style) {
  std::string name(style);
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string attributes(std::string_view style, const Meaning& meaning) {
  return fmt::format(R"( class="{}" data-name="{}" data-value="{}")", class_of(style),
                     xml_escaped(meaning.name), meaning.value);
}

std::string tooltip(const Meaning& meaning) {
  return "<title>" + xml_escaped(meaning.in_words) + "</title>";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += ' ';
        break;
      default:
        result += c;
    }
  }
  return result;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description) {
  text_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(role="img" aria-label="{2}">)"
      "\n<title>{2}</title>\n<desc>{3}</desc>\n",
      pixels(width), pixels(height), xml_escaped(title), xml_escaped(description));
  text_ += kStyle;
  text_ += fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>\n", pixels(width),
                       pixels(height));
  text({16, 24}, title, Anchor::kStart, "title");
}

void Svg::box(const Box& box, std::string_view style, const Meaning& meaning) {
  text_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}"{}>{}</rect>)",
                       pixels(box.left), pixels(box.top), pixels(box.width), pixels(box.height),
                       attributes(style, meaning), tooltip(meaning));
  text_ += '\n';
}

void Svg::dot(Point at, std::string_view style, const Meaning& meaning) {
  text_ += fmt::format(R"(<circle cx="{}" cy="{}" r="4.5"{}>{}</circle>)", pixels(at.x),
                       pixels(at.y), attributes(style, meaning), tooltip(meaning));
  text_ += '\n';
}

void Svg::line(Point from, Point to, std::string_view style) {
  text_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", style,
                       pixels(from.x), pixels(from.y), pixels(to.x), pixels(to.y));
}

void Svg::path(const std::vector<Point>& points, std::string_view style) {
  text_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, through(points));
}

void Svg::boxes(const std::vector<Box>& boxes, std::string_view style, const Meaning& meaning) {
  std::string steps;
  for (const Box& box : boxes)
    steps += fmt::format("M{} {}h{}v{}h-{}z", pixels(box.left), pixels(box.top), pixels(box.width),
                         pixels(box.height), pixels(box.width));
  text_ += fmt::format("<path d=\"{}\"{}>{}</path>\n", steps, attributes(style, meaning),
                       tooltip(meaning));
}

void Svg::area(const std::vector<Point>& points, std::string_view style, const Meaning& meaning) {
  text_ += fmt::format("<path d=\"{}Z\"{}>{}</path>\n", through(points), attributes(style, meaning),
                       tooltip(meaning));
}

void Svg::text(Point at, std::string_view text, Anchor anchor, std::string_view style) {
  const std::string_view where = anchor == Anchor::kStart    ? "start"
                                 : anchor == Anchor::kMiddle ? "middle"
                                                             : "end";
  text_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", style,
                       pixels(at.x), pixels(at.y), where, xml_escaped(text));
}

std::string Svg::take() && {
  return std::move(text_) + "</svg>\n";
}

double width_of(std::string_view text) {
  constexpr double kPerCharacter = 6.6;  // at 12 px, on average
  return kPerCharacter * static_cast<double>(text.size());
}

}  // namespace foreshard::picture
