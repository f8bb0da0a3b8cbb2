// Charts of what varies, and of how well predictions agree with measurements.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "sim/picture/chart.h"
#include "sim/picture/internal/frame.h"
#include "sim/picture/scale.h"

namespace foreshard::picture {
namespace {

constexpr std::size_t kColours = 6;  // "series0" and on, in svg.cc

std::string style_of(std::size_t series) {
  return fmt::format("series{}", series % kColours);
}

// A mark whose shape and colour tell its series: a circle, a square, a diamond or a triangle.
void add_mark(Svg& svg, Point at, std::size_t series, const Meaning& meaning) {
  constexpr double kHalf = 4.5;
  const auto place = [&](double right, double down) {
    return Point{at.x + right * kHalf, at.y + down * kHalf};
  };
  const std::string style = style_of(series);
  switch (series / kColours * 2 + series % 2) {
    case 0:
      return svg.dot(at, style, meaning);
    case 1:
      return svg.box({at.x - kHalf, at.y - kHalf, 2 * kHalf, 2 * kHalf}, style, meaning);
    case 2:
      return svg.area({place(0, -1.3), place(1.3, 0), place(0, 1.3), place(-1.3, 0)}, style,
                      meaning);
    default:
      return svg.area({place(0, -1.2), place(1.2, 1), place(-1.2, 1)}, style, meaning);
  }
}

// "A", "B" ...: beside the colours, which not all can tell apart.
std::string letter_of(std::size_t series) {
  return std::string(1, static_cast<char>('A' + series % 26));
}

// The smallest value and the largest one, with room on both sides; from zero if there are none.
std::pair<double, double> range_of(const Distributions& chart) {
  double low = INFINITY;
  double high = 0;
  for (const Distributions::Series& one : chart.series)
    if (!one.values.empty()) {
      low = std::min(low, one.values.front());
      high = std::max(high, one.values.back());
    }
  if (!(low <= high)) return {0, 1};
  const double room = std::max(0.05 * (high - low), 1e-3 * high + 1e-12);
  return {low - room, high + room};
}

}  // namespace

std::string draw(const Distributions& chart) {
  const auto [low, high] = range_of(chart);
  const Scale x = Scale::linear(low, high, kLeft, kRight);
  const Scale y = Scale::linear(0, 100, kBottom, kTop);
  Svg svg(kWidth, kHeight, chart.title, chart.y_axis + " over " + chart.x_axis);
  horizontal_axis(svg, x, chart.x_axis);
  vertical_axis(svg, y, chart.y_axis);
  double key = kLeft + 150;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const Distributions::Series& one = chart.series[s];
    const auto count = static_cast<double>(one.values.size());
    std::vector<Point> steps;
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      steps.push_back({x(one.values[i]), y(100 * static_cast<double>(i) / count)});
      steps.push_back({x(one.values[i]), y(100 * static_cast<double>(i + 1) / count)});
    }
    svg.path(steps, style_of(s) + " steps");
    for (const Meaning& mark : one.marks) {
      const auto at_most = std::ranges::upper_bound(one.values, mark.value) - one.values.begin();
      const Point at{x(mark.value), y(100 * static_cast<double>(at_most) / count)};
      add_mark(svg, at, s, mark);
      svg.text({at.x + 7, at.y + 12}, letter_of(s), Anchor::kStart, "note");
    }
    add_key(svg, key, kTop - 32, style_of(s), letter_of(s) + " " + one.name);
  }
  return std::move(svg).take();
}

std::string draw(const Agreement& chart) {
  std::vector<double> values;
  for (const Agreement::Point& point : chart.points)
    values.insert(values.end(), {point.measured, point.predicted, point.low, point.high});
  const Range range = around_ratios(values);
  const Scale x = Scale::logarithmic(range.low, range.high, kLeft, kRight);
  const Scale y = Scale::logarithmic(range.low, range.high, kBottom, kTop);
  Svg svg(kWidth, kHeight, chart.title,
          fmt::format("{} predictions over measurements", chart.points.size()));
  horizontal_axis(svg, x, "measured, " + chart.unit);
  vertical_axis(svg, y, "predicted, " + chart.unit);
  svg.line({kLeft, kBottom}, {kRight, kTop}, "line");
  for (const Agreement::Point& point : chart.points)
    svg.line({x(point.measured), y(point.low)}, {x(point.measured), y(point.high)}, "whisker");
  for (const Agreement::Point& point : chart.points)
    add_mark(svg, {x(point.measured), y(point.predicted)}, point.group, point.meaning);
  double top = kTop + 14;
  for (std::size_t i = 0; i < chart.groups.size(); ++i) {
    add_mark(svg, {kLeft + 14, top - 4}, i, {"key", 0, chart.groups[i]});
    svg.text({kLeft + 24, top}, chart.groups[i], Anchor::kStart, "note");
    top += 15;
  }
  return std::move(svg).take();
}

}  // namespace foreshard::picture
