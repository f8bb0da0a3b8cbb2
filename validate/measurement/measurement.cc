#include "validate/measurement/measurement.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace foreshard::measure {

Seconds quantile(std::vector<Seconds> values, double q) {
  FORESHARD_CHECK(!values.empty() && q >= 0 && q <= 1);
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

StepTimes step_of(const Measurement& measurement) {
  FORESHARD_CHECK(!measurement.ranks.empty() && !measurement.ranks.front().steps.empty());
  std::vector<Seconds> steps = measurement.ranks.front().steps;
  for (const RankRecord& rank : measurement.ranks)
    for (std::size_t i = 0; i < std::min(steps.size(), rank.steps.size()); ++i)
      steps[i] = std::max(steps[i], rank.steps[i]);
  return {
      .median = quantile(steps, 0.5), .low = quantile(steps, 0.1), .high = quantile(steps, 0.9)};
}

}  // namespace foreshard::measure
