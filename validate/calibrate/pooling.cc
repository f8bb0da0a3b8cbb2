// Residuals that hold a fit's numbers near their start and near each other; collective_fit.cc
// adds them.
#include "validate/calibrate/pooling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foreshard::calibrate {

Distance::Distance(std::size_t count, std::vector<Family> families, std::vector<double> apart)
    : count_(count), families_(std::move(families)), apart_(std::move(apart)) {
  apart_.resize(count);
  set_num_residuals(static_cast<int>(count));
  for (int i = 0; i < 2; ++i) mutable_parameter_block_sizes()->push_back(static_cast<int>(count));
}

bool Distance::Evaluate(const double* const* parameters, double* residuals,
                        double** jacobians) const {
  for (int block = 0; jacobians != nullptr && block < 2; ++block)
    if (jacobians[block] != nullptr) std::fill_n(jacobians[block], count_ * count_, 0.0);
  for (const Family& family : families_) {
    const auto n = static_cast<double>(family.members.size());
    const double ratio = family.together / family.own;
    const double shared = 1 - 1 / std::sqrt(1 + n * ratio * ratio);
    double mean = 0;
    const auto difference = [&](std::size_t i) {
      return parameters[0][i] - parameters[1][i] - apart_[i];
    };
    for (const std::size_t i : family.members) mean += difference(i) / n;
    for (const std::size_t i : family.members) {
      residuals[i] = (difference(i) - shared * mean) / family.own;
      for (int block = 0; jacobians != nullptr && block < 2; ++block) {
        if (jacobians[block] == nullptr) continue;
        const double sign = block == 0 ? 1 : -1;
        for (const std::size_t j : family.members)
          jacobians[block][i * count_ + j] = sign * ((i == j ? 1 : 0) - shared / n) / family.own;
      }
    }
  }
  return true;
}

Start::Start(std::vector<double> start, std::vector<double> spread)
    : start_(std::move(start)), spread_(std::move(spread)) {
  set_num_residuals(static_cast<int>(start_.size()));
  mutable_parameter_block_sizes()->push_back(static_cast<int>(start_.size()));
}

bool Start::Evaluate(const double* const* parameters, double* residuals, double** jacobians) const {
  const std::size_t count = start_.size();
  for (std::size_t i = 0; i < count; ++i)
    residuals[i] = (parameters[0][i] - start_[i]) / spread_[i];
  if (jacobians != nullptr && jacobians[0] != nullptr) {
    std::fill_n(jacobians[0], count * count, 0.0);
    for (std::size_t i = 0; i < count; ++i) jacobians[0][i * count + i] = 1 / spread_[i];
  }
  return true;
}

}  // namespace foreshard::calibrate
