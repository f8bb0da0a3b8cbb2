#include "sim/picture/from_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/picture/chart.h"
#include "sim/picture/internal/from_bundle.h"
#include "sim/picture/internal/from_measured.h"
#include "sim/picture/internal/limits.h"
#include "sim/picture/internal/numbers.h"

namespace foreshard::picture {
namespace {

constexpr double kSecondsPerDay = 86400;
// Parts of a step as results name them, in the order in which a waterfall loses them.
struct Part {
  const char* key;
  const char* name;
};
constexpr std::array<Part, 8> kLosses{{{"pipeline_bubble", "pipeline bubble"},
                                       {"pp_comm", "pipeline communication"},
                                       {"dp_comm", "data communication"},
                                       {"ep_comm", "expert communication"},
                                       {"cp_comm", "context communication"},
                                       {"tp_comm", "tensor communication"},
                                       {"host", "host"},
                                       {"optimizer", "optimizer"}}};

std::string draw_waterfall(const Json& result) {
  const double step = step_of(result);
  const Json& parts = result.at("breakdown_s");
  const auto mfu = amount_if_known(result.at("throughput"), "mfu");
  const auto part = [&](const char* name, const char* style, double seconds) {
    return Waterfall::Part{name, style, step > 0 ? seconds / step : 0, format(seconds * 1_s)};
  };
  Waterfall chart{
      .title = "Where the time of " + result.at("study").at("name").get<std::string>() + " goes",
      .whole = mfu ? "peak of the devices" : "step"};
  for (const Part& loss : kLosses)
    if (const double seconds = amount(parts, loss.key); seconds > 0)
      chart.lost.push_back(part(loss.name, loss.key, seconds));
  const double compute = amount(parts, "compute");
  if (mfu) {
    const double useful = *mfu * step;
    chart.lost.push_back(
        part("kernels, recomputation", "compute", std::max(compute - useful, 0.0)));
    chart.left = part("model FLOPs (MFU)", "rest", useful);
  } else {
    chart.left = part("computation", "compute", compute);
  }
  return draw(chart);
}

std::string draw_memory(const Json& result) {
  constexpr std::size_t kMostBars = 48;
  std::vector<const Json*> classes;
  for (const Json& one : result.at("classes")) classes.push_back(&one);
  const auto peak = [](const Json* one) { return amount(one->at("memory"), "peak_bytes"); };
  const std::vector<std::string> all_names = class_names(result);
  std::map<const Json*, std::string> names;
  for (std::size_t i = 0; i < classes.size(); ++i) names[classes[i]] = all_names[i];
  const std::size_t count = classes.size();
  if (classes.size() > kMostBars) {
    std::ranges::stable_sort(classes, std::greater(), peak);
    classes.resize(kMostBars);
  }
  StackedBars chart{.title = "Memory of " + result.at("study").at("name").get<std::string>(),
                    .unit = "GiB"};
  for (const Json* one : classes) {
    StackedBars::Bar bar{.name = names[one]};
    for (const auto& [kind, bytes] : one->at("memory").at("by_kind_bytes").items())
      bar.parts.push_back({kind, kind, checked_amount(bytes, kind) / kGiB});
    chart.bars.push_back(std::move(bar));
  }
  if (count > kMostBars)
    chart.title += fmt::format(", the {} fullest of {} classes", kMostBars, count);
  const Json& memory = result.at("memory");
  chart.limits = limits_of(memory);
  return draw(chart);
}

std::string draw_sensitivity(const Json& result) {
  if (!result.contains("sensitivities"))
    throw std::out_of_range("it has no sensitivities: simulate with --sensitivity");
  const Json& all = result.at("sensitivities");
  const double step = step_of(result);
  Bars chart{.title = "Step time saved by 10 % more of each resource",
             .axis = "saved, part of the step"};
  for (const Json& one : all) {
    const double saved = 1 - amount(one, "time_s_at_10_percent_more") / step;
    std::string name = one.at("speed").get<std::string>();
    std::ranges::replace(name, '_', ' ');
    if (!one.at("device").is_null()) name += " of " + one.at("device").get<std::string>();
    chart.bars.push_back({name, std::max(saved, 0.0), fmt::format("{:.2f} %", 100 * saved)});
  }
  std::ranges::stable_sort(chart.bars, std::greater(), &Bars::Bar::value);
  return draw(chart);
}

Scatter::Point point_of(const std::string& name, const Json& times, double unit) {
  return {.name = name,
          .x = amount(times, "time_s") / unit,
          .x_low = amount(times, "low_s") / unit,
          .x_high = amount(times, "high_s") / unit};
}

// Listed strategies of a search and strategies of its front, by time. `height` gives a strategy's
// y.
template <class Height>
std::string draw_strategies(const Json& result, const char* what, const char* y_axis,
                            const char* y_unit, const Height& height) {
  Scatter chart{.title = fmt::format("{} of {} on {}", what, result.at("model").get<std::string>(),
                                     result.at("cluster").get<std::string>()),
                .x_axis = "time of a step with 80 % interval, s",
                .y_axis = y_axis,
                .without_y = "without a price",
                .x_unit = "s",
                .y_unit = y_unit};
  std::set<double> times;  // a strategy of the front may be among the best, too
  for (const std::string_view list : {"best", "front"})
    for (const Json& one : result.at(list)) {
      if (one.at("time_s").is_null()) continue;
      if (!times.insert(amount(one, "time_s")).second && list == "front") continue;
      Scatter::Point point = point_of(one.at("words").get<std::string>(), one, 1);
      point.y = height(one);
      chart.points.push_back(std::move(point));
    }
  return draw(chart);
}

std::string draw_search(const Json& result) {
  return draw_strategies(result, "Time and price", "USD a step", "USD", [](const Json& one) {
    return amount_if_known(
        one, one.contains("usd_per_step") ? "usd_per_step" : "usd_of_devices_per_step");
  });
}

std::string draw_search_memory(const Json& result) {
  return draw_strategies(result, "Time and memory", "peak memory, GiB", "GiB", [](const Json& one) {
    return std::optional(amount(one, "peak_bytes") / kGiB);
  });
}

std::string draw_sweep(const Json& result) {
  const bool whole = !result.at("train").is_null() && result.at("train") != "";
  Scatter chart{
      .title = result.at("name").get<std::string>(),
      .x_axis = whole ? "days with 80 % interval" : "time of a step with 80 % interval, s",
      .y_axis = whole ? "USD" : "USD a step",
      .without_y = "without a price",
      .x_unit = whole ? "days" : "s",
      .y_unit = "USD"};
  for (const Json& one : result.at("results")) {
    if (one.at("status") != "ok") continue;
    const Json& times = one.at(whole ? "whole" : "step");
    std::vector<std::string> values;
    for (const auto& [axis, value] : one.at("axes").items())
      values.push_back(axis + "=" + value.get<std::string>());
    Scatter::Point point = point_of(join(values), times, whole ? kSecondsPerDay : 1);
    point.y = amount_if_known(times, "usd");
    chart.points.push_back(std::move(point));
  }
  return draw(chart);
}

std::string draw_collectives(const Json& result) {
  Curve chart{.title = fmt::format(
                  "{} of {} ranks on {}", result.at("operation").get<std::string>(),
                  result.at("ranks").get<std::int64_t>(), result.at("cluster").get<std::string>()),
              .x_axis = "bytes",
              .y_axis = "bus bandwidth, GB/s"};
  for (const Json& row : result.at("rows")) {
    const auto rate = amount_if_known(row, "busbw_bytes_per_s");
    const double bytes = amount(row, "bytes");
    if (!rate || *rate == 0 || bytes == 0) continue;
    const double gigabytes = *rate / 1e9;
    chart.points.push_back(
        {bytes, gigabytes,
         fmt::format("{}: {:.4g} GB/s, {} {}, {}", format(bytes * 1_B), gigabytes,
                     row.at("algorithm").get<std::string>(), row.at("protocol").get<std::string>(),
                     format(amount(row, "time_s") * 1_s))});
  }
  return draw(chart);
}

struct DrawnKind {
  Kind kind;
  std::string (*draw)(const Json& result);
};
constexpr std::array<DrawnKind, 17> kKinds{{
    {{"waterfall", "foreshard.prediction/1", "where the peak of the devices is lost"},
     draw_waterfall},
    {{"memory", "foreshard.prediction/1", "the peak of each class of devices, by kind"},
     draw_memory},
    {{"sensitivity", "foreshard.prediction/1", "what 10 % more of each resource saves"},
     draw_sensitivity},
    {{"passes", "foreshard.prediction/1", "passes of each stage over time, of a bundle"},
     draw_passes},
    {{"memory-over-time", "foreshard.prediction/1", "live bytes over time, of a bundle"},
     draw_memory_over_time},
    {{"fabric", "foreshard.prediction/1", "use of groups of like links, of a bundle"}, draw_fabric},
    {{"pareto", "foreshard.search/1", "strategies by time and price"}, draw_search},
    {{"memory", "foreshard.search/1", "strategies by time and peak memory"}, draw_search_memory},
    {{"pareto", "foreshard.sweep/1", "points of a study by time and price"}, draw_sweep},
    {{"curve", "foreshard.collectives/1", "bus bandwidth over size"}, draw_collectives},
    {{"days", "foreshard.elastic/1", "how the days of a run vary, by policy"}, draw_days},
    {{"goodput", "foreshard.elastic/1", "how goodput varies, by policy"}, draw_goodput},
    {{"accuracy", "foreshard.accuracy/1", "predictions over measurements"}, draw_accuracy},
    {{"memory", "foreshard.accuracy/1", "predictions over measurements"}, draw_memory_accuracy},
    {{"compare", "foreshard.side_by_side/1", "two steps by parts"}, draw_two_steps},
    {{"compare", "foreshard.comparison/1", "the measured step by parts"}, draw_measured_step},
    {{"tasks", "foreshard.comparison/1", "single tasks, predicted over measured"}, draw_tasks},
}};

Error invalid(std::string message) {
  return {Error::Code::kInvalidInput, std::move(message)};
}

// Why no picture of this kind can be drawn of a result with this schema.
Error refusal(const std::string& schema, std::string_view kind) {
  std::vector<std::string> of_schema;
  for (const DrawnKind& one : kKinds)
    if (one.kind.schema == schema) of_schema.emplace_back(one.kind.name);
  if (!of_schema.empty())
    return invalid(fmt::format("a result of the kind {} has no picture '{}': use {}",
                               word_for(schema), kind, quoted_choice(of_schema)));
  return invalid(
      schema.empty()
          ? std::string("it is no result of foreshard: write one with --format json")
          : fmt::format("a result of the kind {} has no picture: those of simulate, search, study, "
                        "compare, elastic, accuracy and topology collectives have one",
                        word_for(schema)));
}

}  // namespace

std::string word_for(std::string_view schema) {
  constexpr std::string_view kOurs = "foreshard.";
  if (schema.starts_with(kOurs)) {
    schema.remove_prefix(kOurs.size());
    schema = schema.substr(0, schema.find('/'));
  }
  return "'" + std::string(schema) + "'";
}

std::span<const Kind> kinds() {
  static const auto all = [] {
    std::array<Kind, kKinds.size()> kinds;
    std::ranges::transform(kKinds, kinds.begin(), &DrawnKind::kind);
    return kinds;
  }();
  return all;
}

Result<std::string> picture_of(std::string_view json, std::string_view kind) {
  FORESHARD_ASSIGN(const auto result, parsed_json<Json>(json));
  return picture_of_parsed(result, kind);
}

Result<std::string> picture_of_parsed(const Json& result, std::string_view kind) {
  const std::string schema =
      result.is_object() && result.contains("schema") && result.at("schema").is_string()
          ? result.at("schema").template get<std::string>()
          : "";
  const auto* wanted = std::ranges::find_if(kKinds, [&](const DrawnKind& one) {
    return one.kind.schema == schema && (kind.empty() || one.kind.name == kind);
  });
  if (wanted == kKinds.end()) return refusal(schema, kind);
  try {
    return wanted->draw(result);
  } catch (const Json::exception& fault) {
    return invalid(
        fmt::format("it is no whole {}: {}", word_for(schema), json_words(fault.what())));
  } catch (const std::out_of_range& fault) {
    return invalid(fmt::format("it cannot be drawn: {}", fault.what()));
  }
}

}  // namespace foreshard::picture
