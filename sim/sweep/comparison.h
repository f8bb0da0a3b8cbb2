/// \file
/// Comparison of the results of two sweeps: what differs in their questions, and for each pair of
/// points what differs in inputs, terms and result, sorted by effect.
///
/// Points are paired by the axes that both sweeps have, by name: for each combination of values
/// that both have, the best point of A is paired with the best point of B. So sweeps with equal
/// axes are compared point by point; for an axis that only one sweep has, its best value is taken.
///
///     effect of a pair = measure of B / measure of A - 1,  measure: the one that ranks A's points
///
/// A pair with one side that does not run comes first: nothing differs more.
///
/// Not modelled: contents of files that the sweeps name; results hold only the names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {

/// An input that differs; empty: that side has none.
struct Difference {
  std::string key;
  std::string a;
  std::string b;

  bool operator==(const Difference&) const = default;
};

struct Pair {
  std::vector<std::string> values;  ///< One value for each axis that both have.
  std::size_t a = 0;                ///< Index of A's point; `b` is B's.
  std::size_t b = 0;
  std::optional<double> effect;  ///< Empty if a measure is unknown, or a side does not run.
  /// Differences between the two points: model, cluster, strategy, settings, axes.
  std::vector<Difference> inputs;
};

struct Comparison {
  Work work = Work::kToken;  ///< The work that both sides' figures are about.
  Measure by = Measure::kTime;
  std::vector<std::string> axes;      ///< Axes that both have.
  std::vector<Difference> inputs;     ///< Differences between the questions.
  std::vector<Pair> pairs;            ///< Largest effect first.
  std::vector<std::string> left_out;  ///< Values of common axes that only one side has.
};

/// \return kInvalidInput if the two have axes in common, but no combination of their values.
Result<Comparison> compare(const Results& a, const Results& b);

/// A comparison with its sides; comparison_output.cc defines it.
struct ComparisonReport;
const record::Record<ComparisonReport>& record_of(const ComparisonReport*);

/// The `top` largest effects, with their causes.
std::string comparison_text(const Results& a, const Results& b, const Comparison& comparison,
                            std::int64_t top, const Paper& paper = {});
/// Schema foreshard.sweep_comparison/1.
std::string comparison_json(const Results& a, const Results& b, const Comparison& comparison);

}  // namespace foreshard::sweep
