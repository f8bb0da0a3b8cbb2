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
#include "sim/search/output.h"
#include "sim/sweep/crossings.h"
#include "sim/sweep/internal/doubts.h"
#include "sim/sweep/output.h"

namespace foreshard::sweep {
namespace {

using report::scaled;

// Money and energy for tokens are given per million tokens.
constexpr double kMillion = 1e6;
constexpr std::int64_t kMostListed = 5;  // points that miss the goal, or cannot run

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
std::string interval_text(const StepFigures& step, const WorkFigures& figures, Work work) {
  return work == Work::kTraining ? search::interval_text(figures) : search::interval_text(step);
}

// Adds a row for a point that runs, and below it the strategy that was found.
void add_row(TextTable& table, const Results& results, const Ranking& ranking, std::size_t point) {
  const Outcome& outcome = *results.outcomes[point];
  const StepFigures& step = *outcome.figures;
  const WorkFigures figures = figures_of(outcome, ranking.work);
  const bool training = ranking.work == Work::kTraining;
  const double amount = ranking.work == Work::kSample ? step.samples : step.tokens;
  table.row(fmt::format("{}{}", ranking.on_front[point] ? "* " : "", table.size() + 1),
            format(training ? figures.time : step.step), interval_text(step, figures, ranking.work),
            money(figures, ranking.work), energy(figures, ranking.work),
            scaled(amount / (step.step / 1_s)), report::percent(step.mfu), format(step.headroom()),
            grouped(step.devices),
            label(results, point) + search::unmeasured_text(" ({})", step.unmeasured));
  if (results.question.searched) table.note(outcome.strategy);
}

void write_table(Page& page, const Results& results, const Ranking& ranking, std::int64_t top) {
  if (ranking.ranked.empty()) return;
  const bool training = ranking.work == Work::kTraining;
  TextTable table({">", training ? ">time" : ">step", ">8 of 10 within",
                   training ? ">USD" : ">USD/M", training ? ">energy" : ">Wh/M",
                   ranking.work == Work::kSample ? ">samples/s" : ">tokens/s", ">MFU", ">headroom",
                   ">devices", "<point"});
  for (const std::size_t point : ranking.ranked) add_row(table, results, ranking, point);
  page.table(std::move(table), top, "(--top)");
  if (std::ranges::count(ranking.on_front, true) > 0) {
    std::string text = "  * no other point is both faster and cheaper";
    if (const auto left_out = std::ssize(ranking.off_front); left_out > 0)
      text +=
          fmt::format("; {} {} left out", grouped(left_out),
                      left_out == 1 ? "point without a price is" : "points without a price are");
    page.line(text);
  }
  page.add(internal::overlap_text(results, ranking));
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

void write_best(Page& page, const Results& results, const Ranking& ranking, std::int64_t top) {
  if (ranking.ranked.empty() || results.question.axes.size() < 2) return;
  const bool training = ranking.work == Work::kTraining;
  TextTable table({"<Best with each value", training ? ">time" : ">step", ">8 of 10 within",
                   training ? ">USD" : ">USD/M", "<point"});
  for (std::size_t i = 0; i < ranking.best_with.size(); ++i) {
    const AxisNames& axis = results.question.axes[i];
    for (std::size_t j = 0; j < axis.values.size(); ++j) {
      const auto& best = ranking.best_with[i][j];
      const std::string what = axis.name + " " + axis.values[j];
      const bool done = is_done(results, i, j);
      if (!best) {
        table.row(what, "-", "-", "-", done ? "nothing runs" : "not done yet");
        continue;
      }
      const Outcome& outcome = *results.outcomes[*best];
      const WorkFigures figures = figures_of(outcome, ranking.work);
      table.row(what, format(training ? figures.time : outcome.figures->step),
                interval_text(*outcome.figures, figures, ranking.work),
                money(figures, ranking.work), label(results, *best) + (done ? "" : " (so far)"));
    }
  }
  page.table(std::move(table), top, "(--top)");
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
void write_crossings(Page& page, const Results& results, const Ranking& ranking, std::int64_t top) {
  std::vector<Crossing> crossings = crossings_of(results, ranking);
  if (crossings.empty()) return;
  std::stable_partition(crossings.begin(), crossings.end(),
                        [](const Crossing& one) { return one.best; });
  page.line(fmt::format("\n  Break-even in {}, of the best points of each",
                        yaml::name_of(results.question.rank)));
  TextTable table({"<", "<"});
  for (const Crossing& one : crossings) {
    const AxisNames& along = results.question.axes[one.along];
    const AxisNames& between = results.question.axes[one.between];
    table.row(one.best ? "*" : "",
              fmt::format("{} {}: {} is better, {}: {}; the same at about {}", along.name,
                          along.values[one.low], between.values[one.first], along.values[one.high],
                          between.values[one.then], with_unit(one.at, one.unit)));
  }
  page.table(std::move(table), top, "(--top)");
  if (crossings.front().best) page.line("  * no other choice is better there");
}

// The savings of the listed points with 10 % more of each speed, largest first.
void write_worth(Page& page, const Results& results, const Ranking& ranking, std::int64_t top) {
  constexpr double kLeast = 5e-4;  // smallest saving to show: a smaller one would be shown as zero
  constexpr std::size_t kMost = 5;
  if (!results.question.sensitivities) return;
  TextTable table({">", "<"});
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
    table.row(i + 1, join(parts, ", "));
  }
  page.line("\n  What 10 % more takes off the step, each alone, algorithms held");
  page.table(table);
}

std::string bill(const Results& results, const Ranking& ranking, std::size_t point) {
  const WorkFigures figures = figures_of(*results.outcomes[point], ranking.work);
  std::string text =
      fmt::format("{}, {} to {}", format(figures.time), format(figures.low), format(figures.high));
  if (figures.usd) text += fmt::format(", {} USD", scaled(*figures.usd / 1_USD));
  if (figures.energy) text += fmt::format(", {}", report::watt_hours(*figures.energy));
  return text;
}

std::string miss_text(const Miss& miss) {
  std::vector<std::string> parts;
  if (miss.late > Seconds()) parts.push_back(format(miss.late) + " late");
  if (miss.over > Dollars()) parts.push_back(scaled(miss.over / 1_USD) + " USD over");
  if (miss.unknown) parts.emplace_back("its price or energy is not known");
  if (miss.may_meet) parts.emplace_back("but within its interval");
  return join(parts);
}

// The command that repeats the first row; --format json and csv have it for each point.
void write_command(Page& page, const Results& results, const Ranking& ranking) {
  if (ranking.ranked.empty()) return;
  const std::size_t first = ranking.ranked.front();
  page.line("\nThe first again, in full:");
  page.verbatim("  " + command_of(results.question, first, *results.outcomes[first]));
}

void write_verdict(Page& page, const Results& results, const Ranking& ranking) {
  if (!ranking.verdict) return;
  const Goal& goal = *results.question.goal;
  const Verdict& verdict = *ranking.verdict;
  std::string text = fmt::format("\nGoal, as the file states it: {}", *results.question.train);
  if (goal.within) text += " within " + format(*goal.within);
  if (goal.budget) text += fmt::format(" for at most {} USD", scaled(*goal.budget / 1_USD));
  page.line(text + fmt::format(", least {}", yaml::name_of(goal.minimise)));
  const bool whole = all_done(results);
  if (verdict.met.empty())
    page.line(whole ? "  No point meets it." : "  No point meets it so far.");
  else
    page.line(fmt::format("  {} {} it{}: {}\n  ({})", grouped(std::ssize(verdict.met)),
                          verdict.met.size() == 1 ? "point meets" : "points meet",
                          whole ? ". The answer" : " so far. The best of those that are done",
                          label(results, verdict.met.front()),
                          bill(results, ranking, verdict.met.front())));
  if (verdict.may_miss) page.line("  Its interval reaches beyond the goal: a machine may miss it.");
  if (!verdict.missed.empty()) page.line("  Closest of those that miss it");
  TextTable table({"<", "<"});
  for (const Miss& miss : verdict.missed) table.row(label(results, miss.point), miss_text(miss));
  page.table(std::move(table), kMostListed, "(--format json lists them)");
}

// The first points that cannot run or are no study, and the reasons.
void write_faults(Page& page, const Results& results, const Ranking& ranking) {
  std::int64_t faults = 0;
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const auto& outcome = results.outcomes[i];
    if (!outcome || outcome->status == PointStatus::kOk) continue;
    if (faults == 0) page.line("\nCannot run");
    if (++faults > kMostListed) continue;
    const std::string why = outcome->why.substr(0, outcome->why.find('\n'));
    page.line(fmt::format("  {}\n    {}", label(results, i), why));
  }
  page.more(faults - kMostListed, "(--format json lists them)");
  if (ranking.closest) {
    const Outcome& closest = *results.outcomes[*ranking.closest];
    page.line(fmt::format("\nNothing runs{}. The closest: {}\n  {}\n  {}",
                          all_done(results) ? "" : " so far", label(results, *ranking.closest),
                          closest.strategy, closest.why));
    if (closest.missing)
      page.line("  Devices with so much more memory, or more of them, would do.");
  }
}

}  // namespace

std::string sweep_text(const Results& results, const Ranking& ranking, std::int64_t top,
                       const Paper& paper) {
  std::vector<std::string> axes;
  for (const AxisNames& axis : results.question.axes) axes.push_back(axis.name);
  Page page(paper);
  page.add(internal::doubts_text(results, ranking));
  page.line(fmt::format("{}: {}", results.question.name, join(axes, " x ")));
  if (!results.question.description.empty()) page.line(results.question.description);
  page.add("\n" + tight_text(results, ranking) + counts_text(results));
  write_table(page, results, ranking, top);
  page.add(hosts_text(results, ranking));
  write_best(page, results, ranking, top);
  write_crossings(page, results, ranking, top);
  write_worth(page, results, ranking, top);
  write_verdict(page, results, ranking);
  write_command(page, results, ranking);
  write_faults(page, results, ranking);
  return std::move(page).take();
}

}  // namespace foreshard::sweep
