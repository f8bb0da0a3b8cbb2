/// \file
/// The prior of a fit's numbers, as residuals for Ceres.
///
/// Source: Gelman and Hill, "Data analysis using regression and multilevel/hierarchical models",
/// 2006 (partial pooling).
#pragma once

#include <ceres/cost_function.h>
#include <cstddef>
#include <vector>

namespace foreshard::calibrate {

/// Numbers of one set whose logarithms are distributed around the other set's with the covariance
/// own^2 I + together^2 J (J: all ones): one deviation that they share and one of each.
struct Family {
  std::vector<std::size_t> members{};  ///< Indices of numbers.
  double own = 1;                      ///< Standard deviations. Invariant: > 0.
  double together = 0;
};

/// Residuals, in standard deviations, of the differences between two blocks of `count` numbers.
/// With d = a - b of a family's n numbers they are (d - s mean(d)) / own, where
/// s = 1 - 1 / sqrt(1 + n (together / own)^2): the inverse root of the family's covariance times d.
/// \param apart  expected value of a - b, subtracted from d. Empty: zeros.
/// \pre Each of the `count` numbers is in exactly one family.
class Distance final : public ceres::CostFunction {
 public:
  Distance(std::size_t count, std::vector<Family> families, std::vector<double> apart = {});
  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override;

 private:
  std::size_t count_;
  std::vector<Family> families_;
  std::vector<double> apart_;
};

/// Residuals (a - start) / spread, one per number of a block.
class Start final : public ceres::CostFunction {
 public:
  Start(std::vector<double> start, std::vector<double> spread);
  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override;

 private:
  std::vector<double> start_;
  std::vector<double> spread_;
};

}  // namespace foreshard::calibrate
