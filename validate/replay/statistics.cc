#include "validate/replay/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <variant>

#include "base/check.h"

namespace foreshard::replay {
namespace {

constexpr double kLargeShare = 0.01;

}  // namespace

std::vector<Seconds> differences(const std::vector<Seconds>& finish,
                                 const std::vector<Seconds>& start) {
  std::vector<Seconds> out(finish.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = finish[i] - start[i];
  return out;
}

void Samples::add(const StepTimes& step) {
  FORESHARD_CHECK(step.start.size() == start_.size() && step.finish.size() == finish_.size());
  FORESHARD_CHECK(step.slack.empty() || step.slack.size() == start_.size());
  steps_.push_back(step.total);
  for (std::size_t i = 0; i < start_.size(); ++i) {
    start_[i].push_back(step.start[i]);
    finish_[i].push_back(step.finish[i]);
  }
  if (step.slack.empty()) return;
  slack_.resize(start_.size());
  for (std::size_t i = 0; i < slack_.size(); ++i) slack_[i].push_back(step.slack[i]);
}

std::vector<measure::TaskTimes> Samples::tasks() const {
  std::vector<measure::TaskTimes> out(start_.size());
  if (steps_.empty()) return out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::vector<Seconds> took = differences(finish_[i], start_[i]);
    out[i] = {.start = measure::quantile(start_[i], 0.5),
              .finish = measure::quantile(finish_[i], 0.5),
              .low = measure::quantile(took, 0.1),
              .median = measure::quantile(took, 0.5),
              .high = measure::quantile(took, 0.9),
              .slack = slack_.empty() ? Seconds() : measure::quantile(slack_[i], 0.5)};
  }
  return out;
}

bool Samples::narrow(double width, const RankPlan& plan) const {
  if (median_uncertainty(steps_) > width) return false;
  const Seconds least = kLargeShare * measure::quantile(steps_, 0.5);
  for (std::size_t i = 0; i < start_.size(); ++i) {
    if (!std::holds_alternative<Kernel>(plan.task(i).body)) continue;
    const std::vector<Seconds> took = differences(finish_[i], start_[i]);
    if (measure::quantile(took, 0.5) >= least && median_uncertainty(took) > width) return false;
  }
  return true;
}

double median_uncertainty(std::vector<Seconds> values) {
  const std::size_t count = values.size();
  if (count < 6) return std::numeric_limits<double>::infinity();
  std::ranges::sort(values);
  const auto n = static_cast<double>(count);
  const double reach = 1.96 * std::sqrt(n) / 2;
  // The bounds are the values with the numbers (from 1) floor(n/2 - reach) and
  // ceil(n/2 + 1 + reach).
  const auto low = static_cast<std::size_t>(std::max(1.0, std::floor(n / 2 - reach)));
  const auto high = static_cast<std::size_t>(std::min(n, std::ceil(n / 2 + 1 + reach)));
  return (values[high - 1] - values[low - 1]) / (2 * measure::quantile(values, 0.5));
}

Bytes expected_peak(const RankPlan& plan, const std::vector<measure::TaskTimes>& times) {
  Bytes live;
  for (const program::StaticMemory& memory : plan.program->roles[plan.role].memory)
    live += memory.bytes;
  struct Change {
    Seconds when{};
    bool allocate = false;
    Bytes bytes{};
  };
  std::vector<Change> changes;
  for (const program::MemoryEvent& event : plan.memory.events) {
    Change change{.allocate = event.allocate, .bytes = event.bytes};
    for (const std::int32_t anchor : plan.memory.anchors_of(event)) {
      const auto& task = times[static_cast<std::size_t>(anchor)];
      change.when = std::max(change.when, event.allocate ? task.start : task.finish);
    }
    changes.push_back(change);
  }
  // Memory freed at an instant is available to allocations at the same instant.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return std::tie(a.when, a.allocate) < std::tie(b.when, b.allocate);
  });
  Bytes peak = live;
  for (const Change& change : changes) {
    live = change.allocate ? live + change.bytes : live - change.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace foreshard::replay
