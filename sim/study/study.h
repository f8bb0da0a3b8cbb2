/// \file
/// A study in YAML: one question, "this model, divided like this, on that cluster".
///
///     cluster: gpt3-a100-1024           # a catalogue name, a path, or written out
///     model: gpt3-175b
///     strategy: {tensor_parallel: 8, pipeline_parallel: 16, data_parallel: 8, global_batch: 1536}
///
/// `load_study` reads it with everything it refers to and makes the checks that involve several
/// files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "sim/disturbance/disturbances.h"
#include "sim/study/interval.h"
#include "sim/study/measured_steps.h"
#include "sim/study/measured_times.h"
#include "sim/study/open_settings.h"
#include "strategies/comm/parameters.h"
#include "strategies/graph/annotate.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

// The devices that a study's ranks may run on: all working ones, in the cluster's order, or those
// that its `use` names, in the order of `use`. Rank r runs on device r of the pool; devices
// without a rank are idle.

struct Pool {
  std::vector<std::int32_t> devices{};  ///< Indexed by rank; working devices, each once.
  /// Why these are not all of the cluster's devices: "node1/gpu3 is down"; empty if they are.
  std::string shortage{};
  bool named = false;  ///< Whether `use` names the devices.

  std::int64_t size() const { return static_cast<std::int64_t>(devices.size()); }
  /// `program` with its ranks on the first devices of the pool.
  /// \pre The pool has a device for each rank.
  program::Program placed(program::Program program) const;
};

/// The cluster's node groups that hold one of `devices`, in the cluster's order.
std::vector<NodeGroup> groups_with(const ClusterConfig& cluster,
                                   std::span<const std::int32_t> devices);

/// \param use  selectors of devices ("node3/gpu5", "node*/gpu?") or of whole nodes ("node3");
///     devices that are down are left out. Empty: every working device.
/// \return kInvalidInput, with a place, for a selector that leaves no device, or if the cluster
///     cannot be built.
Result<Pool> pool_of(const ClusterConfig& cluster, const std::vector<std::string>& use,
                     const yaml::Loader& loader);

// The source of a study's graph, in place of a model: an ONNX file or a graph in foreshard's own
// YAML.
//
//     graph:
//       file: resnet50.onnx
//       dims: {height: 224, width: 224}     # dynamic dimensions; the batch follows from strategy
//       annotations:
//         - {tensor: "fc.weight", dims: [-, tensor]}

struct GraphSource {
  std::string file;  ///< A path ending in .onnx or .yaml, relative to the file that names it.
  std::map<std::string, std::int64_t> dims;  ///< Sizes of dynamic dimensions.
  /// Mesh axes in addition to tensor, data and pipeline.
  std::map<std::string, std::int64_t> axes;
  std::vector<Annotation> annotations;
  std::vector<std::string> cuts;  ///< Names of operators at which units begin (graph/cuts.h).
  /// Condition name -> probability of its first branch.
  std::map<std::string, double> probabilities;
  std::int64_t seed = 1;                    ///< Seed of the random branches.
  std::optional<double> tokens_per_sample;  ///< Replaces the number that the inputs show.
};
const yaml::Table<GraphSource>& yaml_table(const GraphSource*);

struct LoadedGraph {
  Graph graph{};
  std::string origin{};          ///< "ONNX by pytorch 2.1.0".
  std::int64_t batch = 1;        ///< Samples of a micro-batch, summed over all data-parallel ranks.
  double tokens_per_sample = 0;  ///< 0: samples do not consist of tokens.
  std::string sample = "sample";  ///< Word for one sample: "sequence", "image", else "sample".
  std::vector<MeshAxis> axes{};
  std::vector<Annotation> annotations{};
  std::vector<std::string> cuts{};
  std::int64_t units = 1;
  std::uint64_t seed = 1;
  std::vector<std::string> remarks{};
};

/// Reads the graph.
/// \param folder  the folder of the file that names the graph.
/// \param at  the source's place in what `loader` read ("graph").
/// \return The errors of read_onnx and import_onnx, with the place of `file`.
Result<LoadedGraph> load_graph(const GraphSource& source, const Strategy& strategy,
                               const std::filesystem::path& folder, yaml::Loader& loader,
                               std::string_view at, std::vector<yaml::Input>& inputs);

/// A summary of an ONNX file for people: operators, parameters, arithmetic. `dims` is the same as
/// in GraphSource; the batch is 1 unless `dims` gives it.
/// \return The errors of load_graph, with the path.
Result<std::string> onnx_summary(const std::filesystem::path& path,
                                 const std::map<std::string, std::int64_t>& dims);

/// "resnet50 (ONNX by pytorch 2.1.0): 176 operators, 25.6M parameters, 8.18 GFLOP forward".
std::string describe(const LoadedGraph& graph);

/// A model as the `config.json` of a Hugging Face repository describes it.
struct HuggingFaceModel {
  /// Path of the file or of its folder, relative to the file that holds this key.
  std::string config;
  std::optional<std::string> name;       ///< Default: the folder's name.
  std::optional<std::int64_t> sequence;  ///< Tokens per sample; the default is read_hf_config's.
  bool extend = false;  ///< Whether positions reach to `sequence` even if the file states fewer.
};

struct Study {
  std::string description;
  yaml::Ref<ClusterConfig> cluster;
  std::optional<yaml::Ref<Model>> model;
  std::optional<HuggingFaceModel> huggingface;  ///< Alternative to `model`.
  std::optional<GraphSource> graph;             ///< Alternative to `model`.
  yaml::Ref<Strategy> strategy;
  std::optional<yaml::Ref<comm::Parameters>> communication;  ///< Default: kDefaultCommunication.
  std::optional<disturbance::Disturbances> disturbances;
  std::vector<std::string> use;      ///< Devices that ranks may run on; see pool_of().
  std::optional<std::string> train;  ///< Length of the whole training: "2T tokens".
  /// The part of each device's memory that should stay free; see MemoryMargin in run.h.
  std::optional<double> memory_margin;
  std::optional<yaml::Ref<MeasuredSteps>> measured_steps;  ///< The user's own, for intervals.
  std::vector<OpenSetting> open;     ///< Settings of the strategy that nobody says.
  std::vector<std::string> assumed;  ///< Further assumptions, for people.
};

struct ImportedModel {
  Model model;
  std::vector<std::string> remarks;  ///< Remarks of HfModel.
  yaml::Input input;                 ///< The file.
};
/// \param folder  the folder that a relative path starts from; empty: the working directory.
/// \param loader  has the catalogue of model types.
/// \return kIo if the file cannot be read, otherwise the errors of read_hf_config.
Result<ImportedModel> import_model(const HuggingFaceModel& source,
                                   const std::filesystem::path& folder, yaml::Loader& loader);

/// Whether `model`, as given on the command line, is a config.json of Hugging Face, a folder that
/// holds one, or "-" with the text of one on stdin.
bool is_hf_config(const std::string& model);

const yaml::Table<HuggingFaceModel>& yaml_table(const HuggingFaceModel*);
const yaml::Table<Study>& yaml_table(const Study*);

/// The catalogue entry that a study without `communication` uses.
inline constexpr std::string_view kDefaultCommunication = "nccl";
/// The catalogue entry that a strategy without `framework` uses.
inline constexpr std::string_view kDefaultFramework = "generic";

/// Sources of a study. The parts given besides `study` replace those parts of it.
struct StudyFiles {
  std::optional<std::filesystem::path> study = {};  ///< A file, "-", or a catalogue name.
  /// A catalogue name, the path of a file, "-" for stdin, or YAML in braces.
  std::optional<std::string> cluster = {};
  /// The same forms, or the path of a `config.json`, of its folder or of an .onnx file.
  std::optional<std::string> model = {};
  std::optional<std::string> strategy = {};
  std::optional<std::string> communication = {};
  /// The text of a study instead of a file, and the name that stands for it in messages.
  std::optional<yaml::Input> text = {};
  /// What takes the place of the study's communication library, where it was read before.
  const comm::Parameters* parameters = nullptr;
  /// Whether the strategy's parallel sizes must fit model and cluster; a search, which chooses the
  /// sizes itself, sets this to false.
  bool sizes_matter = true;
};

/// A study whose parts fit together: `faults_in` finds nothing.
struct LoadedStudy {
  std::string name;  ///< The study's file without its suffix, or "model on cluster".
  std::string description;
  ClusterConfig cluster;
  Model model;
  std::vector<std::string> remarks{};  ///< Remarks about reading the model, for people.
  /// Replaces the model, which is then empty except for its name.
  std::optional<LoadedGraph> graph;
  Strategy strategy;
  comm::Parameters communication;
  ParameterErrors errors;  ///< The catalogue's parameter errors, for intervals.
  /// Measured steps, for intervals: the catalogue's and the study's own.
  std::shared_ptr<const MeasuredSteps> measured_steps;
  std::optional<disturbance::Disturbances> disturbances;
  Pool pool;
  std::optional<std::string> train;       ///< A text that parse_training_length reads.
  std::optional<double> memory_margin{};  ///< See Study.
  std::vector<OpenSetting> open{};        ///< See Study; the strategy holds what was taken.
  std::optional<Settled> settled{};       ///< The choice for open settings.
  std::vector<std::string> assumed{};     ///< See Study.
  /// Measured times that were applied to its cluster and communication (add_measured).
  std::optional<MeasuredTimes> measured{};
  /// Every file that took part, in the order of reading; catalogue files as "configs/...".
  std::vector<yaml::Input> inputs;
  yaml::Loader loader;  ///< The loader that read those files, for errors that show a place in them.

  /// The devices that its ranks run on, the first ones of the pool: nothing else of the cluster
  /// changes its step.
  std::span<const std::int32_t> used() const;
};

/// Open settings are settled (open_settings.h), unless sizes do not matter: a search chooses them.
/// \return kInvalidInput with every fault, each with its place, what is legal, and a remedy; kIo if
///     the study itself cannot be read.
Result<LoadedStudy> load_study(const StudyFiles& files, yaml::Options options);

/// Number of devices that ranks of the study may run on, whatever its strategy is (and its model,
/// unless a study's file is given). An imported strategy leaves this number to its launcher.
Result<std::int64_t> devices_of(const StudyFiles& files, yaml::Options options);

/// The faults of `strategy` for `model` on `devices` devices, shown at `at` of what `loader` read.
/// `shortage` is Pool::shortage.
Status misfit(const Strategy& strategy, const Model& model, std::int64_t devices,
              const yaml::Loader& loader, std::string_view at, std::string_view shortage = {});

}  // namespace foreshard::study
