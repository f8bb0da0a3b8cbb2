/// \file
/// The frame of charts with two axes: its place, and the axes with their ticks.
#pragma once

#include <string>
#include <vector>

#include "sim/picture/scale.h"
#include "sim/picture/svg.h"

namespace foreshard::picture {

// The frame in pixels.
inline constexpr double kHeight = 440;
inline constexpr double kLeft = 70;
inline constexpr double kRight = kWidth - 20;
inline constexpr double kTop = 70;
inline constexpr double kBottom = kHeight - 56;

struct Range {
  double low = 0;
  double high = 0;
};

/// A range that a logarithmic scale can have, with all `values` and some room; 1 to 10 without any.
Range around_ratios(const std::vector<double>& values);

/// \param bottom  where the axis lies; the lines of its ticks begin at kTop.
void horizontal_axis(Svg& svg, const Scale& scale, const std::string& name,
                     double bottom = kBottom);
void vertical_axis(Svg& svg, const Scale& scale, const std::string& name);

/// The key of a style, and its name; moves `left` behind them.
void add_key(Svg& svg, double& left, double top, const std::string& style, const std::string& name);

}  // namespace foreshard::picture
