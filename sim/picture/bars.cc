// Charts of horizontal bars: waterfalls, and bars from zero.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/picture/chart.h"
#include "sim/picture/svg.h"

namespace foreshard::picture {
namespace {

constexpr double kFirstRow = 44;
constexpr double kRow = 26;
constexpr double kBar = 18;
constexpr double kWords = 150;  // for the values in words

// The room for names on the left.
template <class Named>
double name_width(const std::vector<Named>& rows) {
  double width = 0;
  for (const Named& row : rows) width = std::max(width, width_of(row.name));
  return std::min(width, kWidth / 3) + 24;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

std::string draw(const Waterfall& chart) {
  std::vector<Waterfall::Part> rows{{.name = chart.whole, .style = "whole", .share = 1}};
  rows.insert(rows.end(), chart.lost.begin(), chart.lost.end());
  rows.push_back(chart.left);
  const double left = name_width(rows);
  const double scale = kWidth - left - kWords;
  Svg svg(kWidth, kFirstRow + kRow * static_cast<double>(rows.size()) + 12, chart.title,
          chart.whole + " down to " + chart.left.name + ": " + percent(chart.left.share));
  double top = kFirstRow;
  double remaining = 1;
  for (const Waterfall::Part& row : rows) {
    const bool is_lost = &row != &rows.front() && &row != &rows.back();
    if (is_lost) remaining -= row.share;
    const double begin = is_lost ? std::max(remaining, 0.0) : 0;
    const std::string words = percent(row.share) + (row.value.empty() ? "" : ", " + row.value);
    svg.text({left - 8, top + 14}, row.name, Anchor::kEnd);
    svg.box({left + scale * begin, top, scale * row.share, kBar}, row.style,
            {row.name, row.share, row.name + ": " + words});
    svg.text({left + scale * (begin + row.share) + 6, top + 14}, words);
    top += kRow;
  }
  return std::move(svg).take();
}

std::string draw(const Bars& chart) {
  const double left = name_width(chart.bars);
  double longest = 0;
  for (const Bars::Bar& bar : chart.bars) longest = std::max(longest, bar.value);
  const double scale = longest > 0 ? (kWidth - left - kWords) / longest : 0;
  Svg svg(kWidth, kFirstRow + kRow * static_cast<double>(chart.bars.size()) + 34, chart.title,
          chart.axis);
  double top = kFirstRow;
  for (const Bars::Bar& bar : chart.bars) {
    svg.text({left - 8, top + 14}, bar.name, Anchor::kEnd);
    svg.box({left, top, scale * bar.value, kBar}, "compute",
            {bar.name, bar.value, bar.name + ": " + bar.in_words});
    svg.text({left + scale * bar.value + 6, top + 14}, bar.in_words);
    top += kRow;
  }
  svg.text({left, top + 16}, chart.axis, Anchor::kStart, "note");
  return std::move(svg).take();
}

}  // namespace foreshard::picture
