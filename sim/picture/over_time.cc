// Charts over time: stacked areas, and rows of boxes.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "base/quantity.h"

#include "sim/picture/chart.h"
#include "sim/picture/internal/frame.h"
#include "sim/picture/scale.h"
#include "sim/picture/svg.h"

namespace foreshard::picture {
namespace {

// The outline of an area between two steps, as a closed path.
std::vector<Point> outline(const std::vector<double>& edges, const std::vector<double>& low,
                           const std::vector<double>& high) {
  std::vector<Point> points;
  const auto add = [&](double from, double to, double height) {
    const bool same = points.size() > 1 && points.back().y == height;
    if (same)
      points.back().x = to;  // nothing changes here
    else
      points.insert(points.end(), {{from, height}, {to, height}});
  };
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) add(edges[i], edges[i + 1], high[i]);
  for (std::size_t i = edges.size() - 1; i > 0; --i) add(edges[i], edges[i - 1], low[i - 1]);
  return points;
}

// The edges of samples in pixels: their times, and the end.
std::vector<double> edges_of(const StackedAreas& chart, const Scale& x) {
  std::vector<double> edges;
  for (const double time : chart.times) edges.push_back(x(time));
  edges.push_back(x(chart.end));
  return edges;
}

// Boxes of a lane that are too narrow for marks of their own: one mark stands for all of a style.
struct Narrow {
  std::vector<Box> boxes;
  double length = 0;
};

}  // namespace

std::string draw(const StackedAreas& chart) {
  std::vector<double> sums(chart.times.size());
  for (const StackedAreas::Area& area : chart.areas)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += area.values[i];
  double highest = sums.empty() ? 0 : std::ranges::max(sums);
  for (const StackedBars::Limit& limit : chart.limits) highest = std::max(highest, limit.value);
  const Scale x = Scale::linear(0, chart.end > 0 ? chart.end : 1, kLeft, kRight);
  const Scale y = Scale::linear(0, highest > 0 ? 1.05 * highest : 1, kBottom, kTop);
  Svg svg(kWidth, kHeight, chart.title,
          fmt::format("{} over {}; peak {:.4g} {}", chart.unit, chart.x_axis,
                      sums.empty() ? 0 : std::ranges::max(sums), chart.unit));
  horizontal_axis(svg, x, chart.x_axis);
  vertical_axis(svg, y, chart.unit);
  const std::vector<double> edges = edges_of(chart, x);
  std::vector<double> low(sums.size(), y(0));
  std::vector<double> below(sums.size());
  double key = kLeft;
  for (const StackedAreas::Area& area : chart.areas) {
    std::vector<double> high;
    for (std::size_t i = 0; i < below.size(); ++i) {
      below[i] += area.values[i];
      high.push_back(y(below[i]));
    }
    const double peak = area.values.empty() ? 0 : std::ranges::max(area.values);
    svg.area(outline(edges, low, high), area.style,
             {area.name, peak, fmt::format("{}: at most {:.4g} {}", area.name, peak, chart.unit)});
    add_key(svg, key, kTop - 32, area.style, area.name);
    low = high;
  }
  for (const StackedBars::Limit& limit : chart.limits) {
    const bool first = &limit == &chart.limits.front();  // its name stands above, others below
    svg.line({kLeft, y(limit.value)}, {kRight, y(limit.value)}, "limit");
    svg.text({kRight, y(limit.value) + (first ? -4 : 14)}, limit.name, Anchor::kEnd, "note");
  }
  return std::move(svg).take();
}

std::string draw(const Lanes& chart) {
  constexpr double kRow = 22;
  constexpr double kBox = 18;
  constexpr double kWidestLabel = 0.9;  // part of its box
  constexpr double kWidthOfMark = 4;
  const double bottom = kTop + kRow * static_cast<double>(chart.lanes.size());
  const Scale x = Scale::linear(0, chart.end > 0 ? chart.end : 1, kLeft, kRight);
  Svg svg(kWidth, bottom + 56, chart.title, "what each does over " + chart.x_axis);
  horizontal_axis(svg, x, chart.x_axis, bottom);
  double top = kTop + 2;
  std::set<std::string> told;
  double key = kLeft;
  for (const Lanes::Lane& lane : chart.lanes) {
    svg.text({kLeft - 8, top + 14}, lane.name, Anchor::kEnd);
    std::map<std::string, Narrow> narrow;  // by style
    for (const Lanes::Box& box : lane.boxes) {
      if (told.insert(box.style).second) add_key(svg, key, kTop - 32, box.style, box.style);
      const double left = x(box.start);
      const double width = x(box.start + box.length) - left;
      if (width < kWidthOfMark) {
        narrow[box.style].boxes.push_back({left, top, width, kBox});
        narrow[box.style].length += box.length;
        continue;
      }
      svg.box({left, top, width, kBox}, box.style, {lane.name, box.length, box.in_words});
      if (!box.label.empty() && width_of(box.label) < kWidestLabel * width)
        svg.text({left + width / 2, top + 13}, box.label, Anchor::kMiddle, "inside");
    }
    for (const auto& [style, all] : narrow)
      svg.boxes(all.boxes, style,
                {lane.name, all.length,
                 fmt::format("{}: {} times {}, together {}", lane.name, all.boxes.size(), style,
                             format(all.length * 1_s))});
    top += kRow;
  }
  return std::move(svg).take();
}

}  // namespace foreshard::picture
