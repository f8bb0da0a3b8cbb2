// Lays out the page of `foreshard report` (page.h): verdict, money, step, memory, fabric, inputs.
#include "sim/page/page.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "sim_page_assets.h"

#include "sim/page/internal/html.h"
#include "sim/picture/from_result.h"
#include "sim/picture/svg.h"

namespace foreshard::page {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTight = 0.05;  // of the memory: the margin that a search keeps by default

std::string time_words(const Json& seconds) {
  return seconds.is_null() ? "never" : format(seconds.get<double>() * 1_s);
}

std::string bytes_words(const Json& bytes) {
  return bytes.is_null() ? "" : format(bytes.get<double>() * 1_B);
}

std::string usd_words(const Json& usd) {
  if (usd.is_null()) return "no price";
  const auto amount = usd.get<double>();
  return amount >= 1000 ? fmt::format("${:.4g} k", amount / 1000) : fmt::format("${:.4g}", amount);
}

// The keys of `pictures` that the result has a picture of.
void charts(Html& html, const Json& result, std::initializer_list<std::string_view> kinds) {
  std::vector<std::string> svgs;
  for (const std::string_view kind : kinds)
    if (auto svg = picture::picture_of_parsed(result, kind)) svgs.push_back(*std::move(svg));
  if (!svgs.empty()) html.charts(svgs);
}

// Of a prediction: its step and its training in a sentence.
void tell_step(Html& html, const Json& result) {
  const Json& step = result.at("step");
  if (step.at("time_s").is_null()) {
    html.verdict("The step never ends:", "a failure interrupts it.");
    return;
  }
  std::string rest = fmt::format("8 of 10 measurements are expected between {} and {}.",
                                 time_words(step.at("low_s")), time_words(step.at("high_s")));
  const Json& throughput = result.at("throughput");
  if (!throughput.at("mfu").is_null())
    rest += fmt::format(" {:.1f} % of the peak (MFU).", 100 * throughput.at("mfu").get<double>());
  if (!throughput.at("tokens_per_s").is_null())
    rest += fmt::format(" {:.4g} tokens a second.", throughput.at("tokens_per_s").get<double>());
  html.verdict(time_words(step.at("time_s")) + " a step.", rest);
  const Json& cost = result.at("cost");
  if (const Json& training = cost.at("training"); !training.is_null())
    html.paragraph(fmt::format("{} take {:.3g} days ({:.3g} to {:.3g}) and {}.",
                               training.at("length").get<std::string>(),
                               training.at("days").get<double>(),
                               training.at("low_days").get<double>(),
                               training.at("high_days").get<double>(),
                               usd_words(training.at("usd"))));
  else if (!cost.at("usd_per_step").is_null())
    html.paragraph("A step costs " + usd_words(cost.at("usd_per_step")) + ".");
}

void tell_memory(Html& html, const Json& result) {
  const Json& memory = result.at("memory");
  const auto capacity = memory.at("capacity_bytes").get<double>();
  const double room = capacity - memory.at("reserve_bytes").get<double>() -
                      memory.at("peak_bytes").get<double>();
  const std::string peak = fmt::format("The fullest device needs {} of {}",
                                       bytes_words(memory.at("peak_bytes")),
                                       bytes_words(memory.at("capacity_bytes")));
  if (!memory.at("fits").get<bool>())
    html.paragraph(peak + ": it does not fit.", "warning");
  else if (room < kTight * capacity)
    html.paragraph(peak + ": it fits, and is tight.", "warning");
  else
    html.paragraph(fmt::format("{}: it fits; {} are free beside the reserve.", peak,
                               format(room * 1_B)));
}

// What nobody measured, and what has no price.
void tell_doubts(Html& html, const Json& result) {
  const Json& step = result.at("step");
  html.paragraph("Interval: " + step.at("interval_source").at("text").get<std::string>(), "note");
  std::vector<std::string> unpriced;
  for (const Json& device : result.at("cost").at("devices_without_price"))
    unpriced.push_back(device.get<std::string>());
  if (!unpriced.empty()) html.paragraph("Without a price: " + join(unpriced) + ".", "warning");
  for (const Json& warning : result.at("warnings"))
    html.paragraph(warning.at("message").get<std::string>(), "warning");
}

// The time line as data for the script.
void add_time_line(Html& html, const Json& result) {
  const Json& line = result.at("bundle").at("time_line");
  Json data = {{"names", line.at("names")}, {"tracks", line.at("tracks")}};
  for (const Json& one : result.at("classes")) {
    const auto count = one.at("count").get<std::int64_t>();
    data["classes"].push_back(fmt::format("{}{}", one.at("role").get<std::string>(),
                                          count > 1 ? fmt::format(" x{}", count) : ""));
  }
  std::string json = data.dump(-1, ' ', true);
  for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;)
    json.replace(at, 1, "\\u003c");  // no end of the element within a text
  html.raw(R"(<div class="screen">
<p class="note">Click into the chart: arrows pan and choose a row, + and - zoom, 0 shows all, space
opens a row's streams, Enter counts the tasks in view.</p>
<p id="line-tools"><button value="+" aria-label="zoom in">+</button>
<button value="-" aria-label="zoom out">-</button>
<button value="0" aria-label="show the whole step">all</button>
<button value="Enter" aria-label="count the tasks in view">tasks</button></p>
<div id="line-rows"><canvas id="line-canvas" tabindex="0" role="img" aria-label="Time line of the step"
title="arrows: pan, choose a row; + -: zoom; 0: all; space: open a row; Enter: count tasks"></canvas></div>
<output id="line-told"></output>
<table id="line-kernels" hidden><caption></caption><thead><tr><th>task</th><th class="number">number</th>
<th class="number">time</th></tr></thead><tbody></tbody></table>
</div>
<noscript><p>The time line needs scripts; the charts above do not.</p></noscript>
<script type="application/json" id="line-data">)");
  html.raw(json);
  html.raw("</script>\n");
}

void add_collectives(Html& html, const Json& result) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& one : result.at("collectives"))
    rows.push_back({{one.at("what").get<std::string>()},
                    {one.at("algorithm").get<std::string>() + ", " +
                     one.at("protocol").get<std::string>()},
                    {bytes_words(one.at("bytes")), true},
                    {std::to_string(one.at("operations").get<std::int64_t>()), true},
                    {time_words(one.at("idle_time_s")), true}});
  if (rows.empty()) return;
  html.table({{"communication"},
              {"algorithm"},
              {"bytes", true},
              {"a step", true},
              {"time on idle links", true}},
             rows, 40);
}

void add_prediction(Html& html, const Json& result) {
  const Json& study = result.at("study");
  html.heading(study.at("name").get<std::string>());
  html.paragraph(fmt::format("{} on {}: {}; {} devices.", study.at("model").get<std::string>(),
                             study.at("cluster").get<std::string>(),
                             study.at("strategy").get<std::string>(),
                             study.at("devices").get<std::int64_t>()));
  tell_step(html, result);
  tell_memory(html, result);
  tell_doubts(html, result);
  html.heading("Where the time goes");
  charts(html, result, {"waterfall", "passes"});
  const bool bundled = result.contains("bundle");
  if (bundled) {
    const Json& bundle = result.at("bundle");
    const auto model = bundle.at("model_flops").get<double>();
    if (model > 0)
      html.paragraph(fmt::format("The devices execute {:.3f} times the model's FLOPs.",
                                 bundle.at("executed_flops").get<double>() / model));
    const bool is_first = html.text().find("id=\"line-data\"") == std::string::npos;
    if (is_first) add_time_line(html, result);  // the script moves one
  } else {
    html.paragraph("A page with the time line comes from foreshard simulate STUDY --bundle step.fsr, "
                   "then foreshard report step.fsr.",
                   "note");
  }
  html.heading("Memory");
  charts(html, result, {"memory-over-time", "memory"});
  html.heading("Communication");
  charts(html, result, {"fabric"});
  add_collectives(html, result);
  if (result.contains("sensitivities")) {
    html.heading("What faster parts would save");
    charts(html, result, {"sensitivity"});
  }
  html.heading("Inputs");
  std::vector<std::string> inputs;
  for (const Json& input : result.at("inputs"))
    inputs.push_back(
        std::filesystem::path(input.at("path").get<std::string>()).filename().string() +
        ", SHA-256 " + input.at("sha256").get<std::string>());
  html.list(inputs);
}

void add_search(Html& html, const Json& result) {
  html.heading(fmt::format("Strategies for {} on {}", result.at("model").get<std::string>(),
                           result.at("cluster").get<std::string>()));
  charts(html, result, {"pareto", "memory"});
  std::vector<std::vector<Cell>> rows;
  for (const Json& one : result.at("best"))
    rows.push_back({{std::to_string(rows.size() + 1), true},
                    {one.at("words").get<std::string>()},
                    {time_words(one.at("time_s")), true},
                    {time_words(one.at("low_s")) + " to " + time_words(one.at("high_s")), true},
                    {bytes_words(one.at("peak_bytes")), true},
                    {usd_words(one.at("usd_per_step")), true},
                    {one.at("tight").get<bool>() ? "memory is tight" : ""}});
  html.table({{"", true},
              {"strategy"},
              {"step", true},
              {"interval", true},
              {"memory", true},
              {"a step", true},
              {"remarks"}},
             rows);
}

void add_sweep(Html& html, const Json& result) {
  const bool whole = !result.at("train").is_null() && result.at("train") != "";
  html.heading(result.at("name").get<std::string>());
  charts(html, result, {"pareto"});
  std::vector<std::vector<Cell>> rows;
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
    rows.push_back({{join(values)},
                    {time_words(figures.at("time_s")), true},
                    {time_words(figures.at("low_s")) + " to " + time_words(figures.at("high_s")), true},
                    {usd_words(figures.value("usd", Json())), true}});
  }
  html.table({{"point"}, {whole ? "training" : "step", true}, {"interval", true}, {"price", true}},
             rows);
  if (!failed.empty()) {
    html.paragraph("Points without a result:");
    html.list(failed);
  }
}

void add_collective_curve(Html& html, const Json& result) {
  html.heading(fmt::format("{} on {}", result.at("operation").get<std::string>(),
                           result.at("cluster").get<std::string>()));
  charts(html, result, {"curve"});
}

// The kinds of results that have a section, in the order of the page.
struct Section {
  std::string_view schema;
  void (*add)(Html& html, const Json& result);
};
constexpr std::array<Section, 4> kSections{{{"foreshard.sweep/1", add_sweep},
                                            {"foreshard.search/1", add_search},
                                            {"foreshard.prediction/1", add_prediction},
                                            {"foreshard.collectives/1", add_collective_curve}}};

std::string schema_of(const Json& result) {
  const bool named = result.is_object() && result.contains("schema") &&
                     result.at("schema").is_string();
  return named ? result.at("schema").get<std::string>() : "";
}

Error refusal(const GivenResult& given, const std::string& why) {
  return {Error::Code::kInvalidInput, given.name + ": " + why};
}

bool has_section(const Json& result) {
  const std::string schema = schema_of(result);
  return std::ranges::any_of(kSections,
                             [&](const Section& one) { return one.schema == schema; });
}

}  // namespace

Result<std::string> page_of(const std::vector<GivenResult>& results, const std::string& command) {
  std::vector<Json> parsed;
  for (const GivenResult& given : results) {
    auto json = parsed_json<Json>(given.json);
    if (!json) return refusal(given, json.error().message);
    if (!has_section(*json))
      return refusal(given, "a report is made of what simulate --bundle, and simulate, search, study "
                            "and topology collectives with --format json write");
    parsed.push_back(*std::move(json));
  }
  Html html;
  bool scripted = false;
  for (const Section& section : kSections)
    for (std::size_t i = 0; i < parsed.size(); ++i) {
      if (schema_of(parsed[i]) != section.schema) continue;
      try {
        section.add(html, parsed[i]);
      } catch (const Json::exception& fault) {
        return refusal(results[i], "it is no whole " + std::string(section.schema) + ": " +
                                       json_words(fault.what()));
      }
      scripted = scripted || parsed[i].contains("bundle");
    }
  std::string page = fmt::format(
      R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{0}</title>
<style>{1}</style></head><body><main>
<h1>{0}</h1>
)",
      picture::xml_escaped("foreshard report"), kPageCss);
  page += html.text();
  page += fmt::format("<p class=\"note\">Made by <code>{}</code></p>\n</main>\n",
                      picture::xml_escaped(command));
  if (scripted) page += fmt::format("<script>\n{}</script>\n", kPageJs);
  return page + "</body></html>\n";
}

}  // namespace foreshard::page
