#include <algorithm>
#include <cmath>

#include "sim/report/internal/disturbed.h"

namespace foreshard::report {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity: null stands for never.
Json seconds_or_null(Seconds time) {
  return std::isfinite(time.in_base()) ? Json(time.in_base()) : Json(nullptr);
}

Json json_of(const NamedTask& task) {
  return {{"who", task.who},
          {"what", task.what},
          {"layer", task.layer},
          {"micro_batch", task.micro_batch}};
}

}  // namespace

StepStatistics statistics_of(std::vector<Seconds> steps) {
  std::ranges::sort(steps);
  Seconds sum;
  for (const Seconds step : steps) sum += step;
  const auto rank = [&](std::size_t percent) {
    return steps[(percent * steps.size() + 99) / 100 - 1];
  };
  return {.mean = sum / static_cast<double>(steps.size()),
          .lowest = steps.front(),
          .median = rank(50),
          .p95 = rank(95),
          .highest = steps.back()};
}

Json disturbances_json(const Report& report) {
  const sim::DisturbanceSummary& summary = *report.prediction.disturbances;
  Json events = Json::array();
  for (const disturbance::Hit& hit : summary.hits)
    events.push_back({{"kind", hit.kind},
                      {"effect", hit.effect},
                      {"at_s", seconds_or_null(hit.at)},
                      {"until_s", seconds_or_null(hit.until)},
                      {"count", hit.count},
                      {"who", hit.who}});
  Json runs = {{"ended", summary.steps.size()}, {"interrupted", summary.interrupted}};
  if (!summary.steps.empty()) {
    const StepStatistics statistics = statistics_of(summary.steps);
    runs["mean_s"] = seconds_or_null(statistics.mean);
    runs["min_s"] = seconds_or_null(statistics.lowest);
    runs["p50_s"] = seconds_or_null(statistics.median);
    runs["p95_s"] = seconds_or_null(statistics.p95);
    runs["max_s"] = seconds_or_null(statistics.highest);
  }
  return {{"seed", summary.seed}, {"events", std::move(events)}, {"runs", std::move(runs)}};
}

Json interruption_json(const InterruptionReport& interruption) {
  Json failed = Json::array();
  for (const InterruptedTask& one : interruption.failed)
    failed.push_back({{"task", json_of(one.task)},
                      {"start_s", seconds_or_null(one.start)},
                      {"at_s", seconds_or_null(one.at)},
                      {"on", one.on}});
  Json waiting = Json::array();
  for (const WaitingDevices& one : interruption.waiting)
    waiting.push_back({{"task", json_of(one.task)},
                       {"devices", one.count},
                       {"since_s", seconds_or_null(one.since)},
                       {"waits_for", json_of(one.waits_for)},
                       {"failed", one.failed}});
  return {{"at_s", seconds_or_null(interruption.at)},
          {"failed", std::move(failed)},
          {"waiting", std::move(waiting)},
          {"unfinished_tasks", interruption.unfinished}};
}

}  // namespace foreshard::report
