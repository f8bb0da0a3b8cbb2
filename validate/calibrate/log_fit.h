/// \file
/// Robust least squares over the logarithms of positive numbers, for models given as code, that
/// moves only what the data tell.
///
/// What is known before is that a number's logarithm lies round its start with a standard deviation
/// of `spread`: in two of three cases within a factor of e^spread. Beside measured times that are
/// expected to miss by 5 %, it counts as much as (0.05 / spread)^2 of them that are in proportion
/// to the number. A number is *told* by the data if these narrow its deviation, given the other
/// numbers that move, to half of `spread` or less. Rows that miss by more make it no less told, but
/// its interval wider.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/calibrate/kernel_fit.h"

namespace foreshard::calibrate {

/// A prediction whose relative error is larger than this is worth naming.
inline constexpr double kFarOff = 0.3;
/// Of `spread`: what may be left of it once a number is told.
inline constexpr double kTold = 0.5;

/// A positive number somewhere in a model's parameters.
struct LogNumber {
  std::string name;
  double value = 0;                   ///< Where it starts.
  std::function<void(double)> set{};  ///< Puts a value into the model.
  double low = 0;                     ///< Bounds. Invariant: 0 < low < high.
  double high = 0;
  double spread = 1;  ///< Standard deviation of the logarithm, before any data.

  /// Logarithm of the start, or of the bound that it is beyond.
  double start() const;
};

/// Time of a row, with the numbers that were last set.
using Model = std::function<double(std::size_t row)>;

/// d log(model(row)) / d log(number) of each number at `logarithms`, by central differences: the
/// share of the time that it decides. The numbers stay at `logarithms`.
std::vector<double> slopes_of(const std::vector<LogNumber>& numbers, const Model& model,
                              std::size_t row, const std::vector<double>& logarithms);

/// What is known of numbers: the covariance C of their logarithms. At first it is that of the
/// spreads; a row of slopes s, its log(time) known to 0.05 / sqrt(weight), takes
/// (C s)(C s)^T / (0.05^2 / weight + s^T C s) from it.
/// Source: Sherman and Morrison, "Adjustment of an inverse matrix corresponding to a change in one
/// element of a given matrix", Annals of Mathematical Statistics 21(1), 1950.
class Knowledge {
 public:
  explicit Knowledge(const std::vector<LogNumber>& numbers);
  void add(const std::vector<double>& slopes, double weight = 1);
  double deviation(std::size_t number) const;
  /// The part of a number's variance that a row of these slopes would take.
  double narrowed_by(const std::vector<double>& slopes, std::size_t number) const;

 private:
  std::vector<double> times(const std::vector<double>& slopes) const;

  std::vector<std::vector<double>> covariance_;
};

/// Moves the numbers that the data tell to the least of
///
///     sum_i loss(log(model(i) / measured[i]) / 0.05) + sum loss(log(number / start) / spread)
///
/// with Cauchy's loss, that of the rows narrowing from 1 to 0.05 in three steps. A start that the
/// data contradict gives way like an outlier among them: else one that is thought to be known well
/// would make outliers of the few rows that it rules. All numbers move at first; as
/// long as one of them is not told, the one that is least so goes back to where it started, and
/// the others are moved anew. A number that starts at 0 or below its bound is moved from the bound.
/// Deterministic.
/// \return the numbers with their 95 % intervals: from what is known at the end with all numbers
///     uncertain, the kept ones too, scaled up where the residuals are larger than the 5 % that the
///     loss expects.
std::vector<FittedValue> fit_logarithms(const std::vector<LogNumber>& numbers, const Model& model,
                                        const std::vector<double>& measured);

}  // namespace foreshard::calibrate
