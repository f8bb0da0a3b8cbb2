// The comparison of two sweeps as text and JSON.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "base/grouped.h"
#include "base/quantity.h"

#include "sim/report/numbers.h"
#include "sim/study/records.h"
#include "sim/study/evidence.h"
#include "sim/sweep/comparison.h"
#include "sim/sweep/internal/json.h"
#include "sim/sweep/internal/words.h"

namespace foreshard::sweep {
namespace {

using internal::Json;

// A part of the time, on both sides.
struct SharedTerm {
  std::string key;
  Seconds a;
  Seconds b;
};

// The parts of the steps of two points, largest difference first; parts that are zero on both sides
// are left out.
std::vector<SharedTerm> shared_terms(const Outcome& a, const Outcome& b) {
  std::vector<SharedTerm> terms;
  if (!a.figures || !b.figures) return terms;
  for (const Term& term : a.figures->terms) {
    const auto other = std::ranges::find(b.figures->terms, term.key, &Term::key);
    const Seconds of_b = other == b.figures->terms.end() ? Seconds() : other->time;
    if (term.time > Seconds() || of_b > Seconds()) terms.push_back({term.key, term.time, of_b});
  }
  std::ranges::stable_sort(terms, std::greater{}, [](const SharedTerm& term) {
    return std::abs((term.b - term.a).in_base());
  });
  return terms;
}

std::string term_label(const std::string& key) {
  const auto part = std::ranges::find(sim::kBreakdownParts, key, &sim::BreakdownPart::key);
  return part == std::end(sim::kBreakdownParts) ? key : std::string(part->label);
}

// Money and energy for tokens are given per million tokens.
bool is_of_a_million(const Comparison& comparison) {
  return comparison.work != Work::kTraining && comparison.by != Measure::kTime;
}

std::string of_what(const Comparison& comparison) {
  if (comparison.work == Work::kTraining) return "of the training";
  const std::string_view word = internal::word_of(comparison.work);
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

std::string pair_text(const Results& a, const Results& b, const Comparison& comparison,
                      const Pair& pair) {
  constexpr std::size_t kMostTerms = 3;
  constexpr double kLeast = 1e-3;  // part of A's step
  const Outcome& one = *a.outcomes[pair.a];
  const Outcome& other = *b.outcomes[pair.b];
  std::string text = fmt::format(
      "  {} {} {}{} {}\n", report::right(measured(one, comparison), 11),
      report::right(measured(other, comparison), 11), report::right(percent_of(pair.effect), 9),
      may_be_otherwise(one, other, comparison) ? "~" : " ", values_text(comparison, pair));
  const auto add = [&](const std::string& line) { text += fmt::format("{:>38}{}\n", "", line); };
  for (const Difference& each : pair.inputs) add(difference_text(each));
  std::size_t shown = 0;
  for (const SharedTerm& term : shared_terms(one, other)) {
    if (shown++ == kMostTerms || std::abs((term.b - term.a) / one.figures->step) < kLeast) break;
    add(fmt::format("{} of a step: {} -> {}", term_label(term.key), format(term.a),
                    format(term.b)));
  }
  for (const auto& [who, outcome] : {std::pair("A", &one), std::pair("B", &other)})
    if (!outcome->figures)
      add(fmt::format("{}: {}", who, outcome->why.substr(0, outcome->why.find('\n'))));
  return text;
}

std::string side_text(const char* who, const Results& results) {
  const std::int64_t all = std::ssize(results.outcomes);
  return fmt::format(
      "{} {}: {} of {} points{}{}\n", who, results.question.name, grouped(results.done()),
      grouped(all), results.question.description.empty() ? "" : "; ", results.question.description);
}

Json side_json(const Results& results) {
  return {{"name", results.question.name},
          {"description", results.question.description},
          {"train", internal::or_null(results.question.train)},
          {"points", results.outcomes.size()},
          {"done", results.done()}};
}

Json differences_json(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& one : differences)
    list.push_back({{"key", one.key},
                    {"a", one.a.empty() ? Json(nullptr) : Json(one.a)},
                    {"b", one.b.empty() ? Json(nullptr) : Json(one.b)}});
  return list;
}

Json point_json(std::size_t point, const Outcome& outcome, Work work) {
  Json json = {{"point", point},     {"status", yaml::name_of(outcome.status)},
               {"why", outcome.why}, {"step_s", nullptr},
               {"time_s", nullptr},  {"low_s", nullptr},
               {"high_s", nullptr},  {"usd", nullptr},
               {"kwh", nullptr},     {"evidence", nullptr}};
  if (!outcome.figures) return json;
  const WorkFigures figures = figures_of(outcome, work);
  json["step_s"] = outcome.figures->step.in_base();
  json["time_s"] = figures.time.in_base();
  json["low_s"] = figures.low.in_base();
  json["high_s"] = figures.high.in_base();
  json["evidence"] = study::evidence_json(outcome.figures->unmeasured);
  json["usd"] = internal::known(figures.usd);
  if (figures.energy) json["kwh"] = *figures.energy / 1_kWh;
  return json;
}

Json pair_json(const Results& a, const Results& b, const Comparison& comparison, const Pair& pair) {
  const Outcome& one = *a.outcomes[pair.a];
  const Outcome& other = *b.outcomes[pair.b];
  Json axes = Json::object();
  for (std::size_t i = 0; i < comparison.axes.size(); ++i)
    axes[comparison.axes[i]] = pair.values[i];
  Json terms = Json::array();
  for (const SharedTerm& term : shared_terms(one, other))
    terms.push_back({{"part", term.key}, {"a_s", term.a.in_base()}, {"b_s", term.b.in_base()}});
  return {{"axes", std::move(axes)},
          {"effect", internal::or_null(pair.effect)},
          {"intervals_overlap", may_be_otherwise(one, other, comparison)},
          {"a", point_json(pair.a, one, comparison.work)},
          {"b", point_json(pair.b, other, comparison.work)},
          {"inputs", differences_json(pair.inputs)},
          {"terms", std::move(terms)}};
}

}  // namespace

std::string comparison_text(const Results& a, const Results& b, const Comparison& comparison,
                            std::int64_t top) {
  std::string text;
  for (const std::string& remark : evidence_of(a, b, comparison)) text += "! " + remark + "\n";
  text += side_text("A", a) + side_text("B", b);
  text += "\nWhat differs in what was asked\n";
  for (const Difference& one : comparison.inputs) text += "  " + difference_text(one) + "\n";
  const bool alike = std::ranges::all_of(comparison.pairs, [](const Pair& pair) {
    return pair.inputs.empty() && pair.effect.value_or(0) == 0;
  });
  if (comparison.inputs.empty())
    text += alike ? "  Nothing.\n"
                  : "  Nothing but files that both name, or the version of foreshard.\n";
  text += fmt::format("\nBy effect on {} {}\n  {} {} {}  {}\n", yaml::name_of(comparison.by),
                      of_what(comparison), report::right("A", 11), report::right("B", 11),
                      report::right("B / A", 9), comparison.axes.empty() ? "" : "at");
  const auto shown =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(top, 0)), comparison.pairs.size());
  for (std::size_t i = 0; i < shown; ++i) text += pair_text(a, b, comparison, comparison.pairs[i]);
  if (shown < comparison.pairs.size())
    text += fmt::format("  ... and {} more (--format json has all)\n",
                        grouped(static_cast<std::int64_t>(comparison.pairs.size() - shown)));
  if (std::ranges::any_of(comparison.pairs, [&](const Pair& pair) {
        return may_be_otherwise(*a.outcomes[pair.a], *b.outcomes[pair.b], comparison);
      }))
    text += "  ~ their intervals overlap: a machine may order the two otherwise\n";
  if (!comparison.left_out.empty()) {
    text += "\nWithout a counterpart\n";
    for (const std::string& one : comparison.left_out) text += "  " + one + "\n";
  }
  return text;
}

std::string comparison_json(const Results& a, const Results& b, const Comparison& comparison) {
  Json pairs = Json::array();
  for (const Pair& pair : comparison.pairs) pairs.push_back(pair_json(a, b, comparison, pair));
  const Json json = {{"schema", "foreshard.sweep_comparison/1"},
                     {"a", side_json(a)},
                     {"b", side_json(b)},
                     {"work", internal::word_of(comparison.work)},
                     {"by", yaml::name_of(comparison.by)},
                     {"axes", comparison.axes},
                     {"inputs", differences_json(comparison.inputs)},
                     {"evidence", evidence_of(a, b, comparison)},
                     {"pairs", std::move(pairs)},
                     {"left_out", comparison.left_out}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard::sweep
