// JSON and CSV; text.cc has the text.
#include "sim/sweep/output.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/record/csv.h"
#include "base/record/record.h"

#include "sim/sweep/crossings.h"
#include "sim/sweep/internal/doubts.h"

namespace foreshard::sweep {

struct SweepReport {
  const Results* results;
  const Ranking* ranking;
};

namespace {

using record::at;
using record::Json;
using record::Record;

template <auto kMember>
constexpr auto asked = at<&SweepReport::results, &Results::question, kMember>;
template <auto kMember>
constexpr auto ranked = at<&SweepReport::ranking, kMember>;

std::optional<double> if_positive(double number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

// A point that runs, in the work by which points are compared.
struct Whole {
  const StepFigures* step;
  WorkFigures work;
};

const Record<Whole>& record_of(const Whole*) {
  const auto per_second = [](double StepFigures::*amount) {
    return [amount](const Whole& of) {
      return if_positive(of.step->*amount / of.step->step.in_base());
    };
  };
  const auto tokens_per_usd = [](const Whole& of) {
    const auto& usd = of.step->usd;
    return usd && *usd > 0_USD ? if_positive(of.step->tokens / usd->in_base()) : std::nullopt;
  };
  const auto usd = [](double MeasureInterval::*end) {
    return [end](const Whole& of) {
      return of.work.usd ? std::optional(interval_of(of.work, Measure::kUsd).*end) : std::nullopt;
    };
  };
  static const auto record =
      Record<Whole>("whole", "Figures of what `work` says.")
          .field("tokens_per_s", per_second(&StepFigures::tokens))
          .field("samples_per_s", per_second(&StepFigures::samples))
          .field("tokens_per_usd", tokens_per_usd)
          .field("headroom_bytes", at<&Whole::step, &StepFigures::headroom>)
          .field("time_s", at<&Whole::work, &WorkFigures::time>)
          .field("low_s", at<&Whole::work, &WorkFigures::low>)
          .field("high_s", at<&Whole::work, &WorkFigures::high>)
          .field("usd", at<&Whole::work, &WorkFigures::usd>)
          .field("usd_low", usd(&MeasureInterval::low), "Money has the relative error of time.")
          .field("usd_high", usd(&MeasureInterval::high))
          .field("kwh", at<&Whole::work, &WorkFigures::kwh>)
          .field("co2_kg", at<&Whole::work, &WorkFigures::carbon>);
  return record;
}

struct PointReport {
  std::size_t point;
  std::vector<std::pair<std::string, std::string>> axes;
  const Outcome* outcome;
  std::optional<Whole> whole;
  std::string command;
  bool on_front;
  bool on_room_front;
};

std::vector<PointReport> points_of(const SweepReport& sweep) {
  const auto& [question, outcomes] = *sweep.results;
  const Ranking& ranking = *sweep.ranking;
  std::vector<PointReport> points;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) continue;
    const Outcome& outcome = *outcomes[i];
    points.push_back({i,
                      {},
                      &outcome,
                      {},
                      command_of(question, i, outcome),
                      ranking.on_front[i],
                      ranking.on_room_front[i]});
    const auto position = position_of(static_cast<std::int64_t>(i), question.axes);
    for (std::size_t axis = 0; axis < position.size(); ++axis)
      points.back().axes.emplace_back(question.axes[axis].name,
                                      question.axes[axis].values[position[axis]]);
    if (outcome.figures)
      points.back().whole = Whole{&*outcome.figures, figures_of(outcome, ranking.work)};
  }
  return points;
}

const Record<PointReport>& record_of(const PointReport*) {
  static const auto record =
      Record<PointReport>("point")
          .field("point", &PointReport::point, "Its place in the grid; the last axis is fastest.")
          .field("axes", &PointReport::axes)
          .with([](const PointReport& point) -> const Outcome& { return *point.outcome; },
                record_of(static_cast<const Outcome*>(nullptr)))
          .field("whole", &PointReport::whole)
          .field("command", &PointReport::command, "Repeats the point, in the sweep's folder.")
          .field("on_front", &PointReport::on_front, "Whether none is both faster and cheaper.")
          .field("on_room_front", &PointReport::on_room_front,
                 "Whether none is faster, cheaper and leaves more memory free.");
  return record;
}

struct BestWith {
  std::string axis;
  std::string value;
  std::optional<std::size_t> point;
};

std::vector<BestWith> best_with(const SweepReport& sweep) {
  std::vector<BestWith> list;
  for (std::size_t i = 0; i < sweep.ranking->best_with.size(); ++i) {
    const AxisNames& axis = sweep.results->question.axes[i];
    for (std::size_t j = 0; j < axis.values.size(); ++j)
      list.push_back({axis.name, axis.values[j], sweep.ranking->best_with[i][j]});
  }
  return list;
}

const Record<BestWith>& record_of(const BestWith*) {
  static const auto record = Record<BestWith>("best_with", "The best point with a value.")
                                 .field("axis", &BestWith::axis)
                                 .field("value", &BestWith::value)
                                 .field("point", &BestWith::point, "Null: none runs.");
  return record;
}

// A crossing with its axes.
struct BreakEven {
  Crossing crossing;
  AxisNames along;
  AxisNames between;
};

std::vector<BreakEven> break_even(const SweepReport& sweep) {
  const std::vector<AxisNames>& axes = sweep.results->question.axes;
  std::vector<BreakEven> list;
  for (const Crossing& one : crossings_of(*sweep.results, *sweep.ranking))
    list.push_back({one, axes[one.along], axes[one.between]});
  return list;
}

const Record<BreakEven>& record_of(const BreakEven*) {
  using Axis = AxisNames BreakEven::*;
  const auto value = [](Axis axis, std::size_t Crossing::*index) {
    return [axis, index](const BreakEven& one) { return (one.*axis).values[one.crossing.*index]; };
  };
  static const auto record =
      Record<BreakEven>("break_even")
          .field("along", at<&BreakEven::along, &AxisNames::name>, "A numeric axis.")
          .field("between", at<&BreakEven::between, &AxisNames::name>, "The axis of two choices.")
          .field("first", value(&BreakEven::between, &Crossing::first), "It is better up to `low`.")
          .field("then", value(&BreakEven::between, &Crossing::then), "Better from `high` on.")
          .field("low", value(&BreakEven::along, &Crossing::low))
          .field("high", value(&BreakEven::along, &Crossing::high))
          .field("at", at<&BreakEven::crossing, &Crossing::at>, "Where both are equal.")
          .field("unit", at<&BreakEven::crossing, &Crossing::unit>)
          .field("best", at<&BreakEven::crossing, &Crossing::best>,
                 "Whether no other choice is better at `low` or `high`.");
  return record;
}

Record<SweepReport> left_out_group() {
  using internal::Missing;
  const auto missing = [](auto Missing::*member) {
    return [member](const SweepReport& sweep) {
      return internal::missing_of(*sweep.results, *sweep.ranking).*member;
    };
  };
  return Record<SweepReport>()
      .field("unknown", ranked<&Ranking::unknown>,
             "The last points of `ranked`: they run, but their price or energy, by which points "
             "are ordered or which the goal limits, is unknown.")
      .field("off_front", ranked<&Ranking::off_front>,
             "Points without a price, while others have one: they are on no front.")
      .field("devices", missing(&Missing::devices), "Types without a price, or without a power.")
      .field("remedy", missing(&Missing::message), "What to give; empty: nothing is missing.");
}

}  // namespace

const Record<Miss>& record_of(const Miss*) {
  static const auto record =
      Record<Miss>("miss", "A point that runs and does not meet the goal.")
          .field("point", &Miss::point)
          .field("late_s", &Miss::late)
          .field("over_usd", &Miss::over)
          .field("unknown", &Miss::unknown, "Whether its price or energy is unknown.")
          .field("may_meet", &Miss::may_meet, "Whether missed limits lie in its intervals.");
  return record;
}

const Record<Verdict>& record_of(const Verdict*) {
  static const auto record =
      Record<Verdict>("verdict")
          .field("met", &Verdict::met, "Points that meet the goal, best first.")
          .field("may_miss", &Verdict::may_miss, "Whether a limit is in an interval of the first.")
          .field("missed", &Verdict::missed, "Nearest first.");
  return record;
}

const Record<SweepReport>& record_of(const SweepReport*) {
  const auto evidence = [](const SweepReport& sweep) {
    return internal::evidence_of(*sweep.results, *sweep.ranking);
  };
  static const auto record =
      Record<SweepReport>::result(std::string(kSweepSchema), "Results of `study` on a grid.")
          .field("name", asked<&Question::name>)
          .field("description", asked<&Question::description>)
          .field("inputs", asked<&Question::said>, "What the sweep's file says, by key.")
          .field("axes", asked<&Question::axes>)
          .field("searched", asked<&Question::searched>, "Whether strategies were searched for.")
          .field("train", asked<&Question::train>, "Length of the training.")
          .field("work", ranked<&Ranking::work>, "The work that `whole` is about.")
          .field("ranked_by", asked<&Question::rank>)
          .field("goal", asked<&Question::goal>)
          .field("sensitivities", asked<&Question::sensitivities>, "Whether points have them.")
          .field("points", [](const SweepReport& sweep) { return sweep.results->outcomes.size(); })
          .field("done", at<&SweepReport::results, &Results::done>, "Points with a result.")
          .field("ranked", ranked<&Ranking::ranked>, "Points that run, best first.")
          .group("left_out", left_out_group())
          .field("overlapping_the_best", ranked<&Ranking::overlapping>,
                 "Number of points whose interval overlaps that of the first.")
          .field("evidence", evidence, "Parameters behind the points that were not measured.")
          .field("best_with", best_with)
          .field("break_even", break_even)
          .field("verdict", ranked<&Ranking::verdict>)
          .field("closest", ranked<&Ranking::closest>, "If nothing runs, the closest point.")
          .field("results", points_of);
  return record;
}

std::string sweep_json(const Results& results, const Ranking& ranking) {
  return record::text_of(record::write(SweepReport{&results, &ranking}), 1);
}

namespace {

std::vector<Worth> worth_of(const Outcome& outcome) {
  if (!outcome.figures) return {};
  return outcome.figures->worth.value_or(std::vector<Worth>());
}

std::string name_of(const Worth& worth) {
  return worth.speed + (worth.device ? " " + *worth.device : "");
}

// Numbers become texts as JSON has them: "1.0".
void write_numbers(Json& json) {
  if (json.is_number_float())
    json = json.dump();
  else if (json.is_structured())
    for (Json& part : json) write_numbers(part);
}

std::vector<record::Column> point_columns() {
  std::vector<record::Column> columns;
  const auto add = [&](const std::string& part, std::initializer_list<const char*> keys) {
    for (const char* key : keys) columns.push_back({key, part + key, " "});
  };
  add("", {"point", "status", "model", "cluster", "strategy"});
  add("step/", {"devices"});
  for (const std::string key : {"time_s", "low_s", "high_s"})
    columns.push_back({key == "time_s" ? "step_s" : "step_" + key, "step/" + key});
  add("step/", {"mfu"});
  add("whole/", {"tokens_per_s", "samples_per_s"});
  add("step/", {"peak_bytes"});
  add("whole/", {"headroom_bytes"});
  add("", {"work"});
  add("whole/", {"time_s", "low_s", "high_s", "usd", "kwh", "co2_kg"});
  add("step/", {"hosts_without_power"});
  add("whole/", {"tokens_per_usd"});
  add("", {"on_front", "on_room_front"});
  add("step/", {"tight"});
  add("", {"missing_bytes", "why"});
  add("whole/", {"usd_low", "usd_high"});
  add("step/evidence/", {"unmeasured_share"});
  columns.push_back({"evidence", "step/evidence/remarks"});
  add("step/", {"without_price"});
  add("", {"command"});
  return columns;
}

}  // namespace

std::string sweep_csv(const Results& results, const Ranking& ranking) {
  std::vector<record::Column> columns = point_columns();
  std::map<std::string, std::string> speeds;  // name -> place in the rows
  const std::vector<PointReport> points = points_of({&results, &ranking});
  for (const PointReport& point : points)
    for (const Worth& one : worth_of(*point.outcome)) speeds[name_of(one)];
  for (auto& [name, place] : speeds) {
    place = fmt::format("speed {}", columns.size());
    columns.push_back({"elasticity of " + name, place + "/elasticity"});
    columns.push_back({"step_s at 10 percent more " + name, place + "/time_s_at_10_percent_more"});
  }
  // Names of axes are the user's: they may be those of other columns.
  std::vector<record::Column> axes;
  for (const AxisNames& axis : results.question.axes) {
    const bool is_taken =
        std::ranges::find(columns, axis.name, &record::Column::name) != columns.end();
    axes.push_back({(is_taken ? "axis " : "") + axis.name, fmt::format("axis {}", axes.size())});
  }
  columns.insert(columns.begin() + 1, axes.begin(), axes.end());

  std::vector<Json> rows;
  for (const PointReport& point : points) {
    Json& row = rows.emplace_back(record::write(point));
    for (std::size_t i = 0; const auto& [axis, value] : point.axes) row[axes[i++].place] = value;
    row["work"] = yaml::name_of(ranking.work);
    for (const Worth& one : worth_of(*point.outcome))
      row[speeds[name_of(one)]] = record::write(one);
    write_numbers(row);
  }
  return record::csv(columns, rows);
}

}  // namespace foreshard::sweep
