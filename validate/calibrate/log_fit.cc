#include "validate/calibrate/log_fit.h"

#include <algorithm>
#include <array>
#include <ceres/ceres.h>
#include <cmath>
#include <numeric>
#include <utility>

#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {
namespace {

constexpr double kScale = 0.05;  // a good model's error of log(time)
constexpr double kStep = 1e-4;   // difference of logarithms, for slopes
constexpr double kNinetyFive = 1.96;
constexpr std::array kWidths{20.0, 4.0, 1.0};  // widths of the loss, in units of kScale

void put(const std::vector<LogNumber>& numbers, const double* logarithms) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].set(std::exp(logarithms[i]));
}

// Residual of one measured time against the model's. All rows share one block of numbers.
class Row final : public ceres::CostFunction {
 public:
  Row(const std::vector<LogNumber>& numbers, const Model& model, std::size_t row, double measured)
      : numbers_(numbers), model_(model), row_(row), measured_(measured) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(numbers.size()));
  }

  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    put(numbers_, parameters[0]);
    residuals[0] = std::log(model_(row_) / measured_) / kScale;
    if (jacobians == nullptr || jacobians[0] == nullptr) return std::isfinite(residuals[0]);
    const auto slopes =
        slopes_of(numbers_, model_, row_, {parameters[0], parameters[0] + numbers_.size()});
    for (std::size_t i = 0; i < slopes.size(); ++i) jacobians[0][i] = slopes[i] / kScale;
    return std::isfinite(residuals[0]);
  }

 private:
  const std::vector<LogNumber>& numbers_;
  const Model& model_;
  std::size_t row_;
  double measured_;
};

// Residual of one number against its start, in spreads.
class Before final : public ceres::CostFunction {
 public:
  Before(const std::vector<LogNumber>& numbers, std::size_t number)
      : count_(numbers.size()),
        number_(number),
        start_(numbers[number].start()),
        spread_(numbers[number].spread) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(count_));
  }
  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    residuals[0] = (parameters[0][number_] - start_) / spread_;
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], count_, 0.0);
    jacobians[0][number_] = 1 / spread_;
    return true;
  }

 private:
  std::size_t count_;
  std::size_t number_;
  double start_;
  double spread_;
};

// Minimises from `logarithms`, which it moves to the minimum. \return the cost there.
double descend(const std::vector<LogNumber>& numbers, const Model& model,
               const std::vector<double>& measured, double width, std::vector<double>& logarithms) {
  ceres::Problem problem;
  for (std::size_t i = 0; i < measured.size(); ++i)
    problem.AddResidualBlock(new Row(numbers, model, i, measured[i]), new ceres::CauchyLoss(width),
                             logarithms.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int at = static_cast<int>(i);
    problem.AddResidualBlock(new Before(numbers, i), new ceres::CauchyLoss(1), logarithms.data());
    problem.SetParameterLowerBound(logarithms.data(), at, std::log(numbers[i].low));
    problem.SetParameterUpperBound(logarithms.data(), at, std::log(numbers[i].high));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-9;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return summary.final_cost;
}

// The logarithms at the minimum that is found from the start. Leaves `numbers` set to them.
std::vector<double> least(const std::vector<LogNumber>& numbers, const Model& model,
                          const std::vector<double>& measured) {
  std::vector<double> logarithms;
  logarithms.reserve(numbers.size());
  for (const LogNumber& number : numbers) logarithms.push_back(number.start());
  // A narrow loss has many local minima far from the data, so it narrows step by step (graduated
  // non-convexity). Each descent starts where the previous one ended.
  double cost = 0;
  for (const double width : kWidths) cost = descend(numbers, model, measured, width, logarithms);
  // A number that matters only far from its start may have ended in a local minimum of its own:
  // look for a lower one from the start.
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double start = numbers[i].start();
    if (std::abs(logarithms[i] - start) <= numbers[i].spread) continue;
    std::vector<double> again = logarithms;
    again[i] = start;
    const double other = descend(numbers, model, measured, kWidths.back(), again);
    if (other >= cost) continue;
    cost = other;
    logarithms = again;
  }
  put(numbers, logarithms.data());
  return logarithms;
}

struct Told {
  std::vector<double> deviations;  // standard deviations of the logarithms, with expected errors
  double typical = 1;              // typical error of the rows in units of the expected; >= 1
};
Told told_at(const std::vector<LogNumber>& numbers, const Model& model,
             const std::vector<double>& measured, const std::vector<double>& logarithms) {
  Knowledge knowledge(numbers);
  std::vector<double> misses;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::vector<double> slopes = slopes_of(numbers, model, i, logarithms);
    const double miss = std::log(model(i) / measured[i]) / kScale;
    misses.push_back(std::abs(miss));
    knowledge.add(slopes, 1 / (1 + miss * miss / (kWidths.back() * kWidths.back())));
  }
  std::ranges::sort(misses);
  Told told;
  if (!misses.empty()) told.typical = std::max(1.0, kNormalMad * misses[misses.size() / 2]);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    told.deviations.push_back(knowledge.deviation(i));
  return told;
}

}  // namespace

double LogNumber::start() const {
  return std::log(std::clamp(value, low, high));
}

std::vector<double> slopes_of(const std::vector<LogNumber>& numbers, const Model& model,
                              std::size_t row, const std::vector<double>& logarithms) {
  put(numbers, logarithms.data());
  std::vector<double> slopes;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = [&](double logarithm) {
      numbers[i].set(std::exp(logarithm));
      return std::log(model(row));
    };
    slopes.push_back((at(logarithms[i] + kStep) - at(logarithms[i] - kStep)) / (2 * kStep));
    numbers[i].set(std::exp(logarithms[i]));
  }
  return slopes;
}

Knowledge::Knowledge(const std::vector<LogNumber>& numbers)
    : covariance_(numbers.size(), std::vector<double>(numbers.size(), 0.0)) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    covariance_[i][i] = numbers[i].spread * numbers[i].spread;
}

std::vector<double> Knowledge::times(const std::vector<double>& slopes) const {
  std::vector<double> result;
  for (const std::vector<double>& row : covariance_)
    result.push_back(std::inner_product(row.begin(), row.end(), slopes.begin(), 0.0));
  return result;
}

void Knowledge::add(const std::vector<double>& slopes, double weight) {
  const std::vector<double> c = times(slopes);
  const double variance =
      kScale * kScale / weight + std::inner_product(c.begin(), c.end(), slopes.begin(), 0.0);
  for (std::size_t i = 0; i < c.size(); ++i)
    for (std::size_t j = 0; j < c.size(); ++j) covariance_[i][j] -= c[i] * c[j] / variance;
}

double Knowledge::deviation(std::size_t number) const {
  return std::sqrt(std::max(0.0, covariance_[number][number]));
}

double Knowledge::narrowed_by(const std::vector<double>& slopes, std::size_t number) const {
  const std::vector<double> c = times(slopes);
  const double variance =
      kScale * kScale + std::inner_product(c.begin(), c.end(), slopes.begin(), 0.0);
  return c[number] * c[number] / (variance * covariance_[number][number]);
}

std::vector<FittedValue> fit_logarithms(const std::vector<LogNumber>& numbers, const Model& model,
                                        const std::vector<double>& measured) {
  std::vector<std::size_t> moved(numbers.size());
  std::iota(moved.begin(), moved.end(), std::size_t{0});
  std::vector<double> logarithms;
  logarithms.reserve(numbers.size());
  for (const LogNumber& number : numbers) logarithms.push_back(number.start());
  while (!moved.empty()) {
    std::vector<LogNumber> free;
    free.reserve(moved.size());
    for (const std::size_t i : moved) free.push_back(numbers[i]);
    const std::vector<double> found = least(free, model, measured);
    const Told told = told_at(free, model, measured, found);
    std::size_t vaguest = 0;
    const auto left = [&](std::size_t i) { return told.deviations[i] / free[i].spread; };
    for (std::size_t i = 0; i < moved.size(); ++i)
      if (left(i) > left(vaguest)) vaguest = i;
    if (left(vaguest) <= kTold) {
      for (std::size_t i = 0; i < moved.size(); ++i) logarithms[moved[i]] = found[i];
      break;
    }
    numbers[moved[vaguest]].set(numbers[moved[vaguest]].value);
    moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(vaguest));
  }

  const Told told = told_at(numbers, model, measured, logarithms);
  std::vector<FittedValue> result;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const LogNumber& number = numbers[i];
    FittedValue value{.name = number.name, .before = number.value, .value = number.value};
    if (std::ranges::find(moved, i) == moved.end()) {
      value.kept = "what was measured does not tell it";
    } else {
      const double off = kNinetyFive * std::min(told.typical * told.deviations[i], number.spread);
      value.value = std::exp(logarithms[i]);
      value.low = std::exp(logarithms[i] - off);
      value.high = std::exp(logarithms[i] + off);
      value.at_bound = logarithms[i] <= std::log(number.low) + 1e-9 ||
                       logarithms[i] >= std::log(number.high) - 1e-9;
    }
    number.set(value.value);
    result.push_back(std::move(value));
  }
  return result;
}

}  // namespace foreshard::calibrate
