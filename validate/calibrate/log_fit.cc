#include "validate/calibrate/log_fit.h"

#include <algorithm>
#include <array>
#include <ceres/ceres.h>
#include <cmath>
#include <memory>
#include <utility>

namespace foreshard::calibrate {
namespace {

constexpr double kScale = 0.05;  // of a logarithm: what a good model misses by
constexpr double kStep = 1e-4;   // of a logarithm, for slopes
constexpr double kNinetyFive = 1.96;
constexpr std::array kWidths{20.0, 4.0, 1.0};  // of the loss, in kScale

// One measured time beside the model's; all share the numbers.
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

std::unique_ptr<ceres::Problem> problem_of(const std::vector<LogNumber>& numbers,
                                           const std::function<double(std::size_t)>& predicted,
                                           const std::vector<double>& measured,
                                           const std::vector<double>& start,
                                           std::vector<double>& logarithms, double width) {
  auto problem = std::make_unique<ceres::Problem>();
  for (std::size_t i = 0; i < measured.size(); ++i)
    problem->AddResidualBlock(new Row(numbers, predicted, i, measured[i]),
                              new ceres::CauchyLoss(width), logarithms.data());
  problem->AddResidualBlock(new Before(start, numbers), nullptr, logarithms.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int at = static_cast<int>(i);
    problem->SetParameterLowerBound(logarithms.data(), at, std::log(numbers[i].low));
    problem->SetParameterUpperBound(logarithms.data(), at, std::log(numbers[i].high));
  }
  return problem;
}

// Standard deviations of the logarithms, or of the data before if the covariance is singular.
std::vector<double> deviations_of(ceres::Problem& problem, std::vector<double>& logarithms,
                                  const std::vector<LogNumber>& numbers) {
  std::vector<double> deviations;
  deviations.reserve(numbers.size());
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
  result.reserve(numbers.size());
  logarithms.reserve(numbers.size());
  for (const LogNumber& number : numbers) {
    result.push_back({.name = number.name, .before = number.value});
    logarithms.push_back(std::log(std::clamp(number.value, number.low, number.high)));
  }
  // A narrow loss has many valleys far from the data, so it narrows step by step (graduated
  // non-convexity). Each problem goes on from where the last one ended.
  const std::vector<double> start = logarithms;
  std::unique_ptr<ceres::Problem> problem;
  for (const double width : kWidths) {
    problem = problem_of(numbers, predicted, measured, start, logarithms, width);
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_QR;
    options.max_num_iterations = 200;
    options.function_tolerance = 1e-9;
    options.num_threads = 1;
    options.logging_type = ceres::SILENT;
    ceres::Solver::Summary summary;
    ceres::Solve(options, problem.get(), &summary);
  }

  const std::vector<double> deviations = deviations_of(*problem, logarithms, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].set(std::exp(logarithms[i]));
  std::vector<double> misses;
  misses.reserve(measured.size());
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
