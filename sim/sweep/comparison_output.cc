// The comparison of two sweeps as text and JSON.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"

#include "sim/report/numbers.h"
#include "sim/report/side_by_side.h"
#include "sim/study/records.h"
#include "sim/sweep/comparison.h"

namespace foreshard::sweep {
struct ComparisonReport {
  const Results* a;
  const Results* b;
  const Comparison* comparison;
};

using record::at;
using record::Record;

const Record<Difference>& record_of(const Difference*) {
  static const auto record = Record<Difference>("difference", "Null: that side has none.")
                                 .field("key", &Difference::key)
                                 .field("a", record::unless_empty<&Difference::a>)
                                 .field("b", record::unless_empty<&Difference::b>);
  return record;
}

namespace {

// The parts of the steps of two points; parts that are zero on both sides are left out.
std::vector<report::SharedTerm> terms_of(const Outcome& a, const Outcome& b) {
  if (!a.figures || !b.figures) return {};
  auto terms = report::shared_terms(a.figures->terms, b.figures->terms);
  std::erase_if(terms, [](const auto& term) { return term.a <= 0_s && term.b <= 0_s; });
  return terms;
}

// Money and energy for tokens are given per million tokens.
bool is_of_a_million(const Comparison& comparison) {
  return comparison.work != Work::kTraining && comparison.by != Measure::kTime;
}

std::string of_what(const Comparison& comparison) {
  if (comparison.work == Work::kTraining) return "of the training";
  const std::string_view word = yaml::name_of(comparison.work);
  return is_of_a_million(comparison) ? fmt::format("of a million {}s", word)
                                     : fmt::format("of a {}", word);
}

std::string measured(const Outcome& outcome, const Comparison& comparison) {
  if (!outcome.figures) return std::string(yaml::name_of(outcome.status));
  constexpr double kMany = 1e6;
  constexpr double kScaled = 1e5;  // USD value from which thousands and millions are abbreviated
  const double value = measure_of(figures_of(outcome, comparison.work), comparison.by) *
                       (is_of_a_million(comparison) ? kMany : 1);
  if (!std::isfinite(value)) return "unknown";
  switch (comparison.by) {
    case Measure::kTime:
      return format(Seconds::from_base(value));
    case Measure::kUsd:
      return value < kScaled ? format(Dollars::from_base(value)) : report::scaled(value) + " USD";
    case Measure::kKwh:
      return report::watt_hours(Joules::from_base(value));
  }
  return "";
}

std::string percent_of(const std::optional<double>& effect) {
  return effect ? fmt::format("{:+.1f} %", 100 * *effect) : "";
}

std::string difference_text(const Difference& one) {
  return fmt::format("{}: {} -> {}", one.key, one.a.empty() ? "none" : one.a,
                     one.b.empty() ? "none" : one.b);
}

std::string values_text(const Comparison& comparison, const Pair& pair) {
  std::string text;
  for (std::size_t i = 0; i < comparison.axes.size(); ++i)
    text += (i == 0 ? "" : ", ") + comparison.axes[i] + " " + pair.values[i];
  return text.empty() ? "the best of all" : text;
}

// Whether a real machine may order the two points the other way round.
bool may_be_otherwise(const Outcome& a, const Outcome& b, const Comparison& comparison) {
  if (!a.figures || !b.figures) return false;
  const WorkFigures of_a = figures_of(a, comparison.work);
  const WorkFigures of_b = figures_of(b, comparison.work);
  if (!std::isfinite(measure_of(of_a, comparison.by)) ||
      !std::isfinite(measure_of(of_b, comparison.by)))
    return false;
  const MeasureInterval one = interval_of(of_a, comparison.by);
  const MeasureInterval other = interval_of(of_b, comparison.by);
  return one.low <= other.high && other.low <= one.high;
}

// The unmeasured parts of the points of all pairs.
std::vector<std::string> evidence_of(const Results& a, const Results& b,
                                     const Comparison& comparison) {
  std::vector<const study::Unmeasured*> all;
  for (const Pair& pair : comparison.pairs)
    for (const Outcome* one : {&*a.outcomes[pair.a], &*b.outcomes[pair.b]})
      if (one->figures) all.push_back(&one->figures->unmeasured);
  return study::evidence_remarks(all, "point");
}

void add_pair(TextTable& table, const Results& a, const Results& b, const Comparison& comparison,
              const Pair& pair) {
  constexpr std::size_t kMostTerms = 3;
  constexpr double kLeast = 1e-3;  // part of A's step
  const Outcome& one = *a.outcomes[pair.a];
  const Outcome& other = *b.outcomes[pair.b];
  std::string at = values_text(comparison, pair);
  for (const Difference& each : pair.inputs) at += "\n" + difference_text(each);
  std::size_t shown = 0;
  for (const report::SharedTerm& term : terms_of(one, other)) {
    if (shown++ == kMostTerms || std::abs((term.b - term.a) / one.figures->step) < kLeast) break;
    at += fmt::format("\n{} of a step: {} -> {}", label_of(term), format(term.a), format(term.b));
  }
  for (const auto& [who, outcome] : {std::pair("A", &one), std::pair("B", &other)})
    if (!outcome->figures)
      at += fmt::format("\n{}: {}", who, outcome->why.substr(0, outcome->why.find('\n')));
  table.row(measured(one, comparison), measured(other, comparison), percent_of(pair.effect),
            may_be_otherwise(one, other, comparison) ? "~" : "", at);
}

std::string side_text(const char* who, const Results& results) {
  const std::int64_t all = std::ssize(results.outcomes);
  return fmt::format(
      "{} {}: {} of {} points{}{}\n", who, results.question.name, grouped(results.done()),
      grouped(all), results.question.description.empty() ? "" : "; ", results.question.description);
}

// A point of a pair.
struct Side {
  std::size_t point;
  const Outcome* outcome;
  std::optional<WorkFigures> work;  // present if it runs
};

const Record<Side>& record_of(const Side*) {
  const auto step = [](auto member) {
    return [member](const Side& side) {
      const auto& figures = side.outcome->figures;
      return figures ? std::optional((*figures).*member) : std::nullopt;
    };
  };
  const auto work = [](auto member) {
    return [member](const Side& side) {
      return side.work ? std::optional(std::invoke(member, *side.work)) : std::nullopt;
    };
  };
  static const auto record = Record<Side>("point", "Null: it does not run, or this is unknown.")
                                 .field("point", &Side::point)
                                 .field("status", at<&Side::outcome, &Outcome::status>)
                                 .field("why", at<&Side::outcome, &Outcome::why>)
                                 .field("step_s", step(&StepFigures::step))
                                 .field("time_s", work(&WorkFigures::time))
                                 .field("low_s", work(&WorkFigures::low))
                                 .field("high_s", work(&WorkFigures::high))
                                 .field("usd", work(&WorkFigures::usd))
                                 .field("kwh", work(&WorkFigures::kwh))
                                 .field("evidence", step(&StepFigures::unmeasured));
  return record;
}

struct PairReport {
  std::vector<std::pair<std::string, std::string>> axes;
  Side a;
  Side b;
  const Pair* pair;
  bool may_be_otherwise;
};

std::vector<PairReport> pairs_of(const ComparisonReport& report) {
  const Comparison& comparison = *report.comparison;
  const auto side = [&](const Results& results, std::size_t point) {
    const Outcome& outcome = *results.outcomes[point];
    std::optional<WorkFigures> work;
    if (outcome.figures) work = figures_of(outcome, comparison.work);
    return Side{point, &outcome, work};
  };
  std::vector<PairReport> pairs;
  for (const Pair& pair : comparison.pairs) {
    const Side a = side(*report.a, pair.a);
    const Side b = side(*report.b, pair.b);
    pairs.push_back({{}, a, b, &pair, may_be_otherwise(*a.outcome, *b.outcome, comparison)});
    for (std::size_t i = 0; i < comparison.axes.size(); ++i)
      pairs.back().axes.emplace_back(comparison.axes[i], pair.values[i]);
  }
  return pairs;
}

const Record<PairReport>& record_of(const PairReport*) {
  const auto terms = [](const PairReport& pair) {
    return terms_of(*pair.a.outcome, *pair.b.outcome);
  };
  static const auto record =
      Record<PairReport>("pair")
          .field("axes", &PairReport::axes, "The values that both points have.")
          .field("effect", at<&PairReport::pair, &Pair::effect>, "B over A, less 1.")
          .field("intervals_overlap", &PairReport::may_be_otherwise,
                 "Whether a machine may order the two otherwise.")
          .field("a", &PairReport::a)
          .field("b", &PairReport::b)
          .field("inputs", at<&PairReport::pair, &Pair::inputs>)
          .field("terms", terms, "Seconds of a step, largest difference first.");
  return record;
}

Record<Results> side_group() {
  return Record<Results>()
      .field("name", at<&Results::question, &Question::name>)
      .field("description", at<&Results::question, &Question::description>)
      .field("train", at<&Results::question, &Question::train>)
      .field("points", [](const Results& results) { return results.outcomes.size(); })
      .field("done", &Results::done);
}

}  // namespace

const Record<ComparisonReport>& record_of(const ComparisonReport*) {
  using Of = ComparisonReport;
  static const auto record =
      Record<Of>::result("foreshard.sweep_comparison/1",
                         "What differs between the results of two studies (`compare A B`).")
          .group(
              "a", [](const Of& of) -> const Results& { return *of.a; }, side_group())
          .group(
              "b", [](const Of& of) -> const Results& { return *of.b; }, side_group())
          .field("work", at<&Of::comparison, &Comparison::work>, "The work of times, USD and kWh.")
          .field("by", at<&Of::comparison, &Comparison::by>,
                 "The measure that ranks the points of A.")
          .field("axes", at<&Of::comparison, &Comparison::axes>, "Axes that both have.")
          .field("inputs", at<&Of::comparison, &Comparison::inputs>, "Keys of the sweeps' files.")
          .field(
              "evidence", [](const Of& of) { return evidence_of(*of.a, *of.b, *of.comparison); },
              "Parameters behind the points that were not measured.")
          .field("pairs", pairs_of)
          .field("left_out", at<&Of::comparison, &Comparison::left_out>,
                 "Values of common axes that only one side has.");
  return record;
}

std::string comparison_text(const Results& a, const Results& b, const Comparison& comparison,
                            std::int64_t top, const Paper& paper) {
  Page page(paper);
  for (const std::string& remark : evidence_of(a, b, comparison)) page.line("! " + remark);
  page.add(side_text("A", a) + side_text("B", b));
  page.line("\nWhat differs in what was asked");
  for (const Difference& one : comparison.inputs) page.line("  " + difference_text(one));
  const bool alike = std::ranges::all_of(comparison.pairs, [](const Pair& pair) {
    return pair.inputs.empty() && pair.effect.value_or(0) == 0;
  });
  if (comparison.inputs.empty())
    page.line(alike ? "  Nothing."
                    : "  Nothing but files that both name, or the version of foreshard.");
  page.line(fmt::format("\nBy effect on {} {}", yaml::name_of(comparison.by), of_what(comparison)));
  TextTable table({">A", ">B", ">B / A", "<", comparison.axes.empty() ? "<" : "<at"});
  for (const Pair& pair : comparison.pairs) add_pair(table, a, b, comparison, pair);
  page.table(std::move(table), top, "(--format json has all)");
  if (std::ranges::any_of(comparison.pairs, [&](const Pair& pair) {
        return may_be_otherwise(*a.outcomes[pair.a], *b.outcomes[pair.b], comparison);
      }))
    page.line("  ~ their intervals overlap: a machine may order the two otherwise");
  if (!comparison.left_out.empty()) page.line("\nWithout a counterpart");
  for (const std::string& one : comparison.left_out) page.line("  " + one);
  return std::move(page).take();
}

std::string comparison_json(const Results& a, const Results& b, const Comparison& comparison) {
  return record::text_of(record::write(ComparisonReport{&a, &b, &comparison}), 1);
}

}  // namespace foreshard::sweep
