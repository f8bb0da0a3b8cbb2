/// \file
/// How far predictions are from measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace foreshard::accuracy {

/// One prediction that has a measurement. Times in seconds, or bytes.
struct Pair {
  double measured = 0;  ///< > 0.
  double predicted = 0;
  std::optional<double> low, high;  ///< The interval of the prediction, where there is one.

  /// Of the measured value, in percent: negative where the prediction is too low.
  double error_pct() const { return 100 * (predicted - measured) / measured; }
};

/// Empty where there is nothing to tell: no pairs, or fewer than two for the rank correlation.
struct Statistics {
  std::int64_t pairs = 0;
  std::optional<double> mape_pct;        ///< Mean of |error|.
  std::optional<double> median_ape_pct;  ///< Of an even number: the mean of the middle two.
  std::optional<double> p90_ape_pct;     ///< Nearest rank: the ceil(0.9 n)-th smallest |error|.
  std::optional<double> bias_pct;        ///< Mean of the error with its sign.
  std::optional<double> kendall_tau;
  std::optional<double> interval_coverage_pct;  ///< Measured within [low, high].
};

Statistics statistics_of(const std::vector<Pair>& pairs);

/// Kendall's tau-b of measured against predicted values: the probability that two rows are ranked
/// alike minus that they are not, corrected for ties,
///
///     tau = (concordant - discordant) / sqrt((n0 - ties measured) (n0 - ties predicted)),
///
/// with n0 = n (n - 1) / 2. Sorts and merges: n log n.
/// Source: Knight, "A computer method for calculating Kendall's tau with ungrouped data", J. Am.
/// Stat. Assoc. 61 (1966).
/// \return empty for fewer than two rows, or where all of one side are equal.
std::optional<double> kendall_tau(const std::vector<Pair>& pairs);

}  // namespace foreshard::accuracy
