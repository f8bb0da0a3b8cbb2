// A sweep's results for people (output.h, sweep_text), for `foreshard study`: the verdict, the
// ranking, and the doubts before it.
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/grouped.h"
#include "base/quantity.h"

#include "sim/report/numbers.h"
#include "sim/sweep/crossings.h"
#include "sim/sweep/internal/doubts.h"
#include "sim/sweep/output.h"

namespace foreshard::sweep {
namespace {

using report::right;
using report::scaled;

// Money and energy for tokens are given per million tokens.
constexpr double kMillion = 1e6;

// The values of a point's axes, and whether it is tight.
std::string label(const Results& results, std::size_t point) {
  const auto& outcome = results.outcomes[point];
  const bool is_tight = outcome && outcome->figures && outcome->figures->tight;
  return label_of(static_cast<std::int64_t>(point), results.question.axes) +
         (is_tight ? " (TIGHT)" : "");
}

// Comes first if the answer, or else the best point, leaves less than the memory margin.
std::string tight_text(const Results& results, const Ranking& ranking) {
  const bool meets = ranking.verdict && !ranking.verdict->met.empty();
  if (ranking.ranked.empty()) return "";
  const std::size_t first = meets ? ranking.verdict->met.front() : ranking.ranked.front();
  if (!results.outcomes[first]->figures->tight) return "";
  return fmt::format(
      "TIGHT: {} leaves less than the memory margin ({} left) and may run out of memory.\n\n",
      label_of(static_cast<std::int64_t>(first), results.question.axes),
      format(results.outcomes[first]->figures->headroom()));
}

bool all_done(const Results& results) {
  return results.done() == std::ssize(results.outcomes);
}

std::string counts_text(const Results& results) {
  const auto count = [&](PointStatus status) {
    return std::ranges::count_if(results.outcomes,
                                 [&](const auto& one) { return one && one->status == status; });
  };
  const std::int64_t all = std::ssize(results.outcomes);
  std::string text =
      fmt::format("  {} {}: {} {}", grouped(all), plural(all, "point"),
                  grouped(count(PointStatus::kOk)), count(PointStatus::kOk) == 1 ? "runs" : "run");
  if (const auto n = count(PointStatus::kInfeasible); n > 0)
    text += fmt::format(", {} cannot", grouped(n));
  if (const auto n = count(PointStatus::kInvalid); n > 0)
    text += fmt::format(", {} {} no study", grouped(n), n == 1 ? "makes" : "make");
  if (const auto left = all - results.done(); left > 0)
    text += fmt::format(", {} not done", grouped(left));
  return text + "\n";
}

std::string money(const WorkFigures& figures, Work work) {
  if (!figures.usd) return "-";
  return scaled(*figures.usd / 1_USD * (work == Work::kTraining ? 1 : kMillion));
}

std::string energy(const WorkFigures& figures, Work work) {
  if (!figures.energy) return "-";
  return report::watt_hours(*figures.energy * (work == Work::kTraining ? 1 : kMillion));
}

// "18.9 d to 23.4 d": the interval in which 8 of 10 measurements of the table's time are expected.
constexpr std::size_t kIntervalColumns = 20;
std::string interval_text(const StepFigures& step, const WorkFigures& figures, Work work) {
  return work == Work::kTraining
             ? fmt::format("{} to {}", format(figures.low), format(figures.high))
             : fmt::format("{} to {}", format(step.low), format(step.high));
}

// After the name of a point: the unmeasured share of its step.
std::string unmeasured_text(const StepFigures& step) {
  constexpr double kLeastShown = 0.005;
  return step.unmeasured.share < kLeastShown
             ? ""
             : fmt::format(" ({:.0f} % unmeasured)", 100 * step.unmeasured.share);
}

// One line for a point that runs, and another line for the strategy that was found.
std::string row_of(const Results& results, const Ranking& ranking, std::size_t place) {
  const std::size_t point = ranking.ranked[place];
  const Outcome& outcome = *results.outcomes[point];
  const StepFigures& step = *outcome.figures;
  const WorkFigures figures = figures_of(outcome, ranking.work);
  const bool training = ranking.work == Work::kTraining;
  const double amount = ranking.work == Work::kSample ? step.samples : step.tokens;
  std::string text =
      fmt::format("{} {:>4} {} {} {} {} {} {} {} {}  {}{}\n", ranking.on_front[point] ? "*" : " ",
                  place + 1, right(format(training ? figures.time : step.step), 8),
                  right(interval_text(step, figures, ranking.work), kIntervalColumns),
                  right(money(figures, ranking.work), 8), right(energy(figures, ranking.work), 9),
                  right(scaled(amount / (step.step / 1_s)), 8), right(report::percent(step.mfu), 7),
                  right(format(step.headroom()), 9), right(grouped(step.devices), 7),
                  label(results, point), unmeasured_text(step));
  if (results.question.searched) text += fmt::format("{:>7}{}\n", "", outcome.strategy);
  return text;
}

std::string table_text(const Results& results, const Ranking& ranking, std::int64_t top) {
  if (ranking.ranked.empty()) return "";
  const bool sample = ranking.work == Work::kSample;
  const bool training = ranking.work == Work::kTraining;
  const std::string each = sample ? "samples" : "tokens";
  std::string text = fmt::format(
      "\n  {:>4} {} {} {} {} {} {} {} {}  {}\n", "", right(training ? "time" : "step", 8),
      right("8 of 10 within", kIntervalColumns), right(training ? "USD" : "USD/M", 8),
      right(training ? "energy" : "Wh/M", 9), right(each + "/s", 8), right("MFU", 7),
      right("headroom", 9), right("devices", 7), "point");
  const auto shown =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(top, 0)), ranking.ranked.size());
  for (std::size_t i = 0; i < shown; ++i) text += row_of(results, ranking, i);
  if (shown < ranking.ranked.size())
    text += fmt::format("  ... and {} more (--top)\n",
                        grouped(static_cast<std::int64_t>(ranking.ranked.size() - shown)));
  if (std::ranges::count(ranking.on_front, true) > 0) {
    text += "  * no other point is both faster and cheaper";
    if (const auto left_out = std::ssize(ranking.off_front); left_out > 0)
      text +=
          fmt::format("; {} {} left out", grouped(left_out),
                      left_out == 1 ? "point without a price is" : "points without a price are");
    text += "\n";
  }
  return text + internal::overlap_text(results, ranking);
}

// Whether all points that have a value of an axis are done.
bool is_done(const Results& results, std::size_t axis, std::size_t value) {
  for (std::size_t i = 0; i < results.outcomes.size(); ++i)
    if (!results.outcomes[i] &&
        position_of(static_cast<std::int64_t>(i), results.question.axes)[axis] == value)
      return false;
  return true;
}

// Which energies exclude hosts: they are not comparable with the others.
std::string hosts_text(const Results& results, const Ranking& ranking) {
  std::set<std::string> without;
  bool others = false;
  for (const std::size_t point : ranking.ranked) {
    const StepFigures& step = *results.outcomes[point]->figures;
    if (!step.energy) continue;
    without.insert(step.without_host_power.begin(), step.without_host_power.end());
    others = others || step.without_host_power.empty();
  }
  if (without.empty()) return "";
  return fmt::format("  energy: hosts of {} are not counted{}; give their node host_power\n",
                     fmt::join(without, ", "),
                     others ? ", those of others are: the two do not compare" : "");
}

std::string best_text(const Results& results, const Ranking& ranking, std::int64_t top) {
  if (ranking.ranked.empty() || results.question.axes.size() < 2) return "";
  const bool training = ranking.work == Work::kTraining;
  std::string text = fmt::format(
      "\n  {:<28} {} {} {}  {}\n", "Best with each value", right(training ? "time" : "step", 8),
      right("8 of 10 within", kIntervalColumns), right(training ? "USD" : "USD/M", 8), "point");
  std::int64_t left = top;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < ranking.best_with.size(); ++i) {
    const AxisNames& axis = results.question.axes[i];
    for (std::size_t j = 0; j < axis.values.size(); ++j) {
      if (left-- <= 0) {
        ++more;
        continue;
      }
      const auto& best = ranking.best_with[i][j];
      const std::string what = axis.name + " " + axis.values[j];
      if (!best) {
        text += fmt::format("  {:<28} {}\n", what,
                            is_done(results, i, j) ? "nothing runs" : "not done yet");
        continue;
      }
      const Outcome& outcome = *results.outcomes[*best];
      const WorkFigures figures = figures_of(outcome, ranking.work);
      text += fmt::format(
          "  {:<28} {} {} {}  {}{}\n", what,
          right(format(training ? figures.time : outcome.figures->step), 8),
          right(interval_text(*outcome.figures, figures, ranking.work), kIntervalColumns),
          right(money(figures, ranking.work), 8), label(results, *best),
          is_done(results, i, j) ? "" : " (so far)");
    }
  }
  if (more > 0) text += fmt::format("  ... and {} more (--top)\n", grouped(more));
  return text;
}

std::string with_unit(double number, const std::string& unit) {
  const bool word = !unit.empty() && std::isalpha(static_cast<unsigned char>(unit.front())) != 0;
  constexpr double kLarge = 1000;  // from here on whole numbers have enough digits
  const std::string text = std::abs(number) < kLarge
                               ? fmt::format("{:.3g}", number)
                               : grouped(static_cast<std::int64_t>(std::llround(number)));
  return text + (word ? " " : "") + unit;
}

// Crossings at which the best choice changes come first.
std::string crossings_text(const Results& results, const Ranking& ranking, std::int64_t top) {
  std::vector<Crossing> crossings = crossings_of(results, ranking);
  if (crossings.empty()) return "";
  std::stable_partition(crossings.begin(), crossings.end(),
                        [](const Crossing& one) { return one.best; });
  std::string text = fmt::format("\n  Break-even in {}, of the best points of each\n",
                                 yaml::name_of(results.question.rank));
  const auto shown =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(top, 0)), crossings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Crossing& one = crossings[i];
    const AxisNames& along = results.question.axes[one.along];
    const AxisNames& between = results.question.axes[one.between];
    text += fmt::format("  {} {} {}: {} is better, {}: {}; the same at about {}\n",
                        one.best ? "*" : " ", along.name, along.values[one.low],
                        between.values[one.first], along.values[one.high], between.values[one.then],
                        with_unit(one.at, one.unit));
  }
  if (shown < crossings.size())
    text += fmt::format("  ... and {} more (--top)\n",
                        grouped(static_cast<std::int64_t>(crossings.size() - shown)));
  if (crossings.front().best) text += "  * no other choice is better there\n";
  return text;
}

// The savings of the listed points with 10 % more of each speed, largest first.
std::string worth_text(const Results& results, const Ranking& ranking, std::int64_t top) {
  constexpr double kLeast = 5e-4;  // smallest saving to show: a smaller one would be shown as zero
  constexpr std::size_t kMost = 5;
  if (!results.question.sensitivities) return "";
  std::string text = "\n  What 10 % more takes off the step, each alone, algorithms held\n";
  for (std::size_t i = 0; i < ranking.ranked.size(); ++i) {
    if (std::cmp_greater_equal(i, top)) break;
    const StepFigures& step = *results.outcomes[ranking.ranked[i]]->figures;
    std::vector<Worth> worth = step.worth.value_or(std::vector<Worth>());
    std::ranges::stable_sort(worth, {}, &Worth::step);
    std::vector<std::string> parts;
    for (const Worth& one : worth) {
      const double saved = 1 - one.step / step.step;
      if (saved < kLeast || parts.size() == kMost) break;
      std::string name = one.speed;
      std::ranges::replace(name, '_', ' ');
      if (one.device) name += " of " + *one.device;
      parts.push_back(fmt::format("{} {:.1f} %", name, 100 * saved));
    }
    text += fmt::format("  {:>4}  {}\n", i + 1, join(parts, ", "));
  }
  return text;
}

std::string bill(const Results& results, const Ranking& ranking, std::size_t point) {
  const WorkFigures figures = figures_of(*results.outcomes[point], ranking.work);
  std::string text =
      fmt::format("{}, {} to {}", format(figures.time), format(figures.low), format(figures.high));
  if (figures.usd) text += fmt::format(", {} USD", scaled(*figures.usd / 1_USD));
  if (figures.energy) text += fmt::format(", {}", report::watt_hours(*figures.energy));
  return text;
}

std::string miss_text(const Results& results, const Miss& miss) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (miss.late > Seconds()) add(format(miss.late) + " late");
  if (miss.over > Dollars()) add(scaled(miss.over / 1_USD) + " USD over");
  if (miss.unknown) add("its price or energy is not known");
  if (miss.may_meet) add("but within its interval");
  return fmt::format("  {:<28} {}\n", label(results, miss.point), text);
}

// The command that repeats the first row; --format json and csv have it for each point.
std::string command_text(const Results& results, const Ranking& ranking) {
  if (ranking.ranked.empty()) return "";
  const std::size_t first = ranking.ranked.front();
  return fmt::format("\nThe first again, in full:\n  {}\n",
                     command_of(results.question, first, *results.outcomes[first]));
}

std::string verdict_text(const Results& results, const Ranking& ranking) {
  if (!ranking.verdict) return "";
  const Goal& goal = *results.question.goal;
  const Verdict& verdict = *ranking.verdict;
  std::string text = fmt::format("\nGoal, as the file states it: {}", *results.question.train);
  if (goal.within) text += " within " + format(*goal.within);
  if (goal.budget) text += fmt::format(" for at most {} USD", scaled(*goal.budget / 1_USD));
  text += fmt::format(", least {}\n", yaml::name_of(goal.minimise));
  const bool whole = all_done(results);
  if (verdict.met.empty())
    text += whole ? "  No point meets it.\n" : "  No point meets it so far.\n";
  else
    text += fmt::format("  {} {} it{}: {}\n  ({})\n", grouped(std::ssize(verdict.met)),
                        verdict.met.size() == 1 ? "point meets" : "points meet",
                        whole ? ". The answer" : " so far. The best of those that are done",
                        label(results, verdict.met.front()),
                        bill(results, ranking, verdict.met.front()));
  if (verdict.may_miss) text += "  Its interval reaches beyond the goal: a machine may miss it.\n";
  constexpr std::size_t kMostMisses = 5;
  if (!verdict.missed.empty()) text += "  Closest of those that miss it\n";
  for (std::size_t i = 0; i < std::min(kMostMisses, verdict.missed.size()); ++i)
    text += "  " + miss_text(results, verdict.missed[i]);
  return text;
}

// The first points that cannot run or are no study, and the reasons.
std::string faults_text(const Results& results, const Ranking& ranking) {
  constexpr int kMost = 5;
  std::string text;
  int shown = 0;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const auto& outcome = results.outcomes[i];
    if (!outcome || outcome->status == PointStatus::kOk) continue;
    if (++shown > kMost) {
      ++more;
      continue;
    }
    const std::string why = outcome->why.substr(0, outcome->why.find('\n'));
    text += fmt::format("  {}\n    {}\n", label(results, i), why);
  }
  if (more > 0)
    text += fmt::format("  ... and {} more (--format json lists them)\n", grouped(more));
  if (!text.empty()) text = "\nCannot run\n" + text;
  if (ranking.closest) {
    const Outcome& closest = *results.outcomes[*ranking.closest];
    text += fmt::format("\nNothing runs{}. The closest: {}\n  {}\n  {}\n",
                        all_done(results) ? "" : " so far", label(results, *ranking.closest),
                        closest.strategy, closest.why);
    if (closest.missing) text += "  Devices with so much more memory, or more of them, would do.\n";
  }
  return text;
}

}  // namespace

std::string sweep_text(const Results& results, const Ranking& ranking, std::int64_t top) {
  std::vector<std::string> axes;
  for (const AxisNames& axis : results.question.axes) axes.push_back(axis.name);
  std::string text = internal::doubts_text(results, ranking);
  text += fmt::format("{}: {}\n", results.question.name, join(axes, " x "));
  if (!results.question.description.empty()) text += results.question.description + "\n";
  text += "\n" + tight_text(results, ranking) + counts_text(results);
  text += table_text(results, ranking, top);
  text += hosts_text(results, ranking);
  text += best_text(results, ranking, top);
  text += crossings_text(results, ranking, top);
  text += worth_text(results, ranking, top);
  text += verdict_text(results, ranking);
  text += command_text(results, ranking);
  return text + faults_text(results, ranking);
}

}  // namespace foreshard::sweep
