#include "validate/measurement/measurement.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"

#include "strategies/program/ir/json.h"

namespace foreshard::measure {
namespace {

std::string timing_remark(const RankRecord& rank) {
  const TimingCost& cost = *rank.timing;
  const std::string events = std::to_string(cost.events) + " events";
  if (!(cost.step > 0_s)) return "the " + events + " that time the tasks made no step longer";
  return "the " + events + " that time the tasks took " + format(cost.step) +
         " of the step of rank " + std::to_string(rank.rank) + ", " + format(cost.event) + " each";
}

Seconds in_step(const RankRecord& rank, Seconds GemmChoice::*time) {
  Seconds sum;
  for (const GemmChoice& gemm : rank.gemms) sum += static_cast<double>(gemm.count) * (gemm.*time);
  return sum;
}

Seconds saving(const RankRecord& rank) {
  return in_step(rank, &GemmChoice::taken) - in_step(rank, &GemmChoice::fastest);
}

constexpr double kClockFell = 0.05;

// "rank 3", "rank 3 and 7 more".
std::string who(const std::vector<std::int32_t>& ranks) {
  return "rank " + std::to_string(ranks.front()) +
         (ranks.size() == 1 ? "" : " and " + std::to_string(ranks.size() - 1) + " more");
}

std::optional<Span> span_of(const std::vector<Reading>& readings,
                            std::optional<double> Reading::*field) {
  std::vector<double> values;
  for (const Reading& reading : readings)
    if (reading.*field) values.push_back(*(reading.*field));
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return Span{.low = values.front(), .median = values[values.size() / 2], .high = values.back()};
}

}  // namespace

std::optional<During> during_of(const std::vector<Reading>& readings) {
  During during{.samples = static_cast<std::int64_t>(readings.size()),
                .clock_mhz = span_of(readings, &Reading::clock_mhz),
                .celsius = span_of(readings, &Reading::celsius),
                .watts = span_of(readings, &Reading::watts)};
  std::set<std::string> throttle;
  for (const Reading& reading : readings)
    throttle.insert(reading.throttle.begin(), reading.throttle.end());
  during.throttle.assign(throttle.begin(), throttle.end());
  if (!during.clock_mhz && !during.celsius && !during.watts && throttle.empty())
    return std::nullopt;
  return during;
}

std::vector<std::string> remarks_on_clocks(const Measurement& measurement) {
  static const std::set<std::string> harmless{"idle", "applications_clocks", "sw_power_cap"};
  std::map<std::string, std::vector<std::int32_t>> slowed;
  std::vector<std::int32_t> fell;
  Span lowest;  // the clock that fell most
  const auto left = [](const Span& clock) { return clock.low / clock.high; };
  for (const RankRecord& rank : measurement.ranks) {
    if (!rank.during) continue;
    for (const std::string& reason : rank.during->throttle)
      if (!harmless.contains(reason)) slowed[reason].push_back(rank.rank);
    const auto& clock = rank.during->clock_mhz;
    if (!clock || !(clock->low < (1 - kClockFell) * clock->high)) continue;
    if (fell.empty() || left(*clock) < left(lowest)) {
      lowest = *clock;
      fell.insert(fell.begin(), rank.rank);
    } else {
      fell.push_back(rank.rank);
    }
  }
  std::vector<std::string> remarks;
  remarks.reserve(slowed.size() + 1);
  for (const auto& [reason, ranks] : slowed)
    remarks.push_back("the device of " + who(ranks) + " was slowed down by " + reason +
                      " while its steps were measured");
  if (!fell.empty())
    remarks.push_back("the clock of " + who(fell) + " varied between " +
                      std::to_string(std::lround(lowest.low)) + " and " +
                      std::to_string(std::lround(lowest.high)) +
                      " MHz while steps were measured; --for 90s shows where it settles");
  return remarks;
}

const std::string& Providers::of(const Kernel& kernel) const {
  if (std::holds_alternative<Gemm>(kernel)) return gemm;
  return std::holds_alternative<Attention>(kernel) ? attention : pass;
}

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

std::vector<std::string> remarks_of(const Measurement& measurement) {
  const RankRecord* timed = nullptr;
  const RankRecord* chosen = nullptr;
  for (const RankRecord& rank : measurement.ranks) {
    if (rank.timing && (timed == nullptr || rank.timing->step > timed->timing->step)) timed = &rank;
    if (!rank.gemms.empty() && (chosen == nullptr || saving(rank) > saving(*chosen)))
      chosen = &rank;
  }
  std::vector<std::string> remarks;
  if (timed != nullptr) remarks.push_back(timing_remark(*timed));
  if (chosen != nullptr)
    remarks.push_back("matrix products take cuBLASLt's first proposals, alone " +
                      format(in_step(*chosen, &GemmChoice::taken)) + " of a step of rank " +
                      std::to_string(chosen->rank) + "; the fastest proposals would take " +
                      format(saving(*chosen)) + " less");
  return remarks;
}

std::string fingerprint_of(const program::Program& program) {
  program::Program what = program;
  what.launch_time = {};
  for (program::Block& block : what.blocks)
    for (program::Task& task : block.tasks) task.launches = 1;
  what.launch_time_of_rank = {};
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : program::to_json(what)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); hash != 0; hash >>= 4)
    digits[--i] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace foreshard::measure
