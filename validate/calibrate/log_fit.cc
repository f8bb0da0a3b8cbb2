#include "validate/calibrate/log_fit.h"

#include <algorithm>
#include <ceres/ceres.h>
#include <cmath>
#include <limits>

namespace foreshard::calibrate {
namespace {

constexpr double kScale = 0.05;  // of a logarithm: what a good model misses by
constexpr double kStep = 1e-4;   // of a logarithm, for slopes
constexpr double kNinetyFive = 1.96;

// All residuals of the data as one cost: the model's numbers are shared by all of them.
class Row final : public ceres::CostFunction {
 public:
  Row(const std::vector<LogNumber>& numbers, const std::function<double(std::size_t)>& predicted,
      std::size_t row, double measured)
      : numbers_(numbers), predicted_(predicted), row_(row), measured_(measured) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(numbers.size()));
  }

  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    put(parameters[0]);
    residuals[0] = residual();
    if (jacobians == nullptr || jacobians[0] == nullptr) return std::isfinite(residuals[0]);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i].set(std::exp(parameters[0][i] + kStep));
      const double above = residual();
      numbers_[i].set(std::exp(parameters[0][i] - kStep));
      const double below = residual();
      numbers_[i].set(std::exp(parameters[0][i]));
      jacobians[0][i] = (above - below) / (2 * kStep);
    }
    return std::isfinite(residuals[0]);
  }

 private:
  void put(const double* logarithms) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i].set(std::exp(logarithms[i]));
  }
  double residual() const { return std::log(predicted_(row_) / measured_) / kScale; }

  const std::vector<LogNumber>& numbers_;
  const std::function<double(std::size_t)>& predicted_;
  std::size_t row_;
  double measured_;
};

class Before final : public ceres::CostFunction {
 public:
  Before(std::vector<double> start, const std::vector<LogNumber>& numbers)
      : start_(std::move(start)), numbers_(numbers) {
    set_num_residuals(static_cast<int>(start_.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(start_.size()));
  }
  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    const std::size_t count = start_.size();
    for (std::size_t i = 0; i < count; ++i)
      residuals[i] = (parameters[0][i] - start_[i]) / numbers_[i].spread;
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], count * count, 0.0);
      for (std::size_t i = 0; i < count; ++i) jacobians[0][i * count + i] = 1 / numbers_[i].spread;
    }
    return true;
  }

 private:
  std::vector<double> start_;
  const std::vector<LogNumber>& numbers_;
};

// Standard deviations of the logarithms, or of the data before if the covariance is singular.
std::vector<double> deviations_of(ceres::Problem& problem, std::vector<double>& logarithms,
                                  const std::vector<LogNumber>& numbers) {
  std::vector<double> deviations;
  for (const LogNumber& number : numbers) deviations.push_back(number.spread);
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::DENSE_SVD;
  options.null_space_rank = -1;
  ceres::Covariance covariance(options);
  const double* block = logarithms.data();
  const std::vector<std::pair<const double*, const double*>> blocks{{block, block}};
  const std::size_t count = logarithms.size();
  std::vector<double> matrix(count * count);
  if (!covariance.Compute(blocks, &problem) ||
      !covariance.GetCovarianceBlock(block, block, matrix.data()))
    return deviations;
  for (std::size_t i = 0; i < count; ++i)
    deviations[i] = std::sqrt(std::max(0.0, matrix[i * count + i]));
  return deviations;
}

}  // namespace

std::vector<FittedValue> fit_logarithms(const std::vector<LogNumber>& numbers,
                                        const std::function<double(std::size_t)>& predicted,
                                        const std::vector<double>& measured) {
  std::vector<FittedValue> result;
  std::vector<double> logarithms;
  for (const LogNumber& number : numbers) {
    result.push_back({.name = number.name, .before = number.value});
    logarithms.push_back(std::log(std::clamp(number.value, number.low, number.high)));
  }
  ceres::Problem problem;
  const int count = static_cast<int>(numbers.size());
  for (std::size_t i = 0; i < measured.size(); ++i)
    problem.AddResidualBlock(new Row(numbers, predicted, i, measured[i]), new ceres::CauchyLoss(1),
                             logarithms.data());
  problem.AddResidualBlock(new Before(logarithms, numbers), nullptr, logarithms.data());
  for (int i = 0; i < count; ++i) {
    const LogNumber& number = numbers[static_cast<std::size_t>(i)];
    problem.SetParameterLowerBound(logarithms.data(), i, std::log(number.low));
    problem.SetParameterUpperBound(logarithms.data(), i, std::log(number.high));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-9;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);

  const std::vector<double> deviations = deviations_of(problem, logarithms, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].set(std::exp(logarithms[i]));
  std::vector<double> misses;
  for (std::size_t i = 0; i < measured.size(); ++i)
    misses.push_back(std::abs(std::log(predicted(i) / measured[i])) / kScale);
  std::ranges::sort(misses);
  const double typical = misses.empty() ? 1 : 1.4826 * misses[misses.size() / 2];
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const LogNumber& number = numbers[i];
    FittedValue& value = result[i];
    const double off =
        std::min(kNinetyFive * std::max(1.0, typical) * deviations[i], kNinetyFive * number.spread);
    value.value = std::exp(logarithms[i]);
    value.low = std::exp(logarithms[i] - off);
    value.high = std::exp(logarithms[i] + off);
    value.at_bound = logarithms[i] <= std::log(number.low) + 1e-9 ||
                     logarithms[i] >= std::log(number.high) - 1e-9;
  }
  return result;
}

}  // namespace foreshard::calibrate
