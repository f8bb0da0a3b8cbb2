#include "sim/sweep/sweep.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/grouped.h"
#include "base/yaml/given.h"

#include "sim/study/expense.h"

namespace foreshard::sweep {
namespace {

namespace fs = std::filesystem;

std::string fault_in_axis(const Axis& axis) {
  const bool by_key = !axis.key.empty() || !axis.values.empty();
  if (by_key == !axis.choices.empty()) return "needs either 'key' with 'values', or 'choices'";
  if (by_key && (axis.key.empty() || axis.values.empty())) return "needs 'key' and 'values'";
  if (!by_key && axis.name.empty()) return "needs a 'name' beside 'choices'";
  std::set<std::string> seen;
  for (const Choice& choice : axis.choices)
    if (!seen.insert(choice.name).second) return fmt::format("has two choices '{}'", choice.name);
  for (const yaml::Written& value : axis.values)
    if (!seen.insert(value.text).second) return fmt::format("has the value {} twice", value.text);
  return "";
}

// "cluster.nodes" -> "nodes".
std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

Status fault_in_axes(std::vector<Axis>& axes, const yaml::Loader& loader) {
  std::set<std::string> names;
  std::int64_t points = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = axes[i];
    const std::string at = fmt::format("axes.{}", i);
    if (axis.name.empty()) axis.name = last_part(axis.key);
    if (!names.insert(axis.name).second)
      return loader.error_at(at, fmt::format("two axes are called '{}'", axis.name),
                             "give one of them another 'name'");
    if (axis.size() > kMostPoints / points)
      return loader.error_at(at,
                             fmt::format("the grid has more than {} points", grouped(kMostPoints)),
                             "leave out values, or make several sweeps of it");
    points *= axis.size();
  }
  return {};
}

Status fault_in_goal(const Sweep& sweep, const yaml::Loader& loader) {
  if (!sweep.goal) return {};
  const Goal& goal = *sweep.goal;
  if (goal.train && sweep.train && *goal.train != *sweep.train)
    return loader.error_at(
        "goal.train",
        fmt::format("the goal trains '{}', the sweep '{}'", *goal.train, *sweep.train),
        "leave out one of them");
  if (!goal.train && !sweep.train)
    return loader.error_at("goal", "a goal needs to know how long the training is",
                           "add train: 2T tokens");
  if (sweep.rank)
    return loader.error_at("rank", "a goal says itself what is minimised",
                           "leave out rank, or the goal");
  return {};
}

Status fault_in_lengths(const Sweep& sweep, const yaml::Loader& loader) {
  const auto check = [&](const std::optional<std::string>& length, const char* at) -> Status {
    if (!length) return {};
    const auto read = study::parse_training_length(*length);
    return read ? Status() : loader.error_at(at, read.error().message);
  };
  FORESHARD_TRY(check(sweep.train, "train"));
  return sweep.goal ? check(sweep.goal->train, "goal.train") : Status();
}

}  // namespace

std::int64_t Axis::size() const {
  return std::ssize(choices) + std::ssize(values);
}

const yaml::Names<Measure>& yaml_names(const Measure*) {
  static const yaml::Names<Measure> names{
      {"time", Measure::kTime, "time of the training, or of a token"},
      {"usd", Measure::kUsd, "its rent"},
      {"kwh", Measure::kKwh, "its energy"},
  };
  return names;
}

const yaml::Table<Choice>& yaml_table(const Choice*) {
  static const auto table =
      yaml::Table<Choice>("choice", "A value of an axis that sets several keys at once.")
          .required("name", &Choice::name, "What results call it.", yaml::non_empty())
          .required("set", &Choice::set,
                    "Values of the study by the paths of their keys, as --set takes them.");
  return table;
}

const yaml::Table<Axis>& yaml_table(const Axis*) {
  static const auto table =
      yaml::Table<Axis>("axis", "What differs between points: a key and its values, or choices.")
          .optional("name", &Axis::name,
                    "What results call it (default: the last part of the key).")
          .optional("key", &Axis::key, "Path of a key of the study, as --set takes it.")
          .optional("values", &Axis::values, "Values of that key.")
          .optional("choices", &Axis::choices, "Instead of key and values: named sets of values.")
          .check("", fault_in_axis);
  return table;
}

const yaml::Table<PointSearch>& yaml_table(const PointSearch*) {
  static const auto table =
      yaml::Table<PointSearch>("point search", "How the strategy of each point is found.")
          .optional("space", &PointSearch::space, "Which strategies are tried.")
          .optional("simulate", &PointSearch::simulate,
                    "How many of the best estimates are "
                    "simulated.",
                    yaml::at_least(1))
          .optional("certify", &PointSearch::certify,
                    "Most further simulations, of strategies that might still be faster.",
                    yaml::at_least(0));
  return table;
}

const yaml::Table<Goal>& yaml_table(const Goal*) {
  static const auto table =
      yaml::Table<Goal>("goal", "Which of the points is wanted.")
          .optional("train", &Goal::train, "How long the training is (default: the sweep's).")
          .optional("within", &Goal::within, "Longest time that it may take: 60 d.",
                    yaml::positive())
          .optional("budget", &Goal::budget, "Most money that it may cost: 2.5e6 USD.",
                    yaml::positive())
          .optional("minimise", &Goal::minimise, "What the points that keep both are ordered by.");
  return table;
}

const yaml::Table<Sweep>& yaml_table(const Sweep*) {
  static const auto table =
      yaml::Table<Sweep>("sweep", "A grid of questions over one study.")
          .folder("sweeps")
          .optional("description", &Sweep::description,
                    "A sentence on what it asks, shown in results.")
          .optional("study", &Sweep::study,
                    "The base study: a name of the catalogue or a path. The four parts below take "
                    "the place of its own, or make a study without it.")
          .optional("cluster", &Sweep::cluster, "A cluster, as in a study.")
          .optional("model", &Sweep::model, "A model, as in a study.")
          .optional("strategy", &Sweep::strategy, "A strategy, as in a study.")
          .optional("communication", &Sweep::communication, "A communication library's numbers.")
          .optional("set", &Sweep::set,
                    "Values for all points by the paths of their keys, as --set takes them.")
          .required("axes", &Sweep::axes, "What differs between points.", yaml::non_empty())
          .optional("search", &Sweep::search,
                    "Finds the strategy of each point (default: the study's own is simulated).")
          .optional("train", &Sweep::train,
                    "How long the whole training is, for its days, energy and rent: 2T tokens.")
          .optional("rank", &Sweep::rank, "What points are ordered by (default: time).")
          .optional("goal", &Sweep::goal, "Which of the points is wanted.");
  return table;
}

Result<LoadedSweep> load_sweep(const std::string& name, const yaml::Options& options) {
  yaml::Loader loader(options);
  std::error_code status;
  const bool is_file = name == "-" || yaml::is_file_name(name) || fs::exists(name, status);
  FORESHARD_ASSIGN(Sweep sweep,
                   is_file ? loader.read_file<Sweep>(name) : loader.read_ref<Sweep>(name));
  if (sweep.study.empty() && !(sweep.cluster && sweep.model && sweep.strategy))
    return loader.error_at("", "the sweep has no study",
                           "give 'study', or all of 'cluster', 'model' and 'strategy'");
  FORESHARD_TRY(fault_in_axes(sweep.axes, loader));
  FORESHARD_TRY(fault_in_lengths(sweep, loader));
  FORESHARD_TRY(fault_in_goal(sweep, loader));
  if (sweep.goal && sweep.goal->train) sweep.train = sweep.goal->train;
  const fs::path file = is_file ? fs::path(name) : fs::path(loader.inputs().front().path);
  return LoadedSweep{.name = name == "-" ? "stdin" : file.stem().string(),
                     .folder = name == "-" ? fs::path() : file.parent_path(),
                     .sweep = std::move(sweep)};
}

}  // namespace foreshard::sweep
