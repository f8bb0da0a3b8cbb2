// Loads the `graph:` of a study, from YAML or from an ONNX file, and distributes it (study.h,
// load_graph); study.cc calls it. `foreshard check` of an ONNX file asks for its summary.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/page.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/study/study.h"
#include "strategies/graph/counts.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/onnx/import.h"
#include "strategies/graph/operators/build.h"
#include "strategies/graph/units.h"
#include "strategies/parallelism/graphs.h"

namespace foreshard::study {
namespace {

std::size_t operators_in(const Graph& graph) {
  std::size_t count = graph.operators.size();
  for (const Graph& body : graph.bodies) count += operators_in(body);
  return count;
}

void collect_conditions(const Graph& graph, std::vector<std::string>& names) {
  for (const Operator& op : graph.operators)
    if (op.type == "condition") names.push_back(op.name);
  for (const Graph& body : graph.bodies) collect_conditions(body, names);
}

// An error for a probability of a condition that the graph does not have.
Status unused_probability(const GraphSource& source, const Graph& graph, const yaml::Loader& loader,
                          std::string_view at) {
  std::vector<std::string> names;
  collect_conditions(graph, names);
  for (const auto& [name, probability] : source.probabilities) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto near = nearest_name(name, names);
    return loader.error_at(fmt::format("{}.probabilities.{}", at, name),
                           fmt::format("the graph has no condition '{}'", name),
                           near ? "did you mean '" + *near + "'?" : "");
  }
  return {};
}

// Guesses what a sample is from the inputs: a row of whole numbers is a sequence of tokens, a real
// input of four dimensions (batch, channels, height, width) is an image.
void name_sample(LoadedGraph& loaded) {
  for (const TensorId id : loaded.graph.inputs) {
    const Tensor& input = loaded.graph[id];
    const bool counts = input.dtype == DType::kInt32 || input.dtype == DType::kInt64;
    if (!counts || input.shape.size() != 2 || input.shape[1] < 2) continue;
    loaded.tokens_per_sample = static_cast<double>(input.shape[1]);
    loaded.sample = "sequence";
    return;
  }
  constexpr std::size_t kImage = 4;
  if (!loaded.graph.inputs.empty() &&
      loaded.graph[loaded.graph.inputs.front()].shape.size() == kImage)
    loaded.sample = "image";
}

// An error for keys that apply to ONNX files only.
Status only_for_onnx(const GraphSource& source, const yaml::Loader& loader, std::string_view at) {
  if (!source.dims.empty())
    return loader.error_at(fmt::format("{}.dims", at), "a graph in YAML leaves no dimension open",
                           "give its tensors other shapes");
  if (!source.probabilities.empty())
    return loader.error_at(fmt::format("{}.probabilities", at),
                           "a graph in YAML states the probabilities of its own conditions",
                           "change them there");
  return {};
}

Result<LoadedGraph> load_onnx(const GraphSource& source, const Strategy& strategy,
                              const std::filesystem::path& path, const yaml::Loader& loader,
                              const std::string& place, std::vector<yaml::Input>& inputs) {
  auto bytes = read_file(path, limits::kOnnx);
  if (!bytes) return loader.error_at(place, bytes.error().message);
  const auto named = [&](const Error& error) {
    Error result = loader.error_at(place, path.string() + ": " + error.message);
    result.code = error.code;
    return result;
  };
  const auto model =
      onnx_file::read_onnx(*bytes, {.dims = source.dims,
                                    .batch = strategy.micro_batch * strategy.data_parallel,
                                    .rebatch = true});
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
                     .remarks = std::move(graph.remarks)};
}

// Reads foreshard's own form. Axes of the file's mesh other than the strategy's are added to the
// axes of the study.
Result<LoadedGraph> load_yaml(const GraphSource& source, const Strategy& strategy,
                              const std::filesystem::path& path, std::vector<yaml::Input>& inputs) {
  yaml::Loader loader;
  FORESHARD_ASSIGN(const auto config, loader.read_file<GraphConfig>(path));
  LoadedGraph loaded{.origin = "YAML"};
  for (const MeshAxis& axis : foreshard::mesh_of(config)) {
    const bool own = axis.name == "tensor" || axis.name == "data" || axis.name == "pipeline";
    if (!own && !source.axes.contains(axis.name)) loaded.axes.push_back(axis);
  }
  for (const auto& [name, size] : source.axes) loaded.axes.push_back({name, size});
  FORESHARD_ASSIGN(loaded.graph, build_graph(config, mesh_of(strategy, loaded.axes), loader));
  if (!loaded.graph.inputs.empty()) {
    const Tensor& first = loaded.graph[loaded.graph.inputs.front()];
    if (!first.shape.empty() && first.shape[0] > 0) loaded.batch = first.shape[0];
  }
  for (const yaml::Input& input : loader.inputs()) inputs.push_back(input);
  return loaded;
}

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

const yaml::Table<GraphSource>& yaml_table(const GraphSource*) {
  static const auto table =
      yaml::Table<GraphSource>("graph source", "A general graph, in place of a model.")
          .required("file", &GraphSource::file, "An .onnx or .yaml file, relative to this file.",
                    yaml::non_empty())
          .optional("dims", &GraphSource::dims,
                    "Sizes of dynamic dimensions, by name; the batch follows from the strategy "
                    "(micro_batch x data_parallel).",
                    yaml::at_least(1))
          .optional("axes", &GraphSource::axes,
                    "Mesh axes beside tensor, data and pipeline, for annotations.",
                    yaml::at_least(1))
          .optional("annotations", &GraphSource::annotations,
                    "Shardings of some tensors; those of all others follow.")
          .optional("cuts", &GraphSource::cuts,
                    "Operators with which units begin, beside the first one; or modules "
                    "('/encoder/layer.1'), for their first operators; or loops, for each of their "
                    "iterations. Stages of a pipeline "
                    "hold units (strategy.layers_per_stage), ZeRO 3 gathers the parameters of one "
                    "at a time, and recompute: full computes one again at a time.")
          .optional(
              "probabilities", &GraphSource::probabilities,
              "Probability of the first branch of each condition, by its name (default: 0.5).",
              yaml::between(0, 1))
          .optional("seed", &GraphSource::seed, "Seed of the random choice of branches.",
                    yaml::at_least(0))
          .optional("tokens_per_sample", &GraphSource::tokens_per_sample,
                    "Tokens that a sample holds, where no input of whole numbers shows it.",
                    yaml::at_least(1));
  return table;
}

Result<LoadedGraph> load_graph(const GraphSource& source, const Strategy& strategy,
                               const std::filesystem::path& folder, yaml::Loader& loader,
                               std::string_view at, std::vector<yaml::Input>& inputs) {
  const std::filesystem::path path = folder / source.file;
  const std::string place = std::string(at) + ".file";
  const std::string suffix = path.extension().string();
  for (const auto& [name, size] : source.axes)
    if (name == "tensor" || name == "data" || name == "pipeline")
      return loader.error_at(fmt::format("{}.axes.{}", at, name),
                             fmt::format("the strategy gives the size of axis '{}'", name),
                             fmt::format("set strategy.{}_parallel", name));
  if (suffix != ".onnx" && suffix != ".yaml")
    return loader.error_at(place, fmt::format("'{}' is not a graph", source.file),
                           "give a file that ends in .onnx or .yaml");
  if (suffix == ".yaml") FORESHARD_TRY(only_for_onnx(source, loader, at));
  FORESHARD_ASSIGN(LoadedGraph loaded,
                   suffix == ".yaml" ? load_yaml(source, strategy, path, inputs)
                                     : load_onnx(source, strategy, path, loader, place, inputs));
  FORESHARD_TRY(unused_probability(source, loaded.graph, loader, at));
  const auto units = units_of(loaded.graph, source.cuts);
  if (!units) return loader.error_at(fmt::format("{}.cuts", at), units.error().message);
  loaded.units = *units;
  if (suffix == ".onnx")
    for (const auto& [name, size] : source.axes) loaded.axes.push_back({name, size});
  name_sample(loaded);
  if (source.tokens_per_sample) {
    loaded.tokens_per_sample = *source.tokens_per_sample;
    loaded.sample = "sequence";
  }
  loaded.annotations = source.annotations;
  loaded.cuts = source.cuts;
  loaded.seed = static_cast<std::uint64_t>(source.seed);
  return loaded;
}

std::string describe(const LoadedGraph& graph) {
  return fmt::format("{} ({}): {} operators, {} parameters, {} forward for {} samples",
                     graph.graph.name, graph.origin, operators_in(graph.graph),
                     parameter_elements(graph.graph), format(product_flops(graph.graph)),
                     graph.batch);
}

Result<std::string> onnx_summary(const std::filesystem::path& path,
                                 const std::map<std::string, std::int64_t>& dims) {
  FORESHARD_ASSIGN(const auto bytes, read_file(path, limits::kOnnx));
  const auto named = [&](const Error& error) {
    return Error{error.code, path.string() + ": " + error.message};
  };
  const auto model = onnx_file::read_onnx(bytes, {.dims = dims, .batch = 1});
  if (!model) return named(model.error());
  const auto imported = onnx_file::import_onnx(*model, {});
  if (!imported) return named(imported.error());

  Page page({});
  page.line(fmt::format("{} is an ONNX model that can be simulated.", path.string()));
  TextTable table({"<", "<"});
  const auto line = [&](const char* label, const std::string& value) { table.row(label, value); };
  if (!model->producer.empty()) line("made by", model->producer);
  for (const auto& [domain, version] : model->opsets)
    line("operator set", fmt::format("{}{}", domain.empty() ? "" : domain + " ", version));
  const auto tensors = [&](const char* label, const std::vector<onnx_file::ValueIndex>& list) {
    for (const onnx_file::ValueIndex index : list) {
      const auto& value = model->values[static_cast<std::size_t>(index)];
      line(label, value.name + " " + shape_text(value.shape));
    }
  };
  tensors("input", model->main.inputs);
  tensors("output", model->main.outputs);
  line("parameters", fmt::format("{}", parameter_elements(imported->graph)));
  line("forward", fmt::format("{} in products, for a batch of {}",
                              format(product_flops(imported->graph)), imported->batch));
  line("folded", fmt::format("{} nodes that only compute shapes and constants", model->folded));
  std::map<std::string, std::int64_t> counts;
  for (const Operator& op : imported->graph.operators) ++counts[op.type];
  for (const auto& [type, count] : counts) line("operators", fmt::format("{} {}", count, type));
  for (const std::string& remark : imported->remarks) line("remark", remark);
  page.table(table);
  return std::move(page).take();
}

}  // namespace foreshard::study
