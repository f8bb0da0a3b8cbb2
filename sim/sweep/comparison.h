/// \file
/// Results of two sweeps side by side: what differs in what they were asked, and point by point in
/// inputs, terms and result, by effect.
///
/// Points are put beside each other by the axes that both sweeps have, by name: for each
/// combination of values that both have, the best point of A is beside the best point of B. So
/// sweeps of equal axes are compared point by point, and of an axis that only one has, its best
/// value is taken.
///
///     effect of a pair = measure of B / measure of A - 1,  measure: what A's points are ranked by
///
/// A pair of which one side does not run is first: nothing differs more.
///
/// Not modelled: contents of files that the sweeps name: results hold the names alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {

/// An input that differs; empty where a side has none.
struct Difference {
  std::string key;
  std::string a;
  std::string b;

  bool operator==(const Difference&) const = default;
};

struct Pair {
  std::vector<std::string> values;  ///< One of each axis that both have.
  std::size_t a = 0;                ///< Points.
  std::size_t b = 0;
  std::optional<double> effect;    ///< Empty where a measure is unknown, or a side does not run.
  std::vector<Difference> inputs;  ///< Of the two points: model, cluster, strategy, settings, axes.
};

struct Comparison {
  Work work = Work::kToken;  ///< What both sides' figures are of.
  Measure by = Measure::kTime;
  std::vector<std::string> axes;      ///< That both have.
  std::vector<Difference> inputs;     ///< Of the questions.
  std::vector<Pair> pairs;            ///< By effect.
  std::vector<std::string> left_out;  ///< Values of common axes that one side alone has.
};

/// \return kInvalidInput where the two have axes in common, but no combination of their values.
Result<Comparison> compare(const Results& a, const Results& b);

/// The `top` largest effects, with what makes them.
std::string comparison_text(const Results& a, const Results& b, const Comparison& comparison,
                            std::int64_t top);
/// Schema foreshard.sweep_comparison/1.
std::string comparison_json(const Results& a, const Results& b, const Comparison& comparison);

}  // namespace foreshard::sweep
