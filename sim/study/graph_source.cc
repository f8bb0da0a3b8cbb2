#include "sim/study/graph_source.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/quantity.h"

#include "strategies/graph/onnx/import.h"
#include "strategies/graph/operators/build.h"
#include "strategies/program/lower/graph.h"

namespace foreshard::study {
namespace {

constexpr Bytes kLargestOnnx = 2_GiB;

std::size_t operators_in(const Graph& graph) {
  std::size_t count = graph.operators.size();
  for (const Graph& body : graph.bodies) count += operators_in(body);
  return count;
}

Result<LoadedGraph> load_onnx(const GraphSource& source, const Strategy& strategy,
                              const std::filesystem::path& path, const yaml::Loader& loader,
                              const std::string& place, std::vector<yaml::Input>& inputs) {
  auto bytes = read_file(path, kLargestOnnx);
  if (!bytes) return loader.error_at(place, bytes.error().message);
  const auto named = [&](const Error& error) {
    Error result = loader.error_at(place, path.string() + ": " + error.message);
    result.code = error.code;
    return result;
  };
  const auto model = onnx_file::read_onnx(
      *bytes, {.dims = source.dims, .batch = strategy.micro_batch * strategy.data_parallel});
  if (!model) return named(model.error());
  auto imported = onnx_file::import_onnx(*model, {.precision = strategy.precision,
                                                  .training = strategy.mode == Mode::kTrain,
                                                  .probabilities = source.probabilities});
  if (!imported) return named(imported.error());
  inputs.push_back({path.string(), *std::move(bytes)});
  onnx_file::Imported graph = *std::move(imported);
  graph.graph.name = path.stem().string();
  return LoadedGraph{.graph = std::move(graph.graph),
                     .origin = "ONNX" + (model->producer.empty() ? "" : " by " + model->producer),
                     .batch = graph.batch,
                     .tokens_per_sample = graph.tokens_per_sample,
                     .remarks = std::move(graph.remarks)};
}

}  // namespace

const yaml::Table<GraphSource>& yaml_table(const GraphSource*) {
  static const auto table =
      yaml::Table<GraphSource>("graph source", "A general graph, in place of a model.")
          .required("file", &GraphSource::file, "An .onnx or .yaml file, relative to this file.",
                    yaml::non_empty())
          .optional("dims", &GraphSource::dims,
                    "Sizes of dynamic dimensions by name; that of the batch follows from the "
                    "strategy (micro_batch x data_parallel).",
                    yaml::at_least(1))
          .optional("axes", &GraphSource::axes,
                    "Mesh axes beside tensor, data and pipeline, for annotations.",
                    yaml::at_least(1))
          .optional("annotations", &GraphSource::annotations, "How tensors lie; all others follow.")
          .optional("probabilities", &GraphSource::probabilities,
                    "Of the first branch of conditions, by name (default: 0.5).",
                    yaml::between(0, 1))
          .optional("seed", &GraphSource::seed, "Of the branches that are drawn.",
                    yaml::at_least(0));
  return table;
}

Result<LoadedGraph> load_graph(const GraphSource& source, const Strategy& strategy,
                               const std::filesystem::path& folder, yaml::Loader& loader,
                               std::string_view at, std::vector<yaml::Input>& inputs) {
  const std::filesystem::path path = folder / source.file;
  const std::string place = std::string(at) + ".file";
  const std::string suffix = path.extension().string();
  if (suffix != ".onnx")
    return loader.error_at(place, fmt::format("'{}' is no graph", source.file),
                           "give a file that ends in .onnx");
  auto graph = load_onnx(source, strategy, path, loader, place, inputs);
  if (!graph) return graph;
  LoadedGraph loaded = *std::move(graph);
  for (const auto& [name, size] : source.axes) loaded.axes.push_back({name, size});
  loaded.annotations = source.annotations;
  loaded.seed = static_cast<std::uint64_t>(source.seed);
  return loaded;
}

std::string describe(const LoadedGraph& graph) {
  return fmt::format("{} ({}): {} operators, {} parameters, {} forward for {} samples",
                     graph.graph.name, graph.origin, operators_in(graph.graph),
                     parameter_elements(graph.graph), format(lower::product_flops(graph.graph)),
                     graph.batch);
}

}  // namespace foreshard::study
