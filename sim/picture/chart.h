/// \file
/// The kinds of charts, each a value that `draw` makes a picture of. Whoever fills them chooses the
/// words and the units.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/picture/svg.h"

namespace foreshard::picture {

/// A whole, the parts that are lost of it one after another, and what is left.
struct Waterfall {
  struct Part {
    std::string name = {};   ///< "tensor communication"
    std::string style = {};  ///< A style of svg.h.
    double share = 0;        ///< Part of the whole, from 0 to 1.
    std::string value = {};  ///< The part in words: "3.73 s".
  };
  std::string title = {};
  std::string whole = {};  ///< "peak of the devices"
  std::vector<Part> lost = {};
  Part left = {};
};
std::string draw(const Waterfall& chart);

/// Bars of stacked parts, with lines that they should not reach.
struct StackedBars {
  struct Part {
    std::string name = {};
    std::string style = {};
    double value = 0;
  };
  struct Bar {
    std::string name = {};
    std::vector<Part> parts = {};
  };
  struct Limit {
    std::string name = {};
    double value = 0;
  };
  std::string title = {};
  std::string unit = {};  ///< Unit of the values: "GiB".
  std::vector<Bar> bars = {};
  std::vector<Limit> limits = {};
};
std::string draw(const StackedBars& chart);

/// Amounts over time, stacked, each from its sample on until the next one; with lines that their
/// sum should not reach.
struct StackedAreas {
  struct Area {
    std::string name = {};
    std::string style = {};
    std::vector<double> values = {};  ///< One for each of `times`.
  };
  std::string title = {};
  std::string x_axis = {};
  std::string unit = {};
  std::vector<double> times = {};  ///< Ascending.
  double end = 0;                  ///< Until when the last sample holds.
  std::vector<Area> areas = {};    ///< Sorted from the bottom up.
  std::vector<StackedBars::Limit> limits = {};
};
std::string draw(const StackedAreas& chart);

/// What several parties do at the same times, in seconds: a row for each, with a box for each thing
/// it does. Boxes of few pixels share one mark for each style of a row.
struct Lanes {
  struct Box {
    std::string style = {};
    double start = 0;
    double length = 0;
    std::string label = {};  ///< Shown where there is room for it.
    std::string in_words = {};
  };
  struct Lane {
    std::string name = {};
    std::vector<Box> boxes = {};
  };
  std::string title = {};
  std::string x_axis = {};
  double end = 0;
  std::vector<Lane> lanes = {};
};
std::string draw(const Lanes& chart);

/// Points with intervals; those that no other one beats in both are coloured. Points without `y`
/// stand hollow in a margin above the others.
struct Scatter {
  struct Point {
    std::string name = {};
    double x = 0;
    double x_low = 0;
    double x_high = 0;
    std::optional<double> y = {};
  };
  std::string title = {};
  std::string x_axis = {};  ///< "time of a step, s"
  std::string y_axis = {};
  std::string without_y = {};  ///< Words for the margin: "without a price".
  std::string x_unit = {};     ///< Unit in the words of a point: "s".
  std::string y_unit = {};
  std::vector<Point> points = {};
};
std::string draw(const Scatter& chart);

/// Bars from zero, the longest first as given.
struct Bars {
  struct Bar {
    std::string name = {};
    double value = 0;
    std::string in_words = {};
  };
  std::string title = {};
  std::string axis = {};
  std::vector<Bar> bars = {};
};
std::string draw(const Bars& chart);

/// Values over sizes, both on logarithmic axes.
struct Curve {
  struct Point {
    double x = 0;
    double y = 0;
    std::string in_words = {};
  };
  std::string title = {};
  std::string x_axis = {};
  std::string y_axis = {};
  std::vector<Point> points = {};
};
std::string draw(const Curve& chart);

/// How amounts vary: for each of several series, the share of its values that are at most an
/// amount.
struct Distributions {
  struct Series {
    std::string name = {};
    std::vector<double> values = {};  ///< Ascending.
    std::vector<Meaning> marks = {};  ///< Values of the series that are pointed out.
  };
  std::string title = {};
  std::string x_axis = {};
  std::string y_axis = {};
  std::vector<Series> series = {};
};
std::string draw(const Distributions& chart);

/// Predictions over measurements, both on the same logarithmic axis; on the diagonal they agree.
/// Each group has a colour and a shape.
struct Agreement {
  struct Point {
    std::size_t group = 0;
    double measured = 0;  ///< > 0, as the predictions.
    double predicted = 0;
    double low = 0;  ///< Interval of the prediction.
    double high = 0;
    Meaning meaning = {};
  };
  std::string title = {};
  std::string unit = {};
  std::vector<std::string> groups = {};
  std::vector<Point> points = {};
};
/// Groups that a chart can tell apart.
inline constexpr std::size_t kMostGroups = 12;
std::string draw(const Agreement& chart);

}  // namespace foreshard::picture
