#include "validate/replay/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <variant>

#include "base/check.h"

#include "strategies/program/ir/group.h"

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

namespace {

using Json = nlohmann::json;

Json numbers(const std::vector<Seconds>& times) {
  Json out = Json::array();
  for (const Seconds time : times) out.push_back(time.in_base());
  return out;
}

// The list of times at `key`; nothing if it is not a list of numbers.
std::optional<std::vector<Seconds>> times_in(const Json& json, const char* key) {
  std::vector<Seconds> out;
  if (!json.contains(key) || !json[key].is_array()) return std::nullopt;
  for (const Json& one : json[key]) {
    if (!one.is_number()) return std::nullopt;
    out.push_back(Seconds::from_base(one));
  }
  return out;
}

// Takes the elementwise maximum of `last` and `times`. \return false if their sizes differ.
bool take_later(std::vector<Seconds>& last, const std::vector<Seconds>& times) {
  if (last.empty()) last = times;
  if (last.size() != times.size()) return false;
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = std::max(last[i], times[i]);
  return true;
}

}  // namespace

std::string communications_of(const RankPlan& plan, const Samples& samples) {
  Json all = Json::array();
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    if (operation.communicator < 0) continue;
    const auto place = static_cast<std::size_t>(operation.communicator);
    all.push_back({{"instance", i},
                   {"communicator", plan.communicators[place].number},
                   {"tag", program::tag_of(plan.task(i))},
                   {"ordinal", operation.ordinal},
                   {"start", numbers(samples.starts_of(i))},
                   {"finish", numbers(samples.finishes_of(i))}});
  }
  std::string text;
  Json::to_cbor(all, text);
  return text;
}

bool CommunicationDurations::add(std::int32_t rank, std::string_view text) {
  const Json all = Json::from_cbor(text, true, false);
  if (!all.is_array()) return false;
  for (const Json& one : all) {
    if (!one.is_object()) return false;
    for (const char* key : {"instance", "communicator", "ordinal"})
      if (!one.contains(key) || !one[key].is_number_integer()) return false;
    if (!one.contains("tag") || !one["tag"].is_string()) return false;
    const auto start = times_in(one, "start"), finish = times_in(one, "finish");
    if (!start || !finish) return false;
    const Key key{one["communicator"], one["tag"], one["ordinal"]};
    Lasts& lasts = lasts_[key];
    if (!take_later(lasts.start, *start) || !take_later(lasts.finish, *finish)) return false;
    members_[rank].push_back({one["instance"], key});
  }
  return true;
}

void CommunicationDurations::fill(std::int32_t rank, std::vector<measure::TaskTimes>& tasks) const {
  const auto members = members_.find(rank);
  if (members == members_.end()) return;
  for (const auto& [instance, key] : members->second) {
    const Lasts& lasts = lasts_.at(key);
    const std::vector<Seconds> took = differences(lasts.finish, lasts.start);
    if (instance >= tasks.size() || took.empty()) continue;
    tasks[instance].lasted = std::max(Seconds(), measure::quantile(took, 0.5));
  }
}

}  // namespace foreshard::replay
