/// \file
/// A study of a general graph: an ONNX file or a graph in foreshard's own YAML, in place of a
/// model.
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
  std::map<std::string, std::int64_t> axes;  ///< Mesh axes beside tensor, data and pipeline.
  std::vector<Annotation> annotations;
  std::vector<std::string> cuts;                ///< Where units begin (graph/cuts.h).
  std::map<std::string, double> probabilities;  ///< Of the first branch of conditions, by name.
  std::int64_t seed = 1;                        ///< Of the branches that are drawn.
  std::optional<double> tokens_per_sample;      ///< Instead of what its inputs show.
};
const yaml::Table<GraphSource>& yaml_table(const GraphSource*);

struct LoadedGraph {
  Graph graph{};
  std::string origin{};           ///< "ONNX by pytorch 2.1.0".
  std::int64_t batch = 1;         ///< Samples of a micro-batch, over all data-parallel ranks.
  double tokens_per_sample = 0;   ///< 0: its samples do not consist of tokens.
  std::string sample = "sample";  ///< What a sample is: "sequence", "image", else "sample".
  std::vector<MeshAxis> axes{};
  std::vector<Annotation> annotations{};
  std::vector<std::string> cuts{};
  std::int64_t units = 1;
  std::uint64_t seed = 1;
  std::vector<std::string> remarks{};
};

/// Reads the graph. `at` is the source's place in what `loader` read ("graph"), `folder` that of
/// the file which names it.
/// \return what read_onnx and import_onnx return, with the place of `file`.
Result<LoadedGraph> load_graph(const GraphSource& source, const Strategy& strategy,
                               const std::filesystem::path& folder, yaml::Loader& loader,
                               std::string_view at, std::vector<yaml::Input>& inputs);

/// A summary of an ONNX file for people: operators, parameters, arithmetic. `dims` as in
/// GraphSource; the batch is 1 unless `dims` gives it.
/// \return as load_graph, with the path.
Result<std::string> onnx_summary(const std::filesystem::path& path,
                                 const std::map<std::string, std::int64_t>& dims);

/// "resnet50 (ONNX by pytorch 2.1.0): 176 operators, 25.6M parameters, 8.18 GFLOP forward".
std::string describe(const LoadedGraph& graph);

}  // namespace foreshard::study
