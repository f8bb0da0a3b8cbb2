// Reads and checks a sweep in YAML (sweep.h), for `foreshard study`.
#include "sim/sweep/sweep.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/grouped.h"
#include "base/limits.h"
#include "base/yaml/given.h"

#include "sim/study/expense.h"
#include "sim/study/study.h"
#include "sim/sweep/grid.h"

namespace foreshard::sweep {
namespace {

namespace fs = std::filesystem;

std::string fault_in_axis(const Axis& axis) {
  const bool by_key = !axis.key.empty() || !axis.values.empty();
  if (by_key == !axis.choices.empty())
    return "an axis needs either 'key' with 'values', or 'choices'";
  if (by_key && axis.key.empty()) return "this axis has values, but no 'key'";
  if (by_key && axis.values.empty()) return "this axis has a key, but no 'values'";
  if (!by_key && axis.name.empty()) return "this axis has 'choices', but no 'name'";
  std::set<std::string> seen;
  for (const Choice& choice : axis.choices)
    if (!seen.insert(choice.name).second)
      return fmt::format("this axis has two choices '{}'", choice.name);
  for (const yaml::Written& value : axis.values)
    if (!seen.insert(value.text).second)
      return fmt::format("this axis has the value {} twice", value.text);
  return "";
}

// "cluster.nodes" -> "nodes".
std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

Status fault_in_axes(std::vector<Axis>& axes, const yaml::Loader& loader) {
  std::set<std::string> names;
  const std::int64_t most = limits::raised(limits::kPoints);
  std::int64_t points = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = axes[i];
    const std::string at = fmt::format("axes.{}", i);
    if (axis.name.empty()) axis.name = last_part(axis.key);
    if (!names.insert(axis.name).second)
      return loader.error_at(at, fmt::format("two axes are called '{}'", axis.name),
                             "give one of them another 'name'");
    if (axis.size() > most / points)
      return loader.error_at(
          at, fmt::format("the grid has more than {} points", grouped(most)),
          fmt::format("leave out values, or make several sweeps of it; {}", limits::kRemedy));
    points *= axis.size();
  }
  return {};
}

// Whether a search overwrites this key of a strategy: its knobs, except those that it takes from
// the study if its space does not name them, and the keys of a schedule.
bool is_searched(std::string_view key) {
  constexpr std::array<std::string_view, 9> kTakenOver{
      "global_batch",     "rank_order",     "token_dispatcher",
      "overlap_experts",  "shard_replicas", "recompute_layers",
      "context_exchange", "context_heads",  "recompute_parts"};
  constexpr std::array<std::string_view, 3> kOfSchedule{"schedule_actions", "schedule_file",
                                                        "pass_times"};
  const auto is_one = [&](const auto& keys) { return std::ranges::find(keys, key) != keys.end(); };
  return is_one(kOfSchedule) ||
         (search::knobs_of({}).contains(std::string(key)) && !is_one(kTakenOver));
}

// A key that the sweep sets, and which part of the sweep sets it.
struct SetKey {
  std::string at;     // its place in the sweep's file
  std::string owner;  // "axis nodes", or "set"
};

// "levels[0].bandwidth" -> "levels.0.bandwidth".
std::string with_dots(const std::string& key) {
  std::string result;
  for (const char c : key)
    if (c != ']') result += c == '[' ? '.' : c;
  return result;
}

class Keys {
 public:
  Keys(const yaml::Loader& loader, bool searched) : loader_(loader), searched_(searched) {}

  Status add(const std::string& written, const SetKey& by) {
    const std::string key = with_dots(written);
    if (key == "train")
      return loader_.error_at(by.at, "the length of the training is a key of the sweep itself",
                              "write train: 2T tokens beside the axes");
    constexpr std::string_view kStrategy = "strategy.";
    if (searched_ && key.starts_with(kStrategy)) {
      const std::string_view inner = std::string_view(key).substr(kStrategy.size());
      const std::string_view first = inner.substr(0, inner.find('.'));
      if (is_searched(first))
        return loader_.error_at(by.at, fmt::format("the search chooses {} itself", key),
                                fmt::format("give search.space.{}, or leave out search", first));
    }
    for (const auto& [other, owner] : keys_) {
      if (owner.owner == by.owner) continue;
      if (other == key)
        return loader_.error_at(by.at, fmt::format("{} sets {} too", owner.owner, key),
                                "set it in one place");
      if (other.starts_with(key + "."))
        return loader_.error_at(
            by.at, fmt::format("{} would undo {}, which {} sets", key, other, owner.owner),
            owner.owner == "set" ? "set it in each value instead"
                                 : "put this axis before that one");
    }
    keys_.emplace(key, by);
    return {};
  }

 private:
  const yaml::Loader& loader_;
  bool searched_;
  std::map<std::string, SetKey> keys_;
};

Status fault_in_keys(const Sweep& sweep, const yaml::Loader& loader) {
  Keys keys(loader, sweep.search.has_value());
  for (const auto& [key, value] : sweep.set)
    FORESHARD_TRY(keys.add(key, {.at = "set." + key, .owner = "set"}));
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    const Axis& axis = sweep.axes[i];
    const std::string at = fmt::format("axes.{}", i);
    const std::string owner = "axis " + axis.name;
    if (!axis.key.empty()) FORESHARD_TRY(keys.add(axis.key, {.at = at + ".key", .owner = owner}));
    for (std::size_t j = 0; j < axis.choices.size(); ++j)
      for (const auto& [key, value] : axis.choices[j].set)
        FORESHARD_TRY(
            keys.add(key, {.at = fmt::format("{}.choices.{}.set.{}", at, j, key), .owner = owner}));
  }
  return {};
}

// The training that the base study itself states. Its other parts may be complete only with what
// the sweep sets, so stand-ins replace them. If the study cannot be read even so, loading the first
// point reports the reason.
std::optional<std::string> train_of_study(const LoadedSweep& sweep, const yaml::Options& options) {
  if (sweep.sweep.study.empty() || sweep.sweep.study == "-") return std::nullopt;
  std::vector<yaml::Override> parts{
      {"model", "{name: none, layers: 1, hidden: 1, heads: 1, vocabulary: 1, sequence: 1}"},
      {"strategy", "{global_batch: 1}"}};
  if (sweep.sweep.cluster)
    parts.push_back({"cluster", seen_from_here(*sweep.sweep.cluster, sweep.folder)});
  yaml::Loader loader({.catalogue = options.catalogue, .overrides = std::move(parts)});
  const std::string name = seen_from_here({sweep.sweep.study}, sweep.folder);
  const auto study = yaml::is_file_name(name) ? loader.read_file<study::Study>(name)
                                              : loader.read_ref<study::Study>(name);
  return study ? study->train : std::nullopt;
}

// An error, with its place in the sweep, if the base study is a path to a file that does not exist;
// it is reported before any point is made.
Status fault_in_study(const LoadedSweep& sweep, const yaml::Loader& loader) {
  const std::string& name = sweep.sweep.study;
  const bool is_path = yaml::is_file_name(name) || name.find('/') != std::string::npos;
  if (!is_path) return {};
  const fs::path path = seen_from_here({name}, sweep.folder);
  std::error_code status;
  if (fs::exists(path, status)) return {};
  const std::string from =
      yaml::is_file_name(name) ? "the folder of this file" : "the working directory";
  return loader.error_at("study", fmt::format("there is no file '{}'", path.string()),
                         fmt::format("a path here is relative to {}; a name without folder and "
                                     "suffix is one of the catalogue",
                                     from));
}

// An error if the user passes a study, which a sweep would name, in place of a sweep.
std::optional<Error> fault_of_study(const std::string& name, bool is_file,
                                    const yaml::Options& options) {
  if (name == "-") return std::nullopt;
  yaml::Loader loader({.catalogue = options.catalogue, .overrides = {}});
  const auto study =
      is_file ? loader.read_file<study::Study>(name) : loader.read_ref<study::Study>(name);
  if (!study) return std::nullopt;
  return Error{
      Error::Code::kInvalidInput,
      fmt::format("{0}: is a study, not a grid of them: it has no axes; foreshard simulate "
                  "{0} predicts it, and a file with 'study: {0}' and 'axes' varies it",
                  name)};
}

Status fault_in_goal(const Sweep& sweep, const yaml::Loader& loader) {
  if (!sweep.goal) return {};
  const Goal& goal = *sweep.goal;
  if (goal.train && sweep.train && *goal.train != *sweep.train)
    return loader.error_at(
        "goal.train",
        fmt::format("the goal trains '{}', the sweep '{}'", *goal.train, *sweep.train),
        "leave out one of them");
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
      {"usd", Measure::kUsd, "its bill: rent or what is written off, and electricity"},
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
                    "How long the whole training is, for its days, energy and USD: 2T tokens "
                    "(default: the "
                    "study's).")
          .optional("rank", &Sweep::rank, "What points are ordered by (default: time).")
          .optional("goal", &Sweep::goal, "Which of the points is wanted.")
          .optional("sensitivities", &Sweep::sensitivities,
                    "Whether to tell of each point what a faster part of its machine would buy: "
                    "arithmetic, memory, links, each 10 % faster alone. Takes a dozen simulations "
                    "more.");
  return table;
}

Result<LoadedSweep> load_sweep(const std::string& name, const yaml::Options& options) {
  yaml::Loader loader(options);
  std::error_code status;
  const bool is_file = name == "-" || yaml::is_file_name(name) || fs::exists(name, status);
  auto read = is_file ? loader.read_file<Sweep>(name) : loader.read_ref<Sweep>(name);
  if (!read) {
    if (auto fault = fault_of_study(name, is_file, options)) return *std::move(fault);
    return read.error();
  }
  Sweep sweep = *std::move(read);
  if (sweep.study.empty() && !(sweep.cluster && sweep.model && sweep.strategy))
    return loader.error_at("", "the sweep has no study",
                           "give 'study', or all of 'cluster', 'model' and 'strategy'");
  FORESHARD_TRY(fault_in_axes(sweep.axes, loader));
  FORESHARD_TRY(fault_in_lengths(sweep, loader));
  FORESHARD_TRY(fault_in_keys(sweep, loader));
  FORESHARD_TRY(fault_in_goal(sweep, loader));
  if (sweep.goal && sweep.goal->train) sweep.train = sweep.goal->train;
  const fs::path file = is_file ? fs::path(name) : fs::path(loader.inputs().front().path);
  LoadedSweep loaded{.name = name == "-" ? "stdin" : file.stem().string(),
                     .folder = name == "-" ? fs::path() : file.parent_path(),
                     .file = name == "-" ? "stdin" : file.filename().string(),
                     .sweep = std::move(sweep)};
  FORESHARD_TRY(fault_in_study(loaded, loader));
  auto& train = loaded.sweep.train;
  if (!train) train = train_of_study(loaded, options);
  if (loaded.sweep.goal && !train)
    return loader.error_at("goal", "a goal needs to know how long the training is",
                           "add train: 2T tokens");
  return loaded;
}

}  // namespace foreshard::sweep
