// The warnings before a sweep's ranking (internal/doubts.h), for text.cc and output.cc.
#include "sim/sweep/internal/doubts.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/report/numbers.h"
#include "sim/study/evidence.h"

namespace foreshard::sweep::internal {
namespace {

// Maximum number of points that a message names.
constexpr std::size_t kMostNamed = 4;

std::string names_of_points(const Results& results, const std::vector<std::size_t>& points) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMostNamed, points.size()); ++i)
    names.push_back(label_of(static_cast<std::int64_t>(points[i]), results.question.axes));
  std::string text = join(names, "; ");
  if (points.size() > kMostNamed)
    text +=
        fmt::format(" and {} more", grouped(static_cast<std::int64_t>(points.size() - kMostNamed)));
  return text;
}

// The first point with a price in the ranking by money.
std::optional<std::size_t> first_priced(const Results& results, const Ranking& ranking) {
  if (ranking.verdict && !ranking.verdict->met.empty()) return ranking.verdict->met.front();
  for (const std::size_t point : ranking.ranked)
    if (results.outcomes[point]->figures->usd) return point;
  return std::nullopt;
}

// For points without a price, the total costs up to which they beat the first: ". machine 16 B200
// costs less than machine 16 H100 if all that is paid comes to less than 6.1 USD/h a device".
std::string worth_of_unpriced(const Results& results, const Ranking& ranking) {
  const auto first = first_priced(results, ranking);
  if (!first || results.question.rank != Measure::kUsd) return "";
  const WorkFigures best = figures_of(*results.outcomes[*first], ranking.work);
  std::vector<std::string> words;
  for (const std::size_t point : ranking.unknown) {
    const StepFigures& step = *results.outcomes[point]->figures;
    if (step.usd || words.size() == kMostNamed) continue;
    const WorkFigures own = figures_of(*results.outcomes[point], ranking.work);
    const auto devices = static_cast<double>(step.devices + step.idle);
    words.push_back(
        fmt::format("{} costs less than {} if all that is paid comes to less than {:.3g} USD/h a "
                    "device",
                    label_of(static_cast<std::int64_t>(point), results.question.axes),
                    label_of(static_cast<std::int64_t>(*first), results.question.axes),
                    *best.usd / (own.time * devices) / (1_USD / 1_h)));
  }
  return words.empty() ? "" : ". " + join(words, "; ");
}

}  // namespace

Missing missing_of(const Results& results, const Ranking& ranking) {
  if (ranking.unknown.empty()) return {};
  std::set<std::string> without_price;
  std::set<std::string> without_power;
  for (const std::size_t point : ranking.unknown) {
    const StepFigures& step = *results.outcomes[point]->figures;
    without_price.insert(step.without_price.begin(), step.without_price.end());
    without_power.insert(step.without_power.begin(), step.without_power.end());
  }
  const bool money = !without_price.empty() && results.question.rank != Measure::kKwh;
  const auto& devices = money ? without_price : without_power;
  Missing missing{.message = {}, .devices = {devices.begin(), devices.end()}};
  const auto count = std::ssize(ranking.unknown);
  missing.message = fmt::format(
      "{} of {} {} no {}, and {} not ranked by it: {}. Give {}", grouped(count),
      grouped(std::ssize(ranking.ranked)), count == 1 ? "points has" : "points have",
      money ? "price" : "power", count == 1 ? "is" : "are",
      names_of_points(results, ranking.unknown),
      money ? fmt::format("cluster.rent there, such as `cluster.rent: 3 USD/h` of one device, or "
                          "the rent of {}",
                          join(missing.devices))
            : fmt::format("{} power and idle_power", join(missing.devices)));
  if (money) missing.message += worth_of_unpriced(results, ranking);
  return missing;
}

std::vector<std::string> evidence_of(const Results& results, const Ranking& ranking) {
  std::vector<const study::Unmeasured*> all;
  for (const std::size_t point : ranking.ranked)
    all.push_back(&results.outcomes[point]->figures->unmeasured);
  return study::evidence_remarks(all, "point");
}

std::string doubts_text(const Results& results, const Ranking& ranking) {
  std::string text;
  if (const Missing missing = missing_of(results, ranking); !missing.message.empty())
    text += "! " + missing.message + ".\n";
  for (const std::string& remark : evidence_of(results, ranking)) text += "! " + remark + "\n";
  return text;
}

std::string measure_words(double value, Measure by, Work work) {
  constexpr double kMillion = 1e6;
  const double of = by == Measure::kTime || work == Work::kTraining ? value : value * kMillion;
  switch (by) {
    case Measure::kTime:
      return format(Seconds::from_base(of));
    case Measure::kUsd:
      return report::scaled(of) + " USD";
    case Measure::kKwh:
      return report::watt_hours(Joules::from_base(of));
  }
  return "";
}

std::string overlap_text(const Results& results, const Ranking& ranking) {
  if (ranking.overlapping == 0) return "";
  const Outcome& first = *results.outcomes[ranking.ranked.front()];
  const Measure by = results.question.rank;
  // Times per token mean little to people: the interval of the step is in the table.
  const bool of_step = by == Measure::kTime && ranking.work != Work::kTraining;
  const MeasureInterval interval =
      of_step ? MeasureInterval{first.figures->low.in_base(), first.figures->high.in_base()}
              : interval_of(figures_of(first, ranking.work), by);
  return fmt::format(
      "  The {} of {} {} overlap that of the first ({} to {}): a machine may order them "
      "otherwise.\n",
      by == Measure::kTime ? "intervals" : fmt::format("intervals, in {},", yaml::name_of(by)),
      grouped(ranking.overlapping), ranking.overlapping == 1 ? "other point" : "other points",
      measure_words(interval.low, by, ranking.work),
      measure_words(interval.high, by, ranking.work));
}

}  // namespace foreshard::sweep::internal
