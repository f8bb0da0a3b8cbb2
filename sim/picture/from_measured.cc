// Pictures of runs that fail, of tables of measurements and of comparisons (from_measured.h).
#include "sim/picture/internal/from_measured.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "base/quantity.h"

#include "sim/picture/chart.h"

namespace foreshard::picture {
namespace {

// Distributions of `of` the time of a history, by policy.
std::string draw_histories(const Json& result, const std::string& what, const std::string& unit,
                           const std::function<double(double)>& of) {
  Distributions chart{.title = what + " of " + result.at("name").get<std::string>(),
                      .x_axis = what + ", " + unit,
                      .y_axis = "histories with at most this, %"};
  if (!result.at("without_rate").empty())
    chart.title += ", without causes whose rate nobody has counted";
  for (const Json& policy : result.at("policies")) {
    if (policy.at("times_s_at_least").is_null()) continue;
    Distributions::Series series{.name = policy.at("policy").get<std::string>()};
    for (const Json& time : policy.at("times_s_at_least"))
      series.values.push_back(of(checked_amount(time, "time of a history")));
    std::ranges::sort(series.values);
    for (const char* mark : {"p10", "median", "p90"}) {
      const double value = of(amount(policy.at("time_s_at_least"), mark));
      const std::string name = fmt::format("{}, {} of time", series.name, mark);
      series.marks.push_back({name, value, fmt::format("{}: {:.4g} {}", name, value, unit)});
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) throw std::out_of_range("nothing is known of any of its policies");
  return draw(chart);
}

// The groups with the most points, by name; all others are one.
class Groups {
 public:
  explicit Groups(const std::vector<std::string>& of_points) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : of_points) ++counts[name];
    for (const auto& [name, count] : counts) names_.push_back(name);
    if (names_.size() <= kMostGroups) return;
    std::ranges::stable_sort(names_, std::greater(),
                             [&](const std::string& name) { return counts[name]; });
    names_.resize(kMostGroups - 1);
    std::ranges::sort(names_);
    names_.emplace_back("others");
  }
  std::size_t of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    return static_cast<std::size_t>(std::min(found, names_.end() - 1) - names_.begin());
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// Rows of one quantity, by table; of a single table, by framework.
std::string draw_rows(const Json& result, const char* quantity, const char* unit, double scale) {
  std::vector<const Json*> rows;
  std::map<std::string, bool> files;
  for (const Json& row : result.at("rows"))
    if (row.at("quantity") == quantity && row.at("status") == "ok" &&
        amount_if_known(row, "measured").value_or(0) > 0 &&
        amount_if_known(row, "predicted").value_or(0) > 0) {
      rows.push_back(&row);
      files[row.at("file").get<std::string>()] = true;
    }
  if (rows.empty())
    throw std::out_of_range(fmt::format("it has no measured {} beside a prediction", quantity));
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const Json* row : rows)
    names.push_back(files.size() > 1
                        ? std::filesystem::path(row->at("file").get<std::string>()).stem().string()
                        : row->value("framework", std::string("no framework")));
  const Groups groups(names);
  Agreement chart{
      .title = fmt::format("Predicted and measured {} of {} rows", quantity, rows.size()),
      .unit = unit,
      .groups = groups.names()};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = *rows[i];
    const auto scaled = [&](const char* key) {
      return amount_if_known(row, key).value_or(0) / scale;
    };
    Agreement::Point point{.group = groups.of(names[i]),
                           .measured = scaled("measured"),
                           .predicted = scaled("predicted")};
    point.low = scaled("low") > 0 ? scaled("low") : point.predicted;
    point.high = scaled("high") > 0 ? scaled("high") : point.predicted;
    const auto id = row.at("id").get<std::string>();
    point.meaning = {
        id, point.predicted,
        fmt::format("{} ({}): predicted {:.4g} {} ({:.4g} to {:.4g}), measured {:.4g}", id,
                    names[i], point.predicted, unit, point.low, point.high, point.measured)};
    chart.points.push_back(std::move(point));
  }
  return draw(chart);
}

struct Style {
  const char* kind;
  const char* style;
};

}  // namespace

std::string draw_days(const Json& result) {
  constexpr double kSecondsPerDay = 86400;
  return draw_histories(result, "Time", "days", [](double time) { return time / kSecondsPerDay; });
}

std::string draw_goodput(const Json& result) {
  const double ideal = amount(result, "ideal_s");
  return draw_histories(result, "Goodput", "%",
                        [=](double time) { return time > 0 ? 100 * ideal / time : 0; });
}

std::string draw_accuracy(const Json& result) {
  return draw_rows(result, "time", "s", 1);
}

std::string draw_memory_accuracy(const Json& result) {
  return draw_rows(result, "memory", "GiB", kGiB);
}

std::string draw_two_steps(const Json& result) {
  StackedBars chart{.title = "The steps of both by parts", .unit = "s"};
  for (const std::string side : {"a", "b"}) {
    StackedBars::Bar bar{.name = side == "a" ? "A" : "B"};
    for (const Json& term : result.at("terms")) {
      const auto part = term.at("part").get<std::string>();
      if (amount(term, "a_s") + amount(term, "b_s") > 0)
        bar.parts.push_back({part, part, amount(term, (side + "_s").c_str())});
    }
    chart.bars.push_back(std::move(bar));
  }
  return draw(chart);
}

std::string draw_measured_step(const Json& result) {
  constexpr std::array<Style, 5> kStyles{{{"kernel", "compute"},
                                          {"communication", "tp_comm"},
                                          {"waiting", "pipeline_bubble"},
                                          {"host", "host"},
                                          {"idle", "whole"}}};
  StackedBars chart{.title = "The step of " + result.at("program").get<std::string>() +
                             " by what accounts for it",
                    .unit = "ms"};
  for (const std::string side : {"predicted", "measured"}) {
    StackedBars::Bar bar{.name = side};
    for (const auto& [kind, style] : kStyles) {
      double booked = 0;
      for (const Json& row : result.at("kinds"))
        if (row.at("kind") == kind)
          booked += amount_if_known(row.at("booked"), (side + "_s").c_str()).value_or(0);
      bar.parts.push_back({kind, style, 1e3 * booked});
    }
    chart.bars.push_back(std::move(bar));
  }
  return draw(chart);
}

std::string draw_tasks(const Json& result) {
  std::vector<const Json*> rows;
  std::vector<std::string> kinds;
  for (const Json& row : result.at("residuals"))
    if (amount_if_known(row.at("each"), "measured_s").value_or(0) > 0 &&
        amount_if_known(row.at("each"), "predicted_s").value_or(0) > 0) {
      rows.push_back(&row);
      kinds.push_back(row.at("kind").get<std::string>());
    }
  const Groups groups(kinds);
  Agreement chart{.title = "Single tasks of " + result.at("program").get<std::string>(),
                  .unit = "ms",
                  .groups = groups.names()};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double measured = 1e3 * amount(rows[i]->at("each"), "measured_s");
    const double predicted = 1e3 * amount(rows[i]->at("each"), "predicted_s");
    const auto name = rows[i]->at("name").get<std::string>();
    chart.points.push_back({.group = groups.of(kinds[i]),
                            .measured = measured,
                            .predicted = predicted,
                            .low = predicted,
                            .high = predicted,
                            .meaning = {name, predicted,
                                        fmt::format("{}: predicted {:.4g} ms, measured {:.4g} ms",
                                                    name, predicted, measured)}});
  }
  return draw(chart);
}

}  // namespace foreshard::picture
