/// \file
/// A study: one question, "this model, divided like this, on that cluster", as YAML says it.
///
///     cluster: gpt3-a100-1024           # a catalogue name, a path, or written out
///     model: gpt3-175b
///     strategy: {tensor_parallel: 8, pipeline_parallel: 16, data_parallel: 8, global_batch: 1536}
///
/// `load_study` reads it with everything it refers to and makes the checks that no single file can.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "sim/disturbance/disturbances.h"
#include "sim/study/graph_source.h"
#include "sim/study/interval.h"
#include "sim/study/measured_times.h"
#include "sim/study/pool.h"
#include "strategies/comm/parameters.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

/// A model as the `config.json` of a Hugging Face repository describes it.
struct HuggingFaceModel {
  std::string config;  ///< Path of the file or of its folder, relative to the file with this key.
  std::optional<std::string> name;       ///< Default: the folder's.
  std::optional<std::int64_t> sequence;  ///< Tokens per sample; default: as in read_hf_config.
  bool extend = false;  ///< Positions reach to `sequence`, however few the file states.
};

struct Study {
  std::string description;
  yaml::Ref<ClusterConfig> cluster;
  std::optional<yaml::Ref<Model>> model;
  std::optional<HuggingFaceModel> huggingface;  ///< Instead of `model`.
  std::optional<GraphSource> graph;             ///< Likewise.
  yaml::Ref<Strategy> strategy;
  std::optional<yaml::Ref<comm::Parameters>> communication;  ///< Default: kDefaultCommunication.
  std::optional<disturbance::Disturbances> disturbances;
  std::vector<std::string> use;      ///< Which devices ranks may run on; see pool_of().
  std::optional<std::string> train;  ///< How long the whole training is: "2T tokens".
  /// The part of each device's memory that should stay free; see memory_margin.h.
  std::optional<double> memory_margin;
};

struct ImportedModel {
  Model model;
  std::vector<std::string> remarks;  ///< As in HfModel.
  yaml::Input input;                 ///< The file.
};
/// \param folder  where a relative path begins; empty: in the working directory.
/// \param loader  has the catalogue of model types.
/// \return kIo if the file cannot be read, otherwise as read_hf_config.
Result<ImportedModel> import_model(const HuggingFaceModel& source,
                                   const std::filesystem::path& folder, yaml::Loader& loader);

/// Whether `model`, as given on the command line, is a config.json of Hugging Face, a folder that
/// holds one, or "-" where stdin has the text of one.
bool is_hf_config(const std::string& model);

const yaml::Table<HuggingFaceModel>& yaml_table(const HuggingFaceModel*);
const yaml::Table<Study>& yaml_table(const Study*);

/// The catalogue entry that a study without `communication` uses.
inline constexpr std::string_view kDefaultCommunication = "nccl";
/// The catalogue entry that a strategy without `framework` uses.
inline constexpr std::string_view kDefaultFramework = "generic";

/// Where a study comes from. What is given beside `study` takes the place of that part of it.
struct StudyFiles {
  std::optional<std::filesystem::path> study = {};  ///< A file, "-", or a catalogue name.
  /// A catalogue name, the path of a file, "-" for stdin, or YAML in braces.
  std::optional<std::string> cluster = {};
  /// Likewise, or the path of a `config.json`, of its folder or of an .onnx file.
  std::optional<std::string> model = {};
  std::optional<std::string> strategy = {};
  std::optional<std::string> communication = {};
  /// Whether the strategy's parallel sizes must fit model and cluster: a search chooses them
  /// itself.
  bool sizes_matter = true;
};

/// A study whose parts fit together: `faults_in` finds nothing.
struct LoadedStudy {
  std::string name;  ///< The study's file without its suffix, or "model on cluster".
  std::string description;
  ClusterConfig cluster;
  Model model;
  std::vector<std::string> remarks{};  ///< On reading the model, for people.
  std::optional<LoadedGraph> graph;  ///< In place of the model, which is then empty but for a name.
  Strategy strategy;
  comm::Parameters communication;
  ParameterErrors errors;  ///< Of the catalogue, for intervals.
  std::optional<disturbance::Disturbances> disturbances;
  Pool pool;
  std::optional<std::string> train;       ///< A text that parse_training_length reads.
  std::optional<double> memory_margin{};  ///< As in Study.
  /// Times that its cluster and communication were given (add_measured).
  std::optional<MeasuredTimes> measured{};
  /// Every file that took part, in the order of reading; catalogue files as "configs/...".
  std::vector<yaml::Input> inputs;
  yaml::Loader loader;  ///< For errors that show a place in those files.

  /// The devices that its ranks run on, the first ones of the pool: nothing else of the cluster
  /// changes its step.
  std::span<const std::int32_t> used() const;
};

/// \return kInvalidInput with every fault, each with its place, what is legal, and a remedy; kIo if
///     the study itself cannot be read.
Result<LoadedStudy> load_study(const StudyFiles& files, yaml::Options options);

/// Devices that ranks of the study may run on, whatever its strategy (and, without a study's file,
/// its model) may be: what an imported strategy leaves to its launcher.
Result<std::int64_t> devices_of(const StudyFiles& files, yaml::Options options);

/// The faults of `strategy` for `model` on `devices`, shown at `at` of what `loader` read.
/// `shortage` as that of a Pool.
Status misfit(const Strategy& strategy, const Model& model, std::int64_t devices,
              const yaml::Loader& loader, std::string_view at, std::string_view shortage = {});

}  // namespace foreshard::study
