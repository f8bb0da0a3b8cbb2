#include "sim/report/side_by_side.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quantity.h"

#include "sim/report/internal/page.h"
#include "sim/report/json.h"
#include "sim/report/numbers.h"
#include "sim/study/records.h"

namespace foreshard::report {
namespace {

using Json = nlohmann::ordered_json;

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

// A part of the breakdown on both sides; the largest difference comes first.
struct Term {
  std::string key;
  Seconds a;
  Seconds b;
};
std::vector<Term> terms_of(const SideBySide& sides) {
  std::vector<Term> terms;
  for (const Outcome::Part& part : sides.a.breakdown) {
    const auto other = std::ranges::find(sides.b.breakdown, part.key, &Outcome::Part::key);
    terms.push_back(
        {part.key, part.time, other == sides.b.breakdown.end() ? Seconds{} : other->time});
  }
  std::ranges::stable_sort(terms, std::greater{},
                           [](const Term& term) { return std::abs((term.b - term.a).in_base()); });
  return terms;
}

std::string label_of(const std::string& key) {
  const auto part = std::ranges::find(sim::kBreakdownParts, key, &sim::BreakdownPart::key);
  return part == std::end(sim::kBreakdownParts) ? key : std::string(part->label);
}

void write_changes(Page& page, const SideBySide& sides) {
  page.heading("What differs", sides.changes.empty() ? "" : "step of A with it alone as in B");
  if (sides.changes.empty()) page.line("  Nothing of what they were made from.");
  constexpr std::size_t kMost = 30;
  const std::size_t rows = std::min(kMost, sides.changes.size());
  const std::optional<double> step = sides.a.figure("step");
  for (std::size_t i = 0; i < rows; ++i) {
    const Change& change = sides.changes[i];
    const std::string effect =
        change.step && step
            ? fmt::format("{} {}", format(*change.step), change_of(*step, change.step->in_base()))
            : "";
    page.line(fmt::format("  {}{}", left(change.key, 54), right(effect, 24)));
    page.line(fmt::format("      {} -> {}", change.a.empty() ? "none" : change.a,
                          change.b.empty() ? "none" : change.b));
  }
  if (sides.changes.size() > rows)
    page.line(
        fmt::format("  ... and {} more (--format json has all)", sides.changes.size() - rows));
}

void write_terms(Page& page, const SideBySide& sides) {
  constexpr double kRounding = 1e-9;
  page.heading("Where the time goes", "by difference");
  page.line(
      fmt::format("  {}{}{}{}", left("", 34), right("A", 13), right("B", 13), right("B - A", 15)));
  for (const Term& term : terms_of(sides)) {
    if (term.a == 0_s && term.b == 0_s) continue;
    // Sums of the same times in different orders count as equal.
    const bool same = std::abs((term.b - term.a).in_base()) < kRounding * term.a.in_base();
    page.line(fmt::format("  {}{}{}{}", left(label_of(term.key), 34), right(format(term.a), 13),
                          right(format(term.b), 13),
                          right(format(same ? 0_s : term.b - term.a), 15)));
  }
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

void write_figures(Page& page, const SideBySide& sides) {
  page.heading("What comes out", "");
  for (const Outcome::Figure& of_a : sides.a.figures) {
    const std::optional<double> of_b = sides.b.figure(of_a.key);
    if (!of_a.value && !of_b) continue;
    page.line(fmt::format("  {}{}{}{}", left(of_a.key, 28), right(shown(of_a.value, of_a.unit), 16),
                          right(shown(of_b, of_a.unit), 16),
                          right(of_a.value && of_b ? change_of(*of_a.value, *of_b) : "", 15)));
  }
  if (sides.a.low && sides.b.low)
    page.line(fmt::format("  {}{}{}", left("8 of 10 steps within", 28),
                          right(interval_of(sides.a), 16), right(interval_of(sides.b), 16)));
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

Json side_json(const Outcome& side) {
  return {{"name", side.name},
          {"model", side.model},
          {"cluster", side.cluster},
          {"strategy", side.strategy},
          {"feasible", side.feasible},
          {"low_s", side.low ? Json(side.low->in_base()) : Json(nullptr)},
          {"high_s", side.high ? Json(side.high->in_base()) : Json(nullptr)},
          {"evidence", study::evidence_json(side.unmeasured)}};
}

template <class T>
Json if_known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::optional<double> Outcome::figure(std::string_view key) const {
  const auto found = std::ranges::find(figures, key, &Figure::key);
  return found == figures.end() ? std::nullopt : found->value;
}

Result<Outcome> read_outcome(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto fault = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "no prediction: " + why};
  };
  if (json.is_discarded() || !json.is_object()) return fault("no JSON object");
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
    try {
      outcome.unmeasured = study::unmeasured_in(*evidence);
    } catch (const Json::exception&) {
      return fault("its step.evidence is not as simulate writes it");
    }
  }
  const Json* parts = at(json, "/breakdown_s");
  if (parts == nullptr || !parts->is_object()) return fault("it has no breakdown_s");
  for (const auto& [key, time] : parts->items()) {
    if (!time.is_number()) return fault("breakdown_s." + key + " is no number");
    outcome.breakdown.push_back({key, Seconds::from_base(time.get<double>())});
  }
  for (const FigurePlace& place : kFigures)
    outcome.figures.push_back(
        {std::string(place.key), std::string(place.unit), number_at(json, place.pointer)});
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

std::string to_text(const SideBySide& sides) {
  Page page(false);
  page.box("side by side", {{"A", fmt::format("{}: {} on {}, {}", sides.a.name, sides.a.model,
                                              sides.a.cluster, sides.a.strategy)},
                            {"B", fmt::format("{}: {} on {}, {}", sides.b.name, sides.b.model,
                                              sides.b.cluster, sides.b.strategy)}});
  write_evidence(page, sides);
  write_figures(page, sides);
  write_terms(page, sides);
  write_changes(page, sides);
  if (sides.crossing) write_crossing(page, *sides.crossing);
  return std::move(page).take();
}

std::string to_json(const SideBySide& sides) {
  Json json = {{"schema", "foreshard.side_by_side/1"},
               {"a", side_json(sides.a)},
               {"b", side_json(sides.b)},
               {"intervals_overlap", sides.intervals_overlap()},
               {"results", Json::array()},
               {"terms", Json::array()},
               {"inputs", Json::array()},
               {"break_even", nullptr}};
  for (const Outcome::Figure& of_a : sides.a.figures)
    json["results"].push_back({{"what", of_a.key},
                               {"unit", of_a.unit},
                               {"a", if_known(of_a.value)},
                               {"b", if_known(sides.b.figure(of_a.key))}});
  for (const Term& term : terms_of(sides))
    json["terms"].push_back(
        {{"part", term.key}, {"a_s", term.a.in_base()}, {"b_s", term.b.in_base()}});
  for (const Change& change : sides.changes)
    json["inputs"].push_back(
        {{"key", change.key},
         {"a", change.a.empty() ? Json(nullptr) : Json(change.a)},
         {"b", change.b.empty() ? Json(nullptr) : Json(change.b)},
         {"step_of_a_with_it_s", change.step ? Json(change.step->in_base()) : Json(nullptr)}});
  if (sides.crossing)
    json["break_even"] = {
        {"key", sides.crossing->key},
        {"metric", sides.crossing->metric},
        {"low", sides.crossing->low},
        {"high", sides.crossing->high},
        {"value", if_known(sides.crossing->value)},
        {"between", sides.crossing->between
                        ? Json{sides.crossing->between->first, sides.crossing->between->second}
                        : Json(nullptr)},
        {"better", sides.crossing->better.empty() ? Json(nullptr) : Json(sides.crossing->better)}};
  constexpr int kIndent = 1;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard::report
