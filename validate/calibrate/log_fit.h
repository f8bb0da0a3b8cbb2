/// \file
/// Robust least squares over the logarithms of positive numbers, for models given as code. Only
/// numbers that the data determine are moved.
///
/// The prior of a number's logarithm is centred on its start with a standard deviation of `spread`:
/// in two of three cases the number is within a factor of e^spread. Measured times are expected to
/// be off by 5 %, so the prior weighs as much as (0.05 / spread)^2 measured times that are
/// proportional to the number. A number is *told* (determined) by the data if they reduce its
/// standard deviation, with the other moving numbers uncertain, to half of `spread` or less. Larger
/// residuals leave a number told but widen its interval.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace foreshard::calibrate {

/// A prediction whose relative error is larger than this is worth naming.
inline constexpr double kFarOff = 0.3;
/// A number is told once its standard deviation is at most this fraction of `spread`.
inline constexpr double kTold = 0.5;

/// A positive number somewhere in a model's parameters.
struct LogNumber {
  std::string name;
  double value = 0;                   ///< Start value.
  std::function<void(double)> set{};  ///< Puts a value into the model.
  double low = 0;                     ///< Bounds. Invariant: 0 < low < high.
  double high = 0;
  double spread = 1;  ///< Standard deviation of the logarithm, before any data.

  /// Logarithm of the start, or of the bound that it is beyond.
  double start() const;
};

/// Predicted time of a row, with the numbers that were last set.
using Model = std::function<double(std::size_t row)>;

/// d log(model(row)) / d log(number), one per number, at `logarithms`, by central differences: the
/// share of the time that the number decides. Leaves the numbers set to `logarithms`.
std::vector<double> slopes_of(const std::vector<LogNumber>& numbers, const Model& model,
                              std::size_t row, const std::vector<double>& logarithms);

/// Covariance C of the numbers' logarithms, given the rows added so far. It begins as the diagonal
/// of the squared spreads. A row with slopes s, whose log(time) has the standard deviation
/// 0.05 / sqrt(weight), subtracts (C s)(C s)^T / (0.05^2 / weight + s^T C s).
/// Source: Sherman and Morrison, "Adjustment of an inverse matrix corresponding to a change in one
/// element of a given matrix", Annals of Mathematical Statistics 21(1), 1950.
class Knowledge {
 public:
  explicit Knowledge(const std::vector<LogNumber>& numbers);
  void add(const std::vector<double>& slopes, double weight = 1);
  double deviation(std::size_t number) const;
  /// The fraction of a number's variance that a row with these slopes would remove.
  double narrowed_by(const std::vector<double>& slopes, std::size_t number) const;

 private:
  std::vector<double> times(const std::vector<double>& slopes) const;

  std::vector<std::vector<double>> covariance_;
};

/// A number of the efficiency or communication file, after a fit.
struct FittedValue {
  std::string name;  ///< For example "gemm.rate_of.fp32".
  double before = 0;
  double value = 0;
  double low = 0;  ///< 95 % interval, from the curvature at the minimum; 0 if the number was kept.
  double high = 0;
  bool at_bound = false;  ///< The fit ended at a bound of the number.
  std::string kept{};     ///< Why the number was not fitted; empty: it was.
};

/// Moves the numbers that the data tell to the minimum of
///
///     sum_i loss(log(model(i) / measured[i]) / 0.05) + sum loss(log(number / start) / spread)
///
/// with Cauchy's loss, whose width for the rows narrows from 1 to 0.05 in three steps. The prior
/// has Cauchy's loss too, so a start that the data contradict yields like an outlier; otherwise a
/// number that is thought to be well known would turn the few rows that it decides into outliers.
/// All numbers move at first. While any of them is not told, the least told one returns to its
/// start and the others are fitted again. A number that starts at 0 or below its bound is moved
/// from the bound. Deterministic.
/// \return the numbers with their 95 % intervals. The intervals regard all numbers as uncertain,
///     the kept ones too, and are scaled up where the residuals exceed the expected 5 %.
std::vector<FittedValue> fit_logarithms(const std::vector<LogNumber>& numbers, const Model& model,
                                        const std::vector<double>& measured);

}  // namespace foreshard::calibrate
