/// \file
/// Robust least squares over the logarithms of positive numbers, for models given as code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/calibrate/kernel_fit.h"

namespace foreshard::calibrate {

/// A prediction whose relative error is larger than this is worth naming.
inline constexpr double kFarOff = 0.3;

/// A positive number somewhere in a model's parameters.
struct LogNumber {
  std::string name;
  double value = 0;                   ///< Where it starts.
  std::function<void(double)> set{};  ///< Puts a value into the model.
  double low = 0;                     ///< Bounds. Invariant: 0 < low < high.
  double high = 0;
  double spread = 1;  ///< Standard deviation of the logarithm, before any data.
};

/// Moves the numbers to the least of
///
///     sum_i loss(log(predicted(i) / measured[i]) / 0.05) + sum (log(number / start) / spread)^2
///
/// with Cauchy's loss, which narrows from 1 to 0.05 in three steps. `predicted` sees what was last
/// set. Slopes are central differences. A number that starts at 0 or below its bound starts at the
/// bound. Deterministic.
/// \return the numbers with their 95 % intervals: from the covariance at the end, scaled up where
///     the residuals are larger than the 5 % that the loss expects.
std::vector<FittedValue> fit_logarithms(const std::vector<LogNumber>& numbers,
                                        const std::function<double(std::size_t)>& predicted,
                                        const std::vector<double>& measured);

}  // namespace foreshard::calibrate
