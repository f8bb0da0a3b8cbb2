// Compares two predictions (side_by_side.h), for `foreshard compare` and the comparison of sweeps.
// It reads their JSON, not the studies.
#include "sim/report/side_by_side.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/report/json.h"
#include "sim/report/numbers.h"
#include "sim/study/records.h"

namespace foreshard::report {
namespace {

using record::Json;
using record::Record;

// A figure of the JSON: its location, its name and its unit.
struct FigurePlace {
  const char* pointer;
  std::string_view key;
  std::string_view unit;
};
constexpr std::array kFigures = std::to_array<FigurePlace>({
    {"/step/time_s", "step", "s"},
    {"/throughput/samples_per_s", "samples", "1/s"},
    {"/throughput/tokens_per_s", "tokens", "1/s"},
    {"/throughput/mfu", "mfu", ""},
    {"/memory/peak_bytes", "peak memory", "B"},
    {"/memory/capacity_bytes", "memory of a device", "B"},
    {"/study/devices", "devices", ""},
    {"/cost/usd_per_step", "cost of a step", "USD"},
    {"/cost/joules_per_step", "energy of a step", "J"},
    {"/cost/co2_kg_per_step", "CO2 of a step", "kg"},
    {"/cost/training/days", "training", "d"},
    {"/cost/training/usd", "cost of a training", "USD"},
    {"/cost/training/kwh", "energy of a training", "kWh"},
    {"/cost/training/co2_kg", "CO2 of a training", "kg"},
});

const Json* at(const Json& json, const char* pointer) {
  const Json::json_pointer place(pointer);
  return json.contains(place) ? &json.at(place) : nullptr;
}

std::string text_at(const Json& json, const char* pointer) {
  const Json* value = at(json, pointer);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& json, const char* pointer) {
  const Json* value = at(json, pointer);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string shown(double value, std::string_view unit) {
  if (unit == "s") return format(Seconds::from_base(value));
  if (unit == "B") return format(Bytes::from_base(value));
  if (unit == "J") return watt_hours(Joules::from_base(value));
  if (unit == "kWh") return watt_hours(value * 1_kWh);
  if (unit == "kg") return format(Kilograms::from_base(value));
  if (unit == "USD") return scaled(value) + " USD";
  if (unit == "1/s") return scaled(value) + "/s";
  if (unit == "d") return format(value * 24_h);
  return fmt::format("{:.4g}", value);
}

std::string shown(const std::optional<double>& value, std::string_view unit) {
  return value ? shown(*value, unit) : "unknown";
}

// Change from A to B: "+12.3 %".
std::string change_of(double a, double b) {
  return a == 0 ? "" : fmt::format("{:+.1f} %", 100 * (b / a - 1));
}

// What two steps do, where it differs: they are then compared by the unit.
struct Work {
  std::string_view unit;  // empty: both do the same
  double a = 1;
  double b = 1;
};

// Counted in tokens, or in samples where a model has no tokens.
Work work_of(const SideBySide& sides) {
  constexpr double kSame = 1e-6;
  for (const auto& [key, unit] : {std::pair("tokens", "token"), std::pair("samples", "sample")}) {
    const auto of_a = sides.a.figure(key);
    const auto of_b = sides.b.figure(key);
    if (!of_a || !of_b) continue;
    const double a = *of_a * *sides.a.figure("step");
    const double b = *of_b * *sides.b.figure("step");
    return std::abs(b - a) > kSame * a ? Work{unit, a, b} : Work{};
  }
  return {};
}

// Which step is faster, and what that costs: "B is 29.5 % slower, needs 32.7 % less memory."
std::string verdict_of(const SideBySide& sides) {
  const auto runs = [](const Outcome& side) { return side.feasible && side.figure("step"); };
  if (!runs(sides.a) || !runs(sides.b))
    return runs(sides.a)   ? "A runs, B does not."
           : runs(sides.b) ? "B runs, A does not."
                           : "Neither runs.";
  const auto part = [&](std::string_view key, const Work& by, std::string_view less,
                        std::string_view more) {
    const auto a = sides.a.figure(key);
    const auto b = sides.b.figure(key);
    const double change = a && b && *a > 0 ? (*b / by.b) / (*a / by.a) - 1 : 0;
    constexpr double kLeast = 0.0005;  // shown as 0.1 %
    if (std::abs(change) < kLeast) return std::string();
    return fmt::format("{:.1f} % {}", 100 * std::abs(change), change < 0 ? less : more);
  };
  const Work work = work_of(sides);
  const std::string time = part("step", work, "faster", "slower");
  const std::string price = part("cost of a step", work, "less", "more");
  const std::string memory = part("peak memory", {}, "less", "more");
  std::vector<std::string> of_b;
  if (!time.empty()) of_b.push_back("is " + time);
  if (!price.empty()) of_b.push_back("costs " + price);
  if (!memory.empty()) of_b.push_back("needs " + memory + " memory");
  std::vector<std::string> parts;
  if (time.empty()) parts.emplace_back("A and B take the same time");
  if (!of_b.empty()) parts.push_back("B " + join(of_b));
  return (work.unit.empty() ? "" : fmt::format("By the {}, ", work.unit)) + join(parts, "; ") + ".";
}

void write_verdict(Page& page, const SideBySide& sides) {
  const std::string verdict = verdict_of(sides);
  const bool both_run = sides.a.feasible && sides.b.feasible;
  const Tone tone = !both_run                     ? Tone::kBad
                    : contains(verdict, "faster") ? Tone::kGood
                    : contains(verdict, "slower") ? Tone::kWarn
                                                  : Tone::kStrong;
  page.line();
  page.line(page.toned(verdict, tone));
}

void write_changes(Page& page, const SideBySide& sides) {
  page.heading("What changes", sides.changes.empty() ? "" : "step of A with it alone as in B");
  if (sides.changes.empty()) page.line("  Nothing of what they were made from.");
  TextTable table({"<", ">"});
  constexpr std::int64_t kMost = 30;
  const std::optional<double> step = sides.a.figure("step");
  for (const Change& change : sides.changes) {
    const std::string effect =
        change.step && step
            ? fmt::format("{} {}", format(*change.step), change_of(*step, change.step->in_base()))
            : "";
    table.row(change.key, effect);
    table.note(fmt::format("{} -> {}", change.a.empty() ? "none" : change.a,
                           change.b.empty() ? "none" : change.b));
  }
  page.table(std::move(table), kMost, "(--format json has all)");
}

void write_terms(Page& page, const SideBySide& sides) {
  constexpr double kRounding = 1e-9;
  page.heading("Where the time goes", "by difference");
  TextTable table({"<", ">A", ">B", ">B - A"});
  for (const SharedTerm& term : shared_terms(sides.a.breakdown, sides.b.breakdown)) {
    if (term.a == 0_s && term.b == 0_s) continue;
    // Sums of the same times in different orders count as equal.
    const bool same = std::abs((term.b - term.a).in_base()) < kRounding * term.a.in_base();
    table.row(label_of(term), format(term.a), format(term.b), format(same ? 0_s : term.b - term.a));
  }
  page.table(table);
}

// Interval of the step in one column: "1.92-2.4 s".
std::string interval_of(const Outcome& side) {
  return side.low && side.high ? fmt::format("{}-{}", format(*side.low), format(*side.high))
                               : "unknown";
}

void write_evidence(Page& page, const SideBySide& sides) {
  const std::array<const study::Unmeasured*, 2> both{&sides.a.unmeasured, &sides.b.unmeasured};
  for (const std::string& remark : study::evidence_remarks(both, "step"))
    page.remark("!", remark, Tone::kWarn);
}

// A figure on both sides.
struct SharedFigure {
  std::string what;
  std::string unit;
  std::optional<double> a;
  std::optional<double> b;
};

std::vector<SharedFigure> figures_of(const SideBySide& sides) {
  std::vector<SharedFigure> figures;
  for (const Outcome::Figure& of_a : sides.a.figures)
    figures.push_back({of_a.key, of_a.unit, of_a.value, sides.b.figure(of_a.key)});
  return figures;
}

void write_figures(Page& page, const SideBySide& sides) {
  page.heading("What comes out", "");
  TextTable table({"<", ">A", ">B", ">"});
  for (const auto& [what, unit, a, b] : figures_of(sides)) {
    if (!a && !b) continue;
    table.row(what, shown(a, unit), shown(b, unit), a && b ? change_of(*a, *b) : "");
  }
  if (sides.a.low && sides.b.low)
    table.row("8 of 10 steps within", interval_of(sides.a), interval_of(sides.b));
  page.table(table);
  if (sides.intervals_overlap())
    page.remark("!", "the intervals of the two steps overlap: a machine may order them otherwise",
                Tone::kWarn);
  for (const auto& [who, side] : {std::pair("A", &sides.a), std::pair("B", &sides.b)})
    if (!side->feasible)
      page.remark("!", fmt::format("{} does not fit or does not end", who), Tone::kBad);
}

void write_crossing(Page& page, const Crossing& crossing) {
  page.heading("Where both are the same", crossing.metric);
  if (crossing.between)
    return page.line(fmt::format("  At no value: up to {} = {} {} has less, from {} on {}",
                                 crossing.key, crossing.between->first, crossing.better,
                                 crossing.between->second, crossing.better == "A" ? "B" : "A"));
  page.line(crossing.value
                ? fmt::format("  {} = {} of B", crossing.key, *crossing.value)
                : fmt::format("  Nowhere: {} has less from {} = {} to {}", crossing.better,
                              crossing.key, crossing.low, crossing.high));
}

const Record<SharedFigure>& record_of(const SharedFigure*) {
  static const auto record =
      Record<SharedFigure>("figure")
          .field("what", &SharedFigure::what, "'step', 'tokens', 'cost of a step', ...")
          .field("unit", &SharedFigure::unit, "Empty for plain numbers.")
          .field("a", &SharedFigure::a)
          .field("b", &SharedFigure::b);
  return record;
}

}  // namespace

const Record<Outcome>& record_of(const Outcome*) {
  static const auto record =
      Record<Outcome>("side")
          .field("name", &Outcome::name)
          .field("model", &Outcome::model)
          .field("cluster", &Outcome::cluster)
          .field("strategy", &Outcome::strategy)
          .field("feasible", &Outcome::feasible)
          .field("low_s", &Outcome::low, "8 of 10 measured steps are expected within.")
          .field("high_s", &Outcome::high)
          .field("evidence", &Outcome::unmeasured);
  return record;
}

const Record<SharedTerm>& record_of(const SharedTerm*) {
  static const auto record = Record<SharedTerm>("term", "A part of both steps.")
                                 .field("part", &SharedTerm::part, "Its key in a breakdown.")
                                 .field("a_s", &SharedTerm::a)
                                 .field("b_s", &SharedTerm::b);
  return record;
}

const Record<Change>& record_of(const Change*) {
  static const auto record =
      Record<Change>("change", "A key of the study, or a file.")
          .field("key", &Change::key)
          .field("a", record::unless_empty<&Change::a>)
          .field("b", record::unless_empty<&Change::b>)
          .field("step_of_a_with_it_s", &Change::step, "The step of A with this change alone.");
  return record;
}

const Record<Crossing>& record_of(const Crossing*) {
  const auto between = [](const Crossing& crossing) {
    return crossing.between
               ? std::optional(std::array{crossing.between->first, crossing.between->second})
               : std::nullopt;
  };
  static const auto record =
      Record<Crossing>("break_even")
          .field("key", &Crossing::key)
          .field("metric", &Crossing::metric, "A quantity of the step.",
                 record::one_of({"time", "usd", "energy"}))
          .field("low", &Crossing::low, "Lower end of the searched range.")
          .field("high", &Crossing::high)
          .field("value", &Crossing::value, "Value in B at which both are equal, if there is one.")
          .field("between", between, "Without a value: where the better side changes in a jump.")
          .field("better", record::unless_empty<&Crossing::better>,
                 "Without a value: the side that is better everywhere, or up to `between`.",
                 {{"enum", {"A", "B", nullptr}}});
  return record;
}

const Record<SideBySide>& record_of(const SideBySide*) {
  const auto terms = [](const SideBySide& sides) {
    return shared_terms(sides.a.breakdown, sides.b.breakdown);
  };
  static const auto record =
      Record<SideBySide>::result("foreshard.side_by_side/1",
                                 "Two predictions, as `compare` writes them (docs/sensitivity.md).")
          .field("a", &SideBySide::a)
          .field("b", &SideBySide::b)
          .field("verdict", verdict_of, "For people: which step is faster, and what that costs.")
          .field("intervals_overlap", &SideBySide::intervals_overlap,
                 "Whether a machine may order the two steps otherwise.")
          .field("results", figures_of)
          .field("terms", terms, "Largest difference first.")
          .field("inputs", &SideBySide::changes, "Largest effect on the step first.")
          .field("break_even", &SideBySide::crossing);
  return record;
}

std::string label_of(const SharedTerm& term) {
  const auto part = std::ranges::find(sim::kBreakdownParts, term.part, &sim::BreakdownPart::key);
  return part == std::end(sim::kBreakdownParts) ? term.part : std::string(part->label);
}

std::vector<SharedTerm> shared_terms(const Terms& a, const Terms& b) {
  std::vector<SharedTerm> terms;
  for (const auto& [part, time] : a) {
    const auto other = std::ranges::find(b, part, &Terms::value_type::first);
    terms.push_back({part, time, other == b.end() ? Seconds() : other->second});
  }
  std::ranges::stable_sort(terms, std::greater{}, [](const SharedTerm& term) {
    return std::abs((term.b - term.a).in_base());
  });
  return terms;
}

std::optional<double> Outcome::figure(std::string_view key) const {
  const auto found = std::ranges::find(figures, key, &Figure::key);
  return found == figures.end() ? std::nullopt : found->value;
}

Result<Outcome> read_outcome(std::string_view text) {
  const auto fault = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "no prediction: " + why};
  };
  const auto parsed = parsed_json<Json>(text);
  if (!parsed) return fault(parsed.error().message);
  const Json& json = *parsed;
  if (!json.is_object()) return fault("no JSON object");
  if (text_at(json, "/schema") != kPredictionSchema)
    return fault(fmt::format(
        "its schema is '{}', not '{}'; foreshard simulate STUDY.yaml --format json makes "
        "one",
        text_at(json, "/schema"), kPredictionSchema));
  Outcome outcome{.name = text_at(json, "/study/name"),
                  .model = text_at(json, "/study/model"),
                  .cluster = text_at(json, "/study/cluster"),
                  .strategy = text_at(json, "/study/strategy"),
                  .feasible = false,
                  .breakdown = {},
                  .figures = {},
                  .inputs = {},
                  .low = {},
                  .high = {},
                  .unmeasured = {}};
  if (const Json* feasible = at(json, "/feasible"); feasible != nullptr && feasible->is_boolean())
    outcome.feasible = feasible->get<bool>();
  if (const auto low = number_at(json, "/step/low_s")) outcome.low = Seconds::from_base(*low);
  if (const auto high = number_at(json, "/step/high_s")) outcome.high = Seconds::from_base(*high);
  if (const Json* evidence = at(json, "/step/evidence")) {
    auto read = record::read<study::Unmeasured>(*evidence);
    if (!read) return fault("its step.evidence is not as simulate writes it");
    outcome.unmeasured = *std::move(read);
  }
  const Json* parts = at(json, "/breakdown_s");
  if (parts == nullptr || !parts->is_object()) return fault("it has no breakdown_s");
  for (const auto& [key, time] : parts->items()) {
    if (!time.is_number()) return fault("breakdown_s." + key + " is no number");
    if (time.get<double>() < 0) return fault("breakdown_s." + key + " is negative");
    outcome.breakdown.emplace_back(key, Seconds::from_base(time.get<double>()));
  }
  for (const FigurePlace& place : kFigures) {
    const auto figure = number_at(json, place.pointer);
    if (figure.value_or(0) < 0) return fault(std::string(place.pointer) + " is negative");
    outcome.figures.push_back({std::string(place.key), std::string(place.unit), figure});
  }
  if (const Json* inputs = at(json, "/inputs"); inputs != nullptr && inputs->is_array())
    for (const Json& input : *inputs)
      outcome.inputs.push_back({text_at(input, "/path"), text_at(input, "/sha256")});
  return outcome;
}

bool SideBySide::intervals_overlap() const {
  return a.low && a.high && b.low && b.high && *a.low <= *b.high && *b.low <= *a.high;
}

void sort_by_effect(SideBySide& sides) {
  const double step = sides.a.figure("step").value_or(0);
  std::ranges::stable_sort(sides.changes, {}, &Change::key);
  std::ranges::stable_sort(sides.changes, std::greater{}, [&](const Change& change) {
    return change.step ? std::abs(change.step->in_base() - step) : -1;
  });
}

std::string to_text(const SideBySide& sides, const Paper& paper) {
  Page page(paper);
  page.box("side by side", {{"A", fmt::format("{}: {} on {}, {}", sides.a.name, sides.a.model,
                                              sides.a.cluster, sides.a.strategy)},
                            {"B", fmt::format("{}: {} on {}, {}", sides.b.name, sides.b.model,
                                              sides.b.cluster, sides.b.strategy)}});
  write_verdict(page, sides);
  write_evidence(page, sides);
  write_changes(page, sides);
  write_figures(page, sides);
  write_terms(page, sides);
  if (sides.crossing) write_crossing(page, *sides.crossing);
  return std::move(page).take();
}

std::string to_json(const SideBySide& sides) {
  return record::text_of(record::write(sides), 1);
}

}  // namespace foreshard::report
