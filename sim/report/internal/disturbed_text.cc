// What the text report says about disturbances and about a step that never ends (disturbed.h);
// text.cc calls it.
#include <algorithm>
#include <fmt/format.h>

#include "base/grouped.h"
#include "base/quantity.h"

#include "sim/report/internal/disturbed.h"
#include "sim/report/numbers.h"

namespace foreshard::report {
namespace {

constexpr std::int64_t kMostNamed = 12;

std::string when(const disturbance::Hit& hit) {
  if (hit.until < disturbance::kNever)
    return fmt::format("{} to {}", format(hit.at), format(hit.until));
  return hit.at > Seconds() ? fmt::format("from {}", format(hit.at)) : "always";
}

std::string names(const disturbance::Hit& hit) {
  constexpr std::size_t kMostNames = 3;
  std::string text;
  for (std::size_t i = 0; i < hit.who.size() && i < kMostNames; ++i)
    text += (i == 0 ? "" : ", ") + hit.who[i];
  const auto rest = hit.count - static_cast<std::int64_t>(std::min(hit.who.size(), kMostNames));
  if (text.empty()) return fmt::format("all {}", grouped(hit.count));
  return rest > 0 ? fmt::format("{} and {} more", text, grouped(rest)) : text;
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

void write_disturbances(Page& page, const Report& report) {
  if (!report.prediction.disturbances) return;
  const sim::DisturbanceSummary& summary = *report.prediction.disturbances;
  page.heading("Disturbances", fmt::format("seed {}", summary.seed));
  if (summary.hits.empty()) page.line("  none");
  for (const disturbance::Hit& hit : summary.hits)
    page.remark(hit.kind, fmt::format("{}: {}, {}", names(hit), hit.effect, when(hit)),
                Tone::kPlain);
  const auto runs = static_cast<std::int64_t>(summary.steps.size()) + summary.interrupted;
  if (runs == 1) return;
  std::string text = fmt::format("{} seeds", grouped(runs));
  if (summary.interrupted > 0)
    text += fmt::format(", with {} of which the step never ends", grouped(summary.interrupted));
  if (!summary.steps.empty()) {
    const StepStatistics s = statistics_of(summary.steps);
    text += fmt::format("; steps take {} on average, {} (median), {} (95th percentile), {} to {}",
                        format(s.mean), format(s.median), format(s.p95), format(s.lowest),
                        format(s.highest));
    text += ". Shown is the median";
  }
  page.remark("runs", text + ".", Tone::kPlain);
}

void write_interruption(Page& page, const Report& report) {
  if (!report.interruption) return;
  const InterruptionReport& what = *report.interruption;
  page.heading("The step never ends", fmt::format("since {}", format(what.at)));
  std::size_t rows = 0;
  for (const InterruptedTask& one : what.failed) {
    if (rows++ == kMostNamed) break;
    page.remark("✗",
                fmt::format("{}: {} (layer {}, micro-batch {}) began at {} and failed at {}, on {}",
                            one.task.who, one.task.what, one.task.layer, one.task.micro_batch,
                            format(one.start), format(one.at), one.on),
                Tone::kBad);
  }
  page.more(std::ssize(what.failed) - kMostNamed, "(--format json lists all)");
  rows = 0;
  for (const WaitingDevices& one : what.waiting) {
    if (rows++ == kMostNamed) break;
    const std::string many = one.count > 1 ? fmt::format(" and {} like it", one.count - 1) : "";
    const std::string why =
        one.itself ? std::string(one.failed ? "failed" : "stands still for ever")
                   : fmt::format("waits for {} of {}, which {}", one.waits_for.what,
                                 one.waits_for.who, one.failed ? "failed" : "stands still");
    page.remark("·",
                fmt::format("{}{}: {} {}; stopped at {}", one.task.who, many, one.task.what, why,
                            format(one.since)),
                Tone::kPlain);
  }
  page.more(std::ssize(what.waiting) - kMostNamed, "(--format json lists all)");
  page.line(fmt::format("  {} tasks were never done.", grouped(what.unfinished)));
}

}  // namespace foreshard::report
