/// \file
/// A sweep: a grid of questions over one base study, as YAML says it.
///
///     study: llama2-70b-h100-128        # a catalogue name or a path; or its parts, written out
///     train: 2T tokens
///     axes:
///       - {key: cluster.nodes, values: [16, 32, 64]}
///       - name: adapters
///         choices:
///           - {name: 400G, set: {cluster.node.nics.bandwidth: 400 Gbit/s}}
///           - {name: 800G, set: {cluster.node.nics.bandwidth: 800 Gbit/s}}
///     search: {space: {level: 1}, simulate: 4, certify: 0}
///     goal: {within: 60 d, minimise: usd}
///     sensitivities: true
///
/// A point is one value of each axis; the points are the product of the axes. What a value sets is
/// what `--set` takes, so that whatever a study can say can be an axis, and values that belong
/// together are one choice. With `search` the strategy of each point is found (sim/search), else
/// the study's own is simulated.
///
/// Nothing may be set twice: a key has one axis, or `set`, or neither; a larger part stands before
/// what is set inside it. Keys of the strategy that a search chooses are none of an axis.
///
/// Paths of files are relative to the file of the sweep. Where a value (of an axis, of `set` or of
/// a part) or a value inside its braces or brackets ends in .yaml, .yml, .json, .onnx or .csv, it
/// is taken for such a path, whatever its key. What has no such end (the folder of a config.json)
/// is relative to the working directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"
#include "base/yaml/ref.h"
#include "base/yaml/table.h"
#include "base/yaml/written.h"

#include "sim/search/space.h"

namespace foreshard::sweep {

/// What is the better the less there is of it.
enum class Measure : std::uint8_t { kTime, kUsd, kKwh };
const yaml::Names<Measure>& yaml_names(const Measure*);

using Settings = std::map<std::string, yaml::Written>;  ///< By path, as of `--set`.

/// One value of an axis that sets several things at once.
struct Choice {
  std::string name;
  Settings set;
};

/// Has `key` and `values`, or `name` and `choices`.
struct Axis {
  std::string name;
  std::string key;
  std::vector<yaml::Written> values;
  std::vector<Choice> choices;

  std::int64_t size() const;
};

struct PointSearch {
  yaml::Ref<search::SearchSpace> space;
  std::int64_t simulate = 20;  ///< As in SearchOptions.
  std::int64_t certify = 20;
};

/// Which of the points is wanted: those that are done in time and within the budget, and of those
/// the one with the least of `minimise`.
struct Goal {
  std::optional<std::string> train;  ///< Default: that of the sweep.
  std::optional<Seconds> within;
  std::optional<Dollars> budget;
  Measure minimise = Measure::kUsd;
};

struct Sweep {
  std::string description;
  std::string study;
  std::optional<yaml::Written> cluster;
  std::optional<yaml::Written> model;
  std::optional<yaml::Written> strategy;
  std::optional<yaml::Written> communication;
  Settings set;  ///< Of all points.
  std::vector<Axis> axes;
  std::optional<PointSearch> search;
  std::optional<std::string> train;  ///< Default: that of the study.
  std::optional<Measure> rank;
  std::optional<Goal> goal;
  bool sensitivities = false;  ///< What faster parts would buy, of each point.
};

const yaml::Table<Choice>& yaml_table(const Choice*);
const yaml::Table<Axis>& yaml_table(const Axis*);
const yaml::Table<PointSearch>& yaml_table(const PointSearch*);
const yaml::Table<Goal>& yaml_table(const Goal*);
/// Catalogue folder: sweeps.
const yaml::Table<Sweep>& yaml_table(const Sweep*);

inline constexpr std::int64_t kMostPoints = 100'000;

/// A sweep whose parts do not contradict each other, and where it stands.
struct LoadedSweep {
  std::string name;  ///< The file without its suffix.
  std::filesystem::path folder;
  std::string file;  ///< Without its folder, for messages.
  Sweep sweep;
};

/// \param name  a file, "-", or a catalogue name.
/// \return kInvalidInput with its place: none of study and parts is given, a study's file that is
///     not there, a study in place of a sweep, axes or values that are named alike, keys that are
///     set twice, undone or without effect, more than kMostPoints, lengths of a training that
///     contradict each other or are none, a rank beside a goal; kIo if the file cannot be read.
Result<LoadedSweep> load_sweep(const std::string& name, const yaml::Options& options);

}  // namespace foreshard::sweep
