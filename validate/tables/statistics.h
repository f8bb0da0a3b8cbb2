/// \file
/// Statistics of prediction errors over pairs of measured and predicted values. Used for every
/// summary of outcomes (evidence/accuracy.cc, collective_summary.cc) and for tau in
/// evidence/regret.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace foreshard::accuracy {

/// A measured value and its prediction, both in seconds or both in bytes.
struct Pair {
  double measured = 0;  ///< Above 0.
  double predicted = 0;
  std::optional<double> low, high;  ///< Interval of the prediction, if it has one.

  /// The error in percent of the measured value; negative if the prediction is too low.
  double error_pct() const { return 100 * (predicted - measured) / measured; }
};

/// Members are empty if they are undefined: without pairs, or as their notes say.
struct Statistics {
  std::int64_t pairs = 0;
  std::optional<double> mape_pct;        ///< Mean of |error|.
  std::optional<double> median_ape_pct;  ///< Median of |error|; mean of the middle two if even.
  std::optional<double> p90_ape_pct;     ///< Nearest rank: the ceil(0.9 n)-th smallest |error|.
  std::optional<double> bias_pct;        ///< Mean of the error with its sign.
  std::optional<double> kendall_tau;     ///< Empty as kendall_tau() below.
  /// Share of measured values within [low, high], over the pairs with an interval; empty if none
  /// has one.
  std::optional<double> interval_coverage_pct;
};

Statistics statistics_of(const std::vector<Pair>& pairs);

/// Kendall's tau-b of measured against predicted values: the probability that prediction puts two
/// rows in the measured order minus the probability that it reverses them, corrected for ties,
///
///     tau = (concordant - discordant) / sqrt((n0 - ties measured) (n0 - ties predicted)),
///
/// with n0 = n (n - 1) / 2. Sorts and merges: n log n.
/// Source: Knight, "A computer method for calculating Kendall's tau with ungrouped data", J. Am.
/// Stat. Assoc. 61 (1966).
/// \return Nothing for fewer than two pairs, or if all measured or all predicted values are equal.
std::optional<double> kendall_tau(const std::vector<Pair>& pairs);

}  // namespace foreshard::accuracy
