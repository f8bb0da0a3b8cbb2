// The sections of a document, one for each kind of result (sections.h).
#include "sim/page/internal/sections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/text.h"

#include "sim/picture/from_result.h"
#include "sim/report/numbers.h"

namespace foreshard::page {
namespace {

// A number that a page can show.
double number(const Json& json) {
  constexpr double kMost = 1e30;
  const auto value = json.get<double>();
  if (!(value >= 0 && value <= kMost))
    throw std::out_of_range(fmt::format("{} is no amount of a cluster", value));
  return value;
}

std::string time_words(const Json& seconds) {
  return seconds.is_null() ? "never" : format(number(seconds) * 1_s);
}

std::string bytes_words(const Json& bytes) {
  return bytes.is_null() ? "" : format(bytes.get<double>() * 1_B);
}

std::string usd_words(const Json& usd) {
  if (usd.is_null()) return "no price";
  const auto amount = usd.get<double>();
  return "$" + report::scaled(amount);
}

// Pictures of the result. A picture that cannot be drawn is a fault of the result.
void charts(Document& to, const Json& result, const std::vector<std::string_view>& kinds) {
  std::vector<std::string> svgs;
  for (const std::string_view kind : kinds) {
    auto svg = picture::picture_of_parsed(result, kind);
    if (!svg) throw std::out_of_range(svg.error().message);
    svgs.push_back(*std::move(svg));
  }
  to.charts(svgs);
}

std::string text_of(const Json& task) {
  return fmt::format("{}, {}, layer {}, micro-batch {}", task.at("who").get<std::string>(),
                     task.at("what").get<std::string>(), task.at("layer").get<std::int64_t>(),
                     task.at("micro_batch").get<std::int64_t>());
}

// Why a step never ends: what failed, and who waits for it.
void tell_interruption(Document& to, const Json& interruption) {
  constexpr std::size_t kMost = 12;
  to.verdict("The step never ends:",
             "a failure interrupts it after " + time_words(interruption.at("at_s")) + ".");
  std::vector<std::string> items;
  for (const Json& failed : interruption.at("failed"))
    items.push_back(text_of(failed.at("task")) + " fails on " + failed.at("on").get<std::string>());
  for (const Json& waiting : interruption.at("waiting"))
    items.push_back(fmt::format("{} devices stand at {} since {}",
                                waiting.at("devices").get<std::int64_t>(),
                                text_of(waiting.at("task")), time_words(waiting.at("since_s"))));
  const std::size_t left_out = items.size() > kMost ? items.size() - kMost : 0;
  items.resize(items.size() - left_out);
  if (left_out > 0) items.push_back(fmt::format("and {} more, in the result", left_out));
  to.list(items);
}

// What disturbed the step, and how steps with other seeds went.
void tell_disturbances(Document& to, const Json& result) {
  if (!result.contains("disturbances")) return;
  constexpr std::size_t kMost = 20;
  const Json& all = result.at("disturbances");
  std::vector<Row> rows;
  for (const Json& event : all.at("events")) {
    std::vector<std::string> who;
    for (const Json& one : event.at("who")) who.push_back(one.get<std::string>());
    rows.push_back({{event.at("kind").get<std::string>()},
                    {event.at("effect").get<std::string>()},
                    {join(who)},
                    {time_words(event.at("at_s")), true},
                    {time_words(event.at("until_s")), true}});
  }
  to.paragraph(
      fmt::format("Disturbances of the step with seed {}:", all.at("seed").get<std::uint64_t>()));
  to.table({{"kind"}, {"effect"}, {"on"}, {"from", true}, {"until", true}}, rows, kMost);
  const Json& runs = all.at("runs");
  const auto ended = runs.at("ended").get<std::int64_t>();
  const auto interrupted = runs.at("interrupted").get<std::int64_t>();
  if (ended + interrupted < 2) return;
  std::string text =
      fmt::format("Of {} steps, each with a seed of its own, {} ended", ended + interrupted, ended);
  if (runs.contains("p50_s"))
    text += fmt::format("; the step above is their median, {}; 95th percentile {}, longest {}",
                        time_words(runs.at("p50_s")), time_words(runs.at("p95_s")),
                        time_words(runs.at("max_s")));
  to.paragraph(text + ".");
}

// The step and the training of a prediction, in a sentence each.
void tell_step(Document& to, const Json& result) {
  const Json& step = result.at("step");
  if (result.contains("interruption")) {
    tell_interruption(to, result.at("interruption"));
    return;
  }
  std::string rest = fmt::format("8 of 10 measurements are expected between {} and {}.",
                                 time_words(step.at("low_s")), time_words(step.at("high_s")));
  const Json& throughput = result.at("throughput");
  if (!throughput.at("mfu").is_null())
    rest += fmt::format(" {:.1f} % of the peak (MFU).", 100 * throughput.at("mfu").get<double>());
  if (!throughput.at("tokens_per_s").is_null())
    rest += fmt::format(" {} tokens a second.",
                        report::scaled(throughput.at("tokens_per_s").get<double>()));
  to.verdict(time_words(step.at("time_s")) + " a step.", rest);
  const Json& cost = result.at("cost");
  if (const Json& training = cost.at("training"); !training.is_null())
    to.paragraph(fmt::format(
        "{} take {:.3g} days ({:.3g} to {:.3g}) and {}.", training.at("length").get<std::string>(),
        training.at("days").get<double>(), training.at("low_days").get<double>(),
        training.at("high_days").get<double>(), usd_words(training.at("usd"))));
  else if (!cost.at("usd_per_step").is_null())
    to.paragraph("A step costs " + usd_words(cost.at("usd_per_step")) + ".");
}

void tell_memory(Document& to, const Json& result) {
  const Json& memory = result.at("memory");
  const auto capacity = memory.at("capacity_bytes").get<double>();
  const double room =
      capacity - memory.at("reserve_bytes").get<double>() - memory.at("peak_bytes").get<double>();
  const std::string peak =
      fmt::format("The fullest device needs {} of {}", bytes_words(memory.at("peak_bytes")),
                  bytes_words(memory.at("capacity_bytes")));
  if (!memory.at("fits").get<bool>())
    to.warning(peak + ": it does not fit.");
  else if (memory.value("tight", false))
    to.warning(
        fmt::format("{}: it fits, but is tight: {} are free beside the reserve, less than "
                    "the margin of {:.3g} % of a device ({}).",
                    peak, format(room * 1_B), 100 * memory.at("margin_share").get<double>(),
                    memory.at("margin_source").get<std::string>()));
  else
    to.paragraph(
        fmt::format("{}: it fits; {} are free beside the reserve.", peak, format(room * 1_B)));
}

// What nobody measured, and what has no price.
void tell_doubts(Document& to, const Json& result) {
  const Json& step = result.at("step");
  to.note("Interval: " + step.at("interval_source").at("text").get<std::string>());
  std::vector<std::string> unpriced;
  for (const Json& device : result.at("cost").at("devices_without_price"))
    unpriced.push_back(device.get<std::string>());
  if (!unpriced.empty()) to.warning("Without a price: " + join(unpriced) + ".");
  for (const Json& warning : result.at("warnings"))
    to.warning(warning.at("message").get<std::string>());
}

// The time line for the script of a page.
void add_time_line(Document& to, const Json& result) {
  picture::check_time_line(result);
  const Json& line = result.at("bundle").at("time_line");
  Json data = {{"names", line.at("names")}, {"tracks", line.at("tracks")}};
  data["classes"] = Json::array();
  for (const std::string& name : picture::class_names(result)) {
    const auto count =
        result.at("classes").at(data["classes"].size()).at("count").get<std::int64_t>();
    data["classes"].push_back(name + (count > 1 ? fmt::format(" x{}", count) : ""));
  }
  if (!to.time_line(data.dump(-1, ' ', true)))
    to.without_time_line("A page has one time line, that of its first bundle.");
}

void add_collectives(Document& to, const Json& result) {
  std::vector<Row> rows;
  for (const Json& one : result.at("collectives"))
    rows.push_back(
        {{one.at("what").get<std::string>()},
         {one.at("algorithm").get<std::string>() + ", " + one.at("protocol").get<std::string>()},
         {bytes_words(one.at("bytes")), true},
         {std::to_string(one.at("operations").get<std::int64_t>()), true},
         {time_words(one.at("idle_time_s")), true}});
  if (rows.empty()) return;
  to.table({{"communication"},
            {"algorithm"},
            {"bytes", true},
            {"a step", true},
            {"time on idle links", true}},
           rows, 40);
}

void add_verdict(Document& to, const Json& result) {
  const Json& study = result.at("study");
  to.heading(study.at("name").get<std::string>());
  to.paragraph(fmt::format("{} on {}: {}; {} devices.", study.at("model").get<std::string>(),
                           study.at("cluster").get<std::string>(),
                           study.at("strategy").get<std::string>(),
                           study.at("devices").get<std::int64_t>()));
  tell_step(to, result);
  tell_memory(to, result);
  tell_disturbances(to, result);
  tell_doubts(to, result);
}

void add_step(Document& to, const Json& result) {
  const std::string of = " of " + result.at("study").at("name").get<std::string>();
  to.heading("Time" + of);
  const bool bundled = result.contains("bundle");
  std::vector<std::string_view> pictures;
  if (!result.contains("interruption")) pictures.push_back("waterfall");
  if (bundled) pictures.push_back("passes");
  charts(to, result, pictures);
  if (bundled) {
    const Json& bundle = result.at("bundle");
    const double model = number(bundle.at("model_flops"));
    if (model > 0)
      to.paragraph(fmt::format(
          "The devices execute {:.3g} times the FLOPs that MFU counts. MFU counts attention "
          "in full and no recomputation; kernels leave out what a mask hides.",
          number(bundle.at("executed_flops")) / model));
    add_time_line(to, result);
  } else {
    to.without_time_line(
        "The time line comes with foreshard simulate STUDY --bundle step.fsr, then "
        "foreshard report step.fsr.");
  }
  to.heading("Memory" + of);
  if (bundled)
    charts(to, result, {"memory-over-time", "memory"});
  else
    charts(to, result, {"memory"});
  to.heading("Communication" + of);
  const bool sends = bundled && !result.at("bundle").at("link_groups").empty();
  if (result.at("collectives").empty())
    to.paragraph("No device sends anything.");
  else if (sends && !result.contains("interruption"))
    charts(to, result, {"fabric"});
  add_collectives(to, result);
  if (result.contains("sensitivities")) {
    to.heading("What faster parts" + of + " would save");
    charts(to, result, {"sensitivity"});
  }
  to.heading("Inputs" + of);
  std::vector<std::string> inputs;
  for (const Json& input : result.at("inputs"))
    inputs.push_back(
        std::filesystem::path(input.at("path").get<std::string>()).filename().string() +
        ", SHA-256 " + input.at("sha256").get<std::string>());
  to.list(inputs);
}

void add_search(Document& to, const Json& result) {
  to.heading(fmt::format("Strategies for {} on {}", result.at("model").get<std::string>(),
                         result.at("cluster").get<std::string>()));
  charts(to, result, {"pareto", "memory"});
  std::vector<Row> rows;
  for (const Json& one : result.at("best"))
    rows.push_back({{std::to_string(rows.size() + 1), true},
                    {one.at("words").get<std::string>()},
                    {time_words(one.at("time_s")), true},
                    {time_words(one.at("low_s")) + " to " + time_words(one.at("high_s")), true},
                    {bytes_words(one.at("peak_bytes")), true},
                    {usd_words(one.at("usd_per_step")), true},
                    {one.at("tight").get<bool>() ? "memory is tight" : ""}});
  to.table({{"", true},
            {"strategy"},
            {"step", true},
            {"interval", true},
            {"memory", true},
            {"a step", true},
            {"remarks"}},
           rows);
}

void add_sweep(Document& to, const Json& result) {
  const bool whole = !result.at("train").is_null() && result.at("train") != "";
  to.heading(result.at("name").get<std::string>());
  charts(to, result, {"pareto"});
  std::vector<Row> rows;
  std::vector<std::string> failed;
  for (const Json& one : result.at("results")) {
    std::vector<std::string> values;
    for (const auto& [axis, value] : one.at("axes").items())
      values.push_back(axis + "=" + value.get<std::string>());
    if (one.at("status") != "ok") {
      failed.push_back(join(values) + ": " + one.at("status").get<std::string>());
      continue;
    }
    const Json& figures = one.at(whole ? "whole" : "step");
    rows.push_back(
        {{join(values)},
         {time_words(figures.at("time_s")), true},
         {time_words(figures.at("low_s")) + " to " + time_words(figures.at("high_s")), true},
         {usd_words(figures.value("usd", Json())), true}});
  }
  to.table({{"point"}, {whole ? "training" : "step", true}, {"interval", true}, {"price", true}},
           rows);
  if (!failed.empty()) {
    to.paragraph("Points without a result:");
    to.list(failed);
  }
}

void add_collective_curve(Document& to, const Json& result) {
  to.heading(fmt::format("{} on {}", result.at("operation").get<std::string>(),
                         result.at("cluster").get<std::string>()));
  charts(to, result, {"curve"});
}

std::string change_in_words(double a, double b) {
  return a > 0 ? fmt::format("{:+.1f} %", 100 * (b / a - 1)) : "";
}

// A figure of one side, with its unit.
std::string figure_words(double value, const std::string& unit) {
  if (unit == "s") return format(value * 1_s);
  if (unit == "B") return format(value * 1_B);
  return report::scaled(value) + (unit.empty() ? "" : " " + unit);
}

void add_side_by_side(Document& to, const Json& result) {
  const Json& a = result.at("a");
  const Json& b = result.at("b");
  to.heading(
      fmt::format("{} or {}", a.at("name").get<std::string>(), b.at("name").get<std::string>()));
  std::vector<Row> rows;
  double step_a = 0;
  double step_b = 0;
  for (const Json& figure : result.at("results")) {
    const auto what = figure.at("what").get<std::string>();
    const auto unit = figure.at("unit").get<std::string>();
    if (figure.at("a").is_null() || figure.at("b").is_null()) continue;
    const auto of_a = figure.at("a").get<double>();
    const auto of_b = figure.at("b").get<double>();
    if (what == "step") std::tie(step_a, step_b) = std::pair(of_a, of_b);
    rows.push_back({{what},
                    {figure_words(of_a, unit), true},
                    {figure_words(of_b, unit), true},
                    {change_in_words(of_a, of_b), true}});
  }
  if (step_a > 0 && step_b > 0) {
    to.verdict(result.value("verdict", "Two plans."),
               result.at("intervals_overlap").get<bool>()
                   ? "The intervals overlap: a machine may order them otherwise."
                   : "The intervals do not overlap.");
  }
  if (!result.at("terms").empty()) charts(to, result, {"compare"});
  for (const auto& [name, side] : {std::pair("A", &a), std::pair("B", &b)}) {
    to.paragraph(fmt::format("{}: {} on {}, {}", name, side->at("model").get<std::string>(),
                             side->at("cluster").get<std::string>(),
                             side->at("strategy").get<std::string>()));
    if (!side->at("feasible").get<bool>()) to.warning(std::string(name) + " does not run.");
  }
  std::vector<Row> changes;
  for (const Json& change : result.at("inputs")) {
    const auto text = [&](const char* key) {
      return change.at(key).is_null() ? "" : change.at(key).get<std::string>();
    };
    const Json& alone = change.at("step_of_a_with_it_s");
    changes.push_back(
        {{text("key")},
         {text("a")},
         {text("b")},
         {alone.is_null() ? "" : change_in_words(step_a, alone.get<double>()), true}});
  }
  if (!changes.empty())
    to.table({{"what changes"}, {"A"}, {"B"}, {"step of A with it alone", true}}, changes, 30);
  to.table({{"what comes out"}, {"A", true}, {"B", true}, {"", true}}, rows);
}

// What speaks against a change, or makes it less certain.
std::string remarks_of(const Json& figures) {
  std::vector<std::string> remarks;
  if (figures.at("tight").get<bool>()) remarks.emplace_back("memory is tight");
  const auto unmeasured = figures.at("evidence").at("unmeasured_share").get<double>();
  if (unmeasured >= 0.005) remarks.push_back(fmt::format("{:.0f} % unmeasured", 100 * unmeasured));
  return join(remarks);
}

void add_changes(Document& to, const Json& changes, const Json& now) {
  const bool compares = now.at("fits").get<bool>() && !now.at("step_s").is_null();
  std::vector<Row> rows;
  for (const Json& change : changes) {
    const Json& after = change.at("after");
    std::vector<std::string> options;
    for (const Json& option : change.at("options")) options.push_back(option.get<std::string>());
    rows.push_back({{change.at("words").get<std::string>()},
                    {time_words(after.at("step_s")), true},
                    {after.at("low_s").is_null()
                         ? ""
                         : time_words(after.at("low_s")) + " to " + time_words(after.at("high_s")),
                     true},
                    {compares && !change.at("gain_pct").is_null()
                         ? fmt::format("{:.1f} %", change.at("gain_pct").get<double>())
                         : "",
                     true},
                    {bytes_words(after.at("peak_bytes")), true},
                    {usd_words(after.at("usd_per_step")), true},
                    {remarks_of(after)},
                    {join(options, " ")}});
  }
  to.table({{"change"},
            {"step", true},
            {"8 of 10 within", true},
            {"saves", true},
            {"peak memory", true},
            {"USD a step", true},
            {"remarks"},
            {"options"}},
           rows);
}

void add_advice(Document& to, const Json& result) {
  to.heading("The best single changes to " + result.at("study").get<std::string>());
  const Json& now = result.at("now");
  const bool runs = now.at("fits").get<bool>() && !now.at("step_s").is_null();
  if (!now.at("fits").get<bool>())
    to.warning("The study does not fit as it is.");
  else
    to.paragraph(now.at("step_s").is_null()
                     ? "The step never ends as it is."
                     : "As it is, a step takes " + time_words(now.at("step_s")) + ".");
  if (result.at("changes").empty())
    to.paragraph(runs ? "No single change that was tried is faster and fits."
                      : "No single change that was tried runs.");
  else
    add_changes(to, result.at("changes"), now);
  if (!result.at("hardware").empty()) {
    to.paragraph("With other hardware; what it costs to get is not counted:");
    add_changes(to, result.at("hardware"), now);
  }
  const Json& counts = result.at("counts");
  to.note(fmt::format(
      "Of {} candidates on the same machine, {} are no faster and {} leave too little memory.",
      counts.at("candidates").get<std::int64_t>(), counts.at("slower").get<std::int64_t>(),
      counts.at("too_large").get<std::int64_t>()));
  if (result.at("partial").get<bool>())
    to.warning("It was stopped before all candidates were simulated.");
}

std::string days_words(const Json& seconds) {
  constexpr double kSecondsPerDay = 86400;
  return seconds.is_null() ? "unknown" : fmt::format("{:.3g}", number(seconds) / kSecondsPerDay);
}

void add_elastic(Document& to, const Json& result) {
  to.heading("A run on a machine that fails: " + result.at("name").get<std::string>());
  to.paragraph(fmt::format(
      "{} on {}: {}, {} days without failures and checkpoints; {} histories of each policy.",
      result.at("model").get<std::string>(), result.at("cluster").get<std::string>(),
      result.at("strategy").get<std::string>(), days_words(result.at("ideal_s")),
      result.at("histories").get<std::int64_t>()));
  std::vector<Row> rows;
  bool is_known = false;
  for (const Json& policy : result.at("policies")) {
    const Json& time = policy.at("time_s_at_least");
    const auto days = [&](const char* key) {
      return Cell{time.is_null() ? "unknown" : days_words(time.at(key)), true};
    };
    is_known |= !time.is_null();
    const Json& goodput = policy.at("goodput_at_most");
    rows.push_back(
        {{policy.at("policy").get<std::string>()},
         {goodput.is_null() ? "unknown" : fmt::format("{:.1f} %", 100 * number(goodput)), true},
         days("mean"),
         days("p10"),
         days("median"),
         days("p90"),
         {usd_words(policy.at("rent_usd_at_least")), true},
         {policy.at("unknown").get<std::string>()}});
  }
  if (is_known) charts(to, result, {"days", "goodput"});
  to.table({{"policy"},
            {"goodput", true},
            {"days, mean", true},
            {"10th percentile", true},
            {"median", true},
            {"90th percentile", true},
            {"rent", true},
            {"remarks"}},
           rows);
  std::vector<std::string> uncounted;
  for (const Json& cause : result.at("without_rate")) uncounted.push_back(cause.get<std::string>());
  if (!uncounted.empty())
    to.warning("Nobody has counted " + join(uncounted) +
               ": with them, times are longer and goodput is smaller.");
}

void add_accuracy(Document& to, const Json& result) {
  to.heading("Predictions beside measurements");
  const Json& overall = result.at("summaries").at("overall");
  to.paragraph(fmt::format("{} rows, {} of them predicted.", overall.at("rows").get<std::int64_t>(),
                           overall.at("ok").get<std::int64_t>()));
  for (const auto& [quantity, kind] :
       {std::pair("time", "accuracy"), std::pair("memory", "memory")})
    if (std::ranges::any_of(result.at("rows"), [&, what = quantity](const Json& row) {
          return row.at("quantity") == what && row.at("status") == "ok";
        }))
      charts(to, result, {kind});
  std::vector<Row> rows;
  for (const auto& [file, summary] : result.at("summaries").at("files").items()) {
    const auto percent = [&, &of = summary](const char* key) {
      const Json& value = of.at(key);
      return Cell{value.is_null() ? "" : fmt::format("{:.1f} %", value.get<double>()), true};
    };
    rows.push_back({{std::filesystem::path(file).filename().string()},
                    {std::to_string(summary.at("ok").get<std::int64_t>()), true},
                    percent("mape_pct"),
                    percent("interval_coverage_pct")});
  }
  to.table({{"table"}, {"predicted rows", true}, {"mean error", true}, {"in the interval", true}},
           rows);
}

void add_comparison(Document& to, const Json& result) {
  const Json& step = result.at("step");
  to.heading(result.at("program").get<std::string>() + ", predicted and measured");
  to.verdict(fmt::format("{} predicted, {} measured.", time_words(step.at("predicted_s")),
                         time_words(step.at("measured_s"))),
             step.at("error_pct").is_null() ? ""
                                            : fmt::format("The prediction is {:+.1f} % off.",
                                                          step.at("error_pct").get<double>()));
  charts(to, result, {"compare", "tasks"});
  std::vector<Row> rows;
  for (const char* list : {"kinds", "residuals"})
    for (const Json& row : result.at(list)) {
      const Json& time = row.at("per_rank");
      rows.push_back({{row.at("kind").get<std::string>()},
                      {row.at("name").get<std::string>()},
                      {time_words(time.at("predicted_s")), true},
                      {time_words(time.at("measured_s")), true}});
    }
  to.table({{"kind"}, {"task"}, {"predicted", true}, {"measured", true}}, rows, 40);
}

}  // namespace

std::span<const Section> sections() {
  static constexpr std::array<Section, 10> kSections{
      {{"foreshard.prediction/1", add_verdict},
       {"foreshard.sweep/1", add_sweep},
       {"foreshard.search/1", add_search},
       {"foreshard.side_by_side/1", add_side_by_side},
       {"foreshard.elastic/1", add_elastic},
       {"foreshard.comparison/1", add_comparison},
       {"foreshard.advice/1", add_advice},
       {"foreshard.prediction/1", add_step},
       {"foreshard.collectives/1", add_collective_curve},
       {"foreshard.accuracy/1", add_accuracy}}};
  return kSections;
}

}  // namespace foreshard::page
