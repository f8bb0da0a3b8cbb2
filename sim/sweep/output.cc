// JSON and CSV; text.cc has the text.
#include "sim/sweep/output.h"

#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/csv.h"
#include "base/text.h"

#include "sim/sweep/crossings.h"
#include "sim/sweep/internal/doubts.h"
#include "sim/sweep/internal/json.h"
#include "sim/sweep/internal/words.h"

namespace foreshard::sweep {
namespace {

using internal::Json;
using internal::known;
using internal::or_null;

constexpr double kJoulesPerKwh = 3.6e6;

Json positive(double number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

// Figures that follow from the step of a point that runs.
Json derived(const StepFigures& step, const WorkFigures& work) {
  const double time = step.step.in_base();
  return {{"tokens_per_s", positive(step.tokens / time)},
          {"samples_per_s", positive(step.samples / time)},
          {"tokens_per_usd", step.usd && step.usd->in_base() > 0
                                 ? positive(step.tokens / step.usd->in_base())
                                 : Json(nullptr)},
          {"headroom_bytes", std::llround(step.headroom().in_base())},
          {"time_s", work.time.in_base()},
          {"low_s", work.low.in_base()},
          {"high_s", work.high.in_base()},
          {"usd", known(work.usd)},
          {"usd_low", work.usd ? Json(interval_of(work, Measure::kUsd).low) : Json(nullptr)},
          {"usd_high", work.usd ? Json(interval_of(work, Measure::kUsd).high) : Json(nullptr)},
          {"kwh", work.energy ? Json(work.energy->in_base() / kJoulesPerKwh) : Json(nullptr)},
          {"co2_kg", known(work.carbon)}};
}

Json point_of(const Results& results, const Ranking& ranking, std::size_t point) {
  const Outcome& outcome = *results.outcomes[point];
  const auto position = position_of(static_cast<std::int64_t>(point), results.question.axes);
  Json axes = Json::object();
  for (std::size_t i = 0; i < position.size(); ++i) {
    const AxisNames& axis = results.question.axes[i];
    axes[axis.name] = axis.values[position[i]];
  }
  Json json = {{"point", point}, {"axes", std::move(axes)}};
  json.update(json_of(outcome));
  json["whole"] = outcome.figures ? derived(*outcome.figures, figures_of(outcome, ranking.work))
                                  : Json(nullptr);
  json["command"] = command_of(results.question, point, outcome);
  json["on_front"] = static_cast<bool>(ranking.on_front[point]);
  json["on_room_front"] = static_cast<bool>(ranking.on_room_front[point]);
  return json;
}

Json goal_of(const Question& question) {
  if (!question.goal) return nullptr;
  return {{"within_s", known(question.goal->within)},
          {"budget_usd", known(question.goal->budget)},
          {"minimise", yaml::name_of(question.goal->minimise)}};
}

Json verdict_of(const Ranking& ranking) {
  if (!ranking.verdict) return nullptr;
  Json missed = Json::array();
  for (const Miss& miss : ranking.verdict->missed)
    missed.push_back({{"point", miss.point},
                      {"late_s", miss.late.in_base()},
                      {"over_usd", miss.over.in_base()},
                      {"unknown", miss.unknown},
                      {"may_meet", miss.may_meet}});
  return {{"met", ranking.verdict->met},
          {"may_miss", ranking.verdict->may_miss},
          {"missed", std::move(missed)}};
}

// Points that are left out of the ranking or the fronts.
Json left_out_json(const Results& results, const Ranking& ranking) {
  const internal::Missing missing = internal::missing_of(results, ranking);
  return {{"unknown", ranking.unknown},
          {"off_front", ranking.off_front},
          {"devices", missing.devices},
          {"remedy", missing.message}};
}

Json crossings_json(const Results& results, const Ranking& ranking) {
  Json list = Json::array();
  for (const Crossing& one : crossings_of(results, ranking)) {
    const AxisNames& along = results.question.axes[one.along];
    const AxisNames& between = results.question.axes[one.between];
    list.push_back({{"along", along.name},
                    {"between", between.name},
                    {"first", between.values[one.first]},
                    {"then", between.values[one.then]},
                    {"low", along.values[one.low]},
                    {"high", along.values[one.high]},
                    {"at", one.at},
                    {"unit", one.unit},
                    {"best", one.best}});
  }
  return list;
}

// Speeds in the points' worth, by kind and device; the CSV has two columns for each.
using Speeds = std::set<std::pair<std::string, std::string>>;
Speeds speeds_of(const Results& results) {
  Speeds speeds;
  for (const auto& outcome : results.outcomes)
    if (outcome && outcome->figures && outcome->figures->worth)
      for (const Worth& one : *outcome->figures->worth) speeds.emplace(one.speed, one.device);
  return speeds;
}

std::string speed_columns(const Speeds& speeds) {
  std::string text;
  for (const auto& [speed, device] : speeds) {
    const std::string name = device.empty() ? speed : fmt::format("{} {}", speed, device);
    for (const char* what : {"elasticity of ", "step_s at 10 percent more "})
      text += "," + csv_field(what + name);
  }
  return text;
}

std::string speed_cells(const Speeds& speeds, const Outcome& outcome) {
  std::string text;
  for (const auto& [speed, device] : speeds) {
    const Worth* found = nullptr;
    if (outcome.figures && outcome.figures->worth)
      for (const Worth& one : *outcome.figures->worth)
        if (one.speed == speed && one.device == device) found = &one;
    text += found == nullptr ? ",,"
                             : fmt::format(",{},{}", Json(found->elasticity).dump(),
                                           Json(found->step.in_base()).dump());
  }
  return text;
}

Json best_with(const Results& results, const Ranking& ranking) {
  Json list = Json::array();
  for (std::size_t i = 0; i < ranking.best_with.size(); ++i) {
    const AxisNames& axis = results.question.axes[i];
    for (std::size_t j = 0; j < ranking.best_with[i].size(); ++j)
      list.push_back({{"axis", axis.name},
                      {"value", axis.values[j]},
                      {"point", or_null(ranking.best_with[i][j])}});
  }
  return list;
}

}  // namespace

std::string sweep_json(const Results& results, const Ranking& ranking) {
  const Question& question = results.question;
  Json axes = Json::array();
  for (const AxisNames& axis : question.axes)
    axes.push_back({{"name", axis.name}, {"values", axis.values}});
  Json points = Json::array();
  for (std::size_t i = 0; i < results.outcomes.size(); ++i)
    if (results.outcomes[i]) points.push_back(point_of(results, ranking, i));
  const Json json = {{"schema", kSweepSchema},
                     {"name", question.name},
                     {"description", question.description},
                     {"inputs", question.said},
                     {"axes", std::move(axes)},
                     {"searched", question.searched},
                     {"train", or_null(question.train)},
                     {"work", internal::word_of(ranking.work)},
                     {"ranked_by", yaml::name_of(question.rank)},
                     {"goal", goal_of(question)},
                     {"sensitivities", question.sensitivities},
                     {"points", results.outcomes.size()},
                     {"done", results.done()},
                     {"ranked", ranking.ranked},
                     {"left_out", left_out_json(results, ranking)},
                     {"overlapping_the_best", ranking.overlapping},
                     {"evidence", internal::evidence_of(results, ranking)},
                     {"best_with", best_with(results, ranking)},
                     {"break_even", crossings_json(results, ranking)},
                     {"verdict", verdict_of(ranking)},
                     {"closest", or_null(ranking.closest)},
                     {"results", std::move(points)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sweep_csv(const Results& results, const Ranking& ranking) {
  const Speeds speeds = speeds_of(results);
  const std::string columns =
      ",status,model,cluster,strategy,devices,step_s,step_low_s,step_high_s,mfu,tokens_per_s,"
      "samples_per_s,peak_bytes,headroom_bytes,work,time_s,low_s,high_s,usd,kwh,co2_kg,"
      "hosts_without_power,tokens_per_usd,on_front,on_room_front,tight,missing_bytes,why,usd_low,"
      "usd_high,unmeasured_share,evidence,without_price,command" +
      speed_columns(speeds);
  std::string text = "point";
  for (const AxisNames& axis : results.question.axes) {
    const std::string name = csv_field(axis.name);
    const bool is_taken =
        name == "point" || (columns + ",").find("," + name + ",") != std::string::npos;
    text += "," + (is_taken ? csv_field("axis " + axis.name) : name);
  }
  text += columns + "\n";
  const auto cell = [&](const Json& value) {
    text += "," + (value.is_null()     ? ""
                   : value.is_string() ? csv_field(value.get<std::string>())
                                       : value.dump());
  };
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    if (!results.outcomes[i]) continue;
    const Json point = point_of(results, ranking, i);
    text += std::to_string(i);
    for (const auto& [axis, value] : point["axes"].items()) cell(value);
    for (const char* key : {"status", "model", "cluster", "strategy"}) cell(point[key]);
    const auto of = [&](const char* part, const char* key) {
      return point[part].is_null() ? Json(nullptr) : point[part][key];
    };
    for (const char* key : {"devices", "time_s", "low_s", "high_s", "mfu"}) cell(of("step", key));
    for (const char* key : {"tokens_per_s", "samples_per_s"}) cell(of("whole", key));
    cell(of("step", "peak_bytes"));
    cell(of("whole", "headroom_bytes"));
    cell(internal::word_of(ranking.work));
    for (const char* key : {"time_s", "low_s", "high_s", "usd", "kwh", "co2_kg"})
      cell(of("whole", key));
    const auto& figures = results.outcomes[i]->figures;
    cell(figures ? join(figures->without_host_power, " ") : "");
    cell(of("whole", "tokens_per_usd"));
    for (const char* key : {"on_front", "on_room_front"}) cell(point[key]);
    cell(of("step", "tight"));
    for (const char* key : {"missing_bytes", "why"}) cell(point[key]);
    for (const char* key : {"usd_low", "usd_high"}) cell(of("whole", key));
    cell(figures ? Json(figures->unmeasured.share) : Json(nullptr));
    cell(figures ? join(figures->unmeasured.remarks, "; ") : "");
    cell(figures ? join(figures->without_price, " ") : "");
    cell(point["command"]);
    text += speed_cells(speeds, *results.outcomes[i]);
    text += '\n';
  }
  return text;
}

}  // namespace foreshard::sweep
