/// \file
/// The source of a study's graph, in place of a model: an ONNX file or a graph in foreshard's own
/// YAML.
///
///     graph:
///       file: resnet50.onnx
///       dims: {height: 224, width: 224}     # dynamic dimensions; the batch follows from strategy
///       annotations:
///         - {tensor: "fc.weight", dims: [-, tensor]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "strategies/graph/annotate.h"
#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::study {

struct GraphSource {
  std::string file;  ///< A path ending in .onnx or .yaml, relative to the file that names it.
  std::map<std::string, std::int64_t> dims;  ///< Sizes of dynamic dimensions.
  /// Mesh axes in addition to tensor, data and pipeline.
  std::map<std::string, std::int64_t> axes;
  std::vector<Annotation> annotations;
  std::vector<std::string> cuts;  ///< Names of operators at which units begin (graph/units.h).
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

}  // namespace foreshard::study
