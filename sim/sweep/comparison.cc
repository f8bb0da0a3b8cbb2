// Compares the results of two sweeps (comparison.h), for `foreshard compare`.
#include "sim/sweep/comparison.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace foreshard::sweep {
namespace {

// The differences between two maps of keys to values, sorted by key.
std::vector<Difference> differing(const std::map<std::string, std::string>& a,
                                  const std::map<std::string, std::string>& b) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  std::vector<Difference> differences;
  const auto value_in = [](const auto& said, const std::string& key) {
    const auto found = said.find(key);
    return found == said.end() ? std::string() : found->second;
  };
  for (const std::string& key : keys)
    if (value_in(a, key) != value_in(b, key))
      differences.push_back({key, value_in(a, key), value_in(b, key)});
  return differences;
}

// An axis that both have: its index on each side.
struct CommonAxis {
  std::size_t in_a;
  std::size_t in_b;
};
std::vector<CommonAxis> common_axes(const Results& a, const Results& b) {
  std::vector<CommonAxis> common;
  for (std::size_t i = 0; i < a.question.axes.size(); ++i)
    for (std::size_t j = 0; j < b.question.axes.size(); ++j)
      if (a.question.axes[i].name == b.question.axes[j].name) common.push_back({i, j});
  return common;
}

// Combination of values of some axes -> best point: one that runs before one that does not, ties in
// the order of the grid.
using BestPoints = std::map<std::vector<std::string>, std::size_t>;
BestPoints best_points(const Results& results, const std::vector<std::size_t>& axes) {
  BestPoints best;
  const auto add = [&](std::size_t point) {
    const auto position = position_of(static_cast<std::int64_t>(point), results.question.axes);
    std::vector<std::string> values;
    values.reserve(axes.size());
    for (const std::size_t axis : axes)
      values.push_back(results.question.axes[axis].values[position[axis]]);
    best.emplace(std::move(values), point);
  };
  for (const std::size_t point : ranking_of(results).ranked) add(point);
  for (std::size_t i = 0; i < results.outcomes.size(); ++i)
    if (results.outcomes[i]) add(i);
  return best;
}

// The inputs of a point: names, settings that a search made, and its values of axes.
std::map<std::string, std::string> made_from(const Results& results, std::size_t point) {
  const Outcome& outcome = *results.outcomes[point];
  std::map<std::string, std::string> inputs{
      {"model", outcome.model}, {"cluster", outcome.cluster}, {"strategy", outcome.strategy}};
  for (const auto& [path, value] : outcome.settings) inputs[path] = value;
  const auto position = position_of(static_cast<std::int64_t>(point), results.question.axes);
  for (std::size_t i = 0; i < position.size(); ++i) {
    const AxisNames& axis = results.question.axes[i];
    inputs["axis " + axis.name] = axis.values[position[i]];
  }
  return inputs;
}

// The inputs that a sweep has for all its points.
std::map<std::string, std::string> asked_by(const Question& question) {
  std::map<std::string, std::string> asked = question.said;
  asked["rank"] = yaml::name_of(question.rank);
  if (question.sensitivities) asked["sensitivities"] = "true";
  if (!question.goal) return asked;
  const Goal& goal = *question.goal;
  asked["goal.minimise"] = yaml::name_of(goal.minimise);
  if (goal.within) asked["goal.within"] = format(*goal.within);
  if (goal.budget) asked["goal.budget"] = format(*goal.budget);
  return asked;
}

Work common_work_of(const Results& a, const Results& b) {
  const Work of_a = work_of(a);
  const Work of_b = work_of(b);
  if (of_a == of_b) return of_a;
  // If one of them has no training, both have a token, or a sample.
  const auto has_tokens = [](const Results& results) {
    return std::ranges::all_of(results.outcomes, [](const auto& one) {
      return !one || !one->figures || one->figures->tokens > 0;
    });
  };
  return has_tokens(a) && has_tokens(b) ? Work::kToken : Work::kSample;
}

std::optional<double> effect_of(const Outcome& a, const Outcome& b, Work work, Measure by) {
  if (!a.figures || !b.figures) return std::nullopt;
  const double of_a = measure_of(figures_of(a, work), by);
  const double of_b = measure_of(figures_of(b, work), by);
  if (!std::isfinite(of_a) || !std::isfinite(of_b) || of_a == 0) return std::nullopt;
  return of_b / of_a - 1;
}

// Sort key of a pair: largest if only one side runs, smallest if both sides are the same.
double weight_of(const Results& a, const Results& b, const Pair& pair) {
  if (pair.effect) return std::abs(*pair.effect);
  const bool one_runs =
      a.outcomes[pair.a]->figures.has_value() != b.outcomes[pair.b]->figures.has_value();
  return one_runs ? std::numeric_limits<double>::infinity() : -1;
}

std::vector<std::string> left_out_of(const Results& a, const Results& b,
                                     const std::vector<CommonAxis>& common) {
  std::vector<std::string> left_out;
  const auto add = [&](const AxisNames& one, const AxisNames& other, const char* side) {
    for (const std::string& value : one.values)
      if (std::ranges::find(other.values, value) == other.values.end())
        left_out.push_back(fmt::format("{} {} (of {})", one.name, value, side));
  };
  for (const auto& [in_a, in_b] : common) {
    add(a.question.axes[in_a], b.question.axes[in_b], "A");
    add(b.question.axes[in_b], a.question.axes[in_a], "B");
  }
  return left_out;
}

}  // namespace

Result<Comparison> compare(const Results& a, const Results& b) {
  const std::vector<CommonAxis> common = common_axes(a, b);
  Comparison comparison{.work = common_work_of(a, b),
                        .by = a.question.rank,
                        .axes = {},
                        .inputs = differing(asked_by(a.question), asked_by(b.question)),
                        .pairs = {},
                        .left_out = left_out_of(a, b, common)};
  std::vector<std::size_t> of_a;
  std::vector<std::size_t> of_b;
  for (const auto& [in_a, in_b] : common) {
    comparison.axes.push_back(a.question.axes[in_a].name);
    of_a.push_back(in_a);
    of_b.push_back(in_b);
  }
  const BestPoints best_a = best_points(a, of_a);
  const BestPoints best_b = best_points(b, of_b);
  for (const auto& [values, point] : best_a) {
    const auto other = best_b.find(values);
    if (other == best_b.end()) continue;
    const Outcome& one = *a.outcomes[point];
    const Outcome& beside = *b.outcomes[other->second];
    comparison.pairs.push_back(
        {.values = values,
         .a = point,
         .b = other->second,
         .effect = effect_of(one, beside, comparison.work, comparison.by),
         .inputs = differing(made_from(a, point), made_from(b, other->second))});
  }
  if (comparison.pairs.empty())
    return Error{
        Error::Code::kInvalidInput,
        fmt::format("nothing to compare: both have the {} {}, but no value of {} in common "
                    "at which points of both are done",
                    common.size() == 1 ? "axis" : "axes", join(comparison.axes, ", "),
                    common.size() == 1 ? "it" : "them")};
  std::ranges::sort(comparison.pairs, {}, &Pair::a);
  std::ranges::stable_sort(comparison.pairs, std::greater{},
                           [&](const Pair& pair) { return weight_of(a, b, pair); });
  return comparison;
}

}  // namespace foreshard::sweep
