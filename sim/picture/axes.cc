// Charts with two axes: stacked bars, points with intervals, curves.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "sim/picture/chart.h"
#include "sim/picture/internal/frame.h"
#include "sim/picture/scale.h"
#include "sim/picture/svg.h"

namespace foreshard::picture {
namespace {

// The smallest range with all values, and a twentieth of room on both sides.
Range around(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  const double room = high > low ? 0.05 * (high - low) : std::max(0.05 * std::abs(low), 1e-12);
  return {low - room, high + room};
}

// Whether another point is at least as good in both, and better in one.
bool is_beaten(const Scatter::Point& one, const std::vector<Scatter::Point>& all) {
  return std::ranges::any_of(all, [&](const Scatter::Point& other) {
    return other.y && other.x <= one.x && *other.y <= *one.y &&
           (other.x < one.x || *other.y < *one.y);
  });
}

}  // namespace

std::string draw(const StackedBars& chart) {
  double highest = 0;
  for (const auto& limit : chart.limits) highest = std::max(highest, limit.value);
  for (const auto& bar : chart.bars) {
    double sum = 0;
    for (const auto& part : bar.parts) sum += part.value;
    highest = std::max(highest, sum);
  }
  const Scale y = Scale::linear(0, highest > 0 ? 1.05 * highest : 1, kBottom, kTop);
  Svg svg(kWidth, kHeight, chart.title, "parts of each bar in " + chart.unit);
  vertical_axis(svg, y, chart.unit);
  svg.line({kLeft, kBottom}, {kRight, kBottom}, "line");
  const double pitch =
      (kRight - kLeft) / static_cast<double>(std::max<std::size_t>(chart.bars.size(), 1));
  const double width = std::min(0.7 * pitch, 80.0);
  double left = kLeft + (pitch - width) / 2;
  double labelled_to = 0;
  for (const StackedBars::Bar& bar : chart.bars) {
    double sum = 0;
    for (const StackedBars::Part& part : bar.parts) {
      const double top = y(sum + part.value);
      svg.box({left, top, width, y(sum) - top}, part.style,
              {bar.name + ", " + part.name, part.value,
               fmt::format("{}, {}: {:.4g} {}", bar.name, part.name, part.value, chart.unit)});
      sum += part.value;
    }
    const double middle = left + width / 2;
    const double half = width_of(bar.name) / 2;
    if (middle - half > labelled_to) {  // Names that would touch are left to the tooltips.
      svg.text({middle, kBottom + 18}, bar.name, Anchor::kMiddle);
      labelled_to = middle + half + 4;
    }
    left += pitch;
  }
  for (const StackedBars::Limit& limit : chart.limits) {
    const bool first = &limit == &chart.limits.front();  // its name stands above, others below
    svg.line({kLeft, y(limit.value)}, {kRight, y(limit.value)}, "limit");
    svg.text({kRight, y(limit.value) + (first ? -4 : 14)}, limit.name, Anchor::kEnd, "note");
  }
  double key = kLeft;
  if (!chart.bars.empty())
    for (const StackedBars::Part& part : chart.bars.front().parts)
      add_key(svg, key, kTop - 32, part.style, part.name);
  return std::move(svg).take();
}

std::string draw(const Scatter& chart) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const Scatter::Point& point : chart.points) {
    xs.insert(xs.end(), {point.x_low, point.x_high});
    if (point.y) ys.push_back(*point.y);
  }
  const bool margin = ys.size() < chart.points.size();
  constexpr double kMargin = 28;
  const Range x_range = xs.empty() ? Range{0, 1} : around(xs);
  const Range y_range = ys.empty() ? Range{0, 1} : around(ys);
  const Scale x = Scale::linear(x_range.low, x_range.high, kLeft, kRight);
  const Scale y = Scale::linear(y_range.low, y_range.high, kBottom, kTop + (margin ? kMargin : 0));
  Svg svg(kWidth, kHeight, chart.title,
          fmt::format("{} points: {} and {}", chart.points.size(), chart.x_axis, chart.y_axis));
  horizontal_axis(svg, x, chart.x_axis);
  vertical_axis(svg, y, chart.y_axis);
  if (margin) svg.text({kRight, kTop + 4}, chart.without_y, Anchor::kEnd, "note");
  svg.text({kRight, kTop - 14}, "orange: no other point is better in both", Anchor::kEnd, "note");
  const auto mark = [&](const Scatter::Point& point, const char* style) {
    const double at = point.y ? y(*point.y) : kTop + kMargin / 2;
    svg.line({x(point.x_low), at}, {x(point.x_high), at}, "whisker");
    const std::string height =
        point.y ? fmt::format(", {:.5g} {}", *point.y, chart.y_unit) : ", " + chart.without_y;
    svg.dot({x(point.x), at}, style,
            {point.name, point.x,
             fmt::format("{}: {:.5g} {} ({:.5g} to {:.5g}){}", point.name, point.x, chart.x_unit,
                         point.x_low, point.x_high, height)});
  };
  std::vector<const Scatter::Point*> front;  // comes last, over the others
  for (const Scatter::Point& point : chart.points) {
    if (point.y && !is_beaten(point, chart.points))
      front.push_back(&point);
    else
      mark(point, point.y ? "dot" : "hollow");
  }
  for (const Scatter::Point* point : front) mark(*point, "front");
  return std::move(svg).take();
}

std::string draw(const Curve& chart) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const Curve::Point& point : chart.points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const Range x_range = around_ratios(xs);
  const Range y_range = around_ratios(ys);
  const Scale x = Scale::logarithmic(x_range.low, x_range.high, kLeft, kRight);
  const Scale y = Scale::logarithmic(y_range.low, y_range.high, kBottom, kTop);
  Svg svg(kWidth, kHeight, chart.title, chart.y_axis + " over " + chart.x_axis);
  horizontal_axis(svg, x, chart.x_axis);
  vertical_axis(svg, y, chart.y_axis);
  std::vector<Point> places;
  for (const Curve::Point& point : chart.points) places.push_back({x(point.x), y(point.y)});
  svg.path(places, "curve");
  for (std::size_t i = 0; i < places.size(); ++i)
    svg.dot(
        places[i], "dot",
        {fmt::format("{:.6g}", chart.points[i].x), chart.points[i].y, chart.points[i].in_words});
  return std::move(svg).take();
}

}  // namespace foreshard::picture
