/// \file
/// A sweep in YAML: a grid of questions over one base study.
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
/// A point is one value of each axis; the points are the product of the axes. A value sets what
/// `--set` can set: anything in a study can be an axis, and values that belong together form one
/// choice. With `search`, the strategy of each point is found (sim/search); otherwise the study's
/// own is simulated.
///
/// Nothing may be set twice: a key has one axis, or `set`, or neither; a larger part comes before
/// the keys set inside it. Strategy keys that a search chooses cannot be axes.
///
/// Paths of files are relative to the file of the sweep. A value (of an axis, of `set` or of a
/// part), or a value inside its braces or brackets, that ends in .yaml, .yml, .json, .onnx or .csv
/// is taken for such a path, whatever its key. A path without such an ending (the folder of a
/// config.json) is relative to the working directory.
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

/// A quantity of which less is better.
enum class Measure : std::uint8_t { kTime, kUsd, kKwh };
const yaml::Names<Measure>& yaml_names(const Measure*);

using Settings = std::map<std::string, yaml::Written>;  ///< Indexed by path, as in `--set`.

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
  std::int64_t simulate = 20;  ///< See SearchOptions.
  std::int64_t certify = 20;
};

/// Selects the wanted point: among those within the time and the budget, the one with the least of
/// `minimise`.
struct Goal {
  std::optional<std::string> train;  ///< Default: the sweep's.
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
  Settings set;  ///< Settings of all points.
  std::vector<Axis> axes;
  std::optional<PointSearch> search;
  std::optional<std::string> train;  ///< Default: the study's.
  std::optional<Measure> rank;
  std::optional<Goal> goal;
  bool sensitivities = false;  ///< Whether to compute the effect of faster parts for each point.
};

const yaml::Table<Choice>& yaml_table(const Choice*);
const yaml::Table<Axis>& yaml_table(const Axis*);
const yaml::Table<PointSearch>& yaml_table(const PointSearch*);
const yaml::Table<Goal>& yaml_table(const Goal*);
/// Catalogue folder: sweeps.
const yaml::Table<Sweep>& yaml_table(const Sweep*);

/// A sweep whose parts do not contradict each other, and the location of its file.
struct LoadedSweep {
  std::string name;  ///< The file without its suffix.
  std::filesystem::path folder;
  std::string file;  ///< Name without its folder, for messages.
  Sweep sweep;
};

/// \param name  a file, "-", or a catalogue name.
/// \return kInvalidInput with its place: neither a study nor parts are given, a study's file does
///     not exist, the file is a study instead of a sweep, axes or values have the same name, keys
///     are set twice, undone or without effect, there are more than limits::kPoints points, lengths
///     of a training are invalid or contradict each other, a rank is given together with a goal;
///     kIo if the file cannot be read.
Result<LoadedSweep> load_sweep(const std::string& name, const yaml::Options& options);

}  // namespace foreshard::sweep
