#include "strategies/graph/graph_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <set>

#include "base/text.h"

#include "strategies/graph/layout.h"
#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

template <class T>
std::optional<T> number(const std::string& word) {
  T value{};
  const auto [rest, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || rest != word.data() + word.size()) return std::nullopt;
  return value;
}

// The words as a value of the type of `like`; nothing if they have another type.
std::optional<SettingValue> value_of(const yaml::Words& given, const SettingValue& like) {
  if (std::holds_alternative<Integers>(like)) {
    Integers list;
    for (const std::string& word : given.words) {
      const auto value = number<std::int64_t>(word);
      if (!value || *value > kMostExtent || *value < -kMostExtent) return std::nullopt;
      list.push_back(*value);
    }
    return list;
  }
  if (given.list) return std::nullopt;
  const std::string& word = given.words.front();
  if (std::holds_alternative<std::string>(like)) return word;
  if (std::holds_alternative<double>(like)) {
    const auto value = number<double>(word);
    return value ? std::optional<SettingValue>(*value) : std::nullopt;
  }
  if (std::holds_alternative<bool>(like)) {
    if (word != "true" && word != "false") return std::nullopt;
    return word == "true";
  }
  const auto value = number<std::int64_t>(word);
  if (!value || *value > kMostExtent || *value < -kMostExtent) return std::nullopt;
  return *value;
}

class Builder {
 public:
  Builder(const GraphConfig& config, const std::vector<MeshAxis>& mesh, const yaml::Loader& loader,
          std::string at)
      : config_(config), mesh_(mesh), loader_(loader), at_(std::move(at)) {
    graph_.name = config.name;
  }

  Result<Graph> run() {
    for (std::size_t i = 0; i < config_.tensors.size(); ++i) FORESHARD_TRY(declare(i));
    for (std::size_t i = 0; i < config_.operators.size(); ++i) FORESHARD_TRY(add(i));
    for (std::size_t i = 0; i < config_.tensors.size(); ++i) {
      if (!ids_.contains(config_.tensors[i].name))
        return error(item("tensors", i) + ".name",
                     fmt::format("no operator makes tensor '{}'", config_.tensors[i].name),
                     "give it the role input or parameter, or name it in an operator's outputs");
      FORESHARD_TRY(annotate(i));
    }
    for (std::size_t i = 0; i < config_.outputs.size(); ++i) {
      FORESHARD_ASSIGN(const auto id, find(config_.outputs[i], item("outputs", i)));
      graph_.outputs.push_back(id);
    }
    return std::move(graph_);
  }

 private:
  static std::string item(const std::string& list, std::size_t index) {
    return list + "." + std::to_string(index);
  }
  Error error(const std::string& path, const std::string& message,
              const std::string& help = {}) const {
    return loader_.error_at(at_.empty() ? path : at_ + "." + path, message, help);
  }

  Result<TensorId> find(const std::string& name, const std::string& path) const {
    const auto known = ids_.find(name);
    if (known != ids_.end()) return known->second;
    std::vector<std::string> names;
    for (const auto& [each, id] : ids_) names.push_back(each);
    const auto near = nearest_name(name, names);
    return error(
        path, fmt::format("no tensor '{}' has been made so far", name),
        near ? "did you mean '" + *near + "'?" : "operators stand in the order in which they run");
  }

  // Declares a tensor. Inputs and parameters are added at once; activations when their operator
  // makes them.
  Status declare(std::size_t i) {
    const GraphTensor& tensor = config_.tensors[i];
    const std::string place = item("tensors", i);
    if (!declared_.emplace(tensor.name, i).second)
      return error(place + ".name", fmt::format("tensor '{}' is declared twice", tensor.name));
    if (!tensor.dtype.empty() && !find_dtype(tensor.dtype)) {
      const auto near = nearest_name(tensor.dtype, dtype_names());
      return error(place + ".dtype", fmt::format("unknown type '{}'", tensor.dtype),
                   near ? "did you mean '" + *near + "'?" : "use " + quoted_choice(dtype_names()));
    }
    if (tensor.dtype == name_of(DType::kFp4))
      return error(place + ".dtype", "tensors of 4 bits are made by quantize alone",
                   "give it 16 bits, and quantize it with recipe nvfp4");
    double elements = 1;
    if (tensor.shape) {
      for (std::size_t d = 0; d < tensor.shape->size(); ++d) {
        const std::int64_t extent = (*tensor.shape)[d];
        if (extent < 0 || extent > kMostExtent)
          return error(place + ".shape",
                       fmt::format("extent {} is not between 0 and 2^40", extent));
        elements *= static_cast<double>(extent);
      }
    }
    constexpr double kMostElements = 1e18;
    if (elements > kMostElements)
      return error(place + ".shape", "the tensor has more than 1e18 elements");
    if (tensor.role == GraphTensorRole::kActivation) return {};
    if (tensor.dtype.empty() || !tensor.shape)
      return error(place,
                   fmt::format("tensor '{}' needs dtype and shape: nothing makes it", tensor.name));
    const TensorType type{*find_dtype(tensor.dtype), *tensor.shape};
    if (tensor.role == GraphTensorRole::kTable && is_whole_number(type.dtype))
      return error(place + ".dtype", "a table that is updated is of real numbers",
                   "give it the role frozen");
    const bool is_input = tensor.role == GraphTensorRole::kInput;
    const TensorId id =
        is_input ? add_input(graph_, tensor.name, type) : add_parameter(graph_, tensor.name, type);
    graph_[id].updated_by_rows = tensor.role == GraphTensorRole::kTable;
    graph_[id].frozen = graph_[id].updated_by_rows || tensor.role == GraphTensorRole::kFrozen;
    ids_[tensor.name] = id;
    return {};
  }

  Status add(std::size_t i) {
    const GraphOperator& op = config_.operators[i];
    const std::string place = item("operators", i);
    OperatorSpec spec{.type = op.op, .name = op.name, .output_names = op.outputs};
    if (spec.name.empty() && !op.outputs.empty()) spec.name = op.outputs.front();
    if (spec.name.empty())
      return error(place, "an operator needs a name, or names for its outputs");
    if (!operators_.insert(spec.name).second)
      return error(place, fmt::format("operator '{}' is named twice", spec.name),
                   "give it a name of its own");
    const OperatorDefinition* definition = find_operator(op.op);
    if (definition == nullptr) return error(place + ".op", unknown_operator(op.op));
    for (std::size_t n = 0; n < op.inputs.size(); ++n) {
      FORESHARD_ASSIGN(const auto id, find(op.inputs[n], place + "." + item("inputs", n)));
      if (graph_[id].updated_by_rows && (op.op != "embedding" || n != 1))
        return error(place + "." + item("inputs", n),
                     fmt::format("'{}' is a table: only operator 'embedding' reads one, as its "
                                 "second input",
                                 op.inputs[n]),
                     "give it the role parameter, and it is trained as others are");
      spec.inputs.push_back(id);
    }
    for (const auto& [name, words] : op.settings) {
      const auto setting = std::ranges::find(definition->settings, name, &SettingDefinition::name);
      SettingValue value = std::string();  // for an unknown setting, which add_operator reports
      if (setting != definition->settings.end()) {
        const auto read = value_of(words, setting->fallback);
        if (!read)
          return error(fmt::format("{}.settings.{}", place, name),
                       fmt::format("'{}' must be {}{}", name, type_name_of(setting->fallback),
                                   words.list ? "" : ", found '" + words.words.front() + "'"),
                       std::string(setting->doc));
        value = *read;
      }
      spec.settings.set(name, std::move(value));
    }
    for (std::size_t b = 0; b < op.bodies.size(); ++b) {
      FORESHARD_ASSIGN(auto body,
                       Builder(op.bodies[b], mesh_, loader_,
                               (at_.empty() ? "" : at_ + ".") + place + "." + item("bodies", b))
                           .run());
      spec.bodies.push_back(std::move(body));
    }
    const auto outputs = add_operator(graph_, std::move(spec));
    if (!outputs) return error(place, outputs.error().message);
    for (std::size_t n = 0; n < outputs->size(); ++n) FORESHARD_TRY(made((*outputs)[n], place));
    return {};
  }

  // Checks a tensor that an operator has made against its declaration, if it has one.
  Status made(TensorId id, const std::string& place) {
    const Tensor& tensor = graph_[id];
    if (!ids_.emplace(tensor.name, id).second)
      return error(place, fmt::format("tensor '{}' is made twice", tensor.name),
                   "give the operator's outputs names of their own");
    const auto known = declared_.find(tensor.name);
    if (known == declared_.end()) return {};
    const GraphTensor& wanted = config_.tensors[known->second];
    const std::string where = item("tensors", known->second);
    if (wanted.shape && *wanted.shape != tensor.shape)
      return error(
          where + ".shape",
          fmt::format("tensor '{}' is declared as {}, but its operator makes {}", tensor.name,
                      describe(SettingValue{*wanted.shape}), describe(SettingValue{tensor.shape})));
    if (!wanted.dtype.empty() && wanted.dtype != name_of(tensor.dtype))
      return error(where + ".dtype",
                   fmt::format("tensor '{}' is declared as {}, but its operator makes {}",
                               tensor.name, wanted.dtype, name_of(tensor.dtype)));
    return {};
  }

  Status annotate(std::size_t i) {
    const GraphTensor& wanted = config_.tensors[i];
    const std::string place = item("tensors", i);
    Tensor& tensor = graph_[ids_.at(wanted.name)];
    if (wanted.dims.empty() && wanted.partial.empty()) {
      if (wanted.open.empty()) return {};
      return error(place + ".open", "only an annotated tensor has open dimensions", "add `dims`");
    }
    const std::size_t dimensions = tensor.shape.size();
    if (wanted.dims.size() != dimensions)
      return error(
          place + (wanted.dims.empty() ? ".partial" : ".dims"),
          fmt::format("tensor '{}' of shape {} needs {} entries in `dims`, not {}", tensor.name,
                      describe(SettingValue{tensor.shape}), dimensions, wanted.dims.size()),
          "write \"-\" for a whole dimension");
    if (mesh_.empty())
      return error(place,
                   fmt::format("tensor '{}' is annotated, but there is no mesh", tensor.name),
                   "name its axes: `mesh: [{name: data, size: 2}]`");
    std::string text;
    for (const MeshAxis& axis : mesh_)
      text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
    text += " [" + join(wanted.dims) + "]";
    if (!wanted.partial.empty()) text += " sum(" + join(wanted.partial) + ")";
    const auto layout = parse_layout(text, tensor.shape);
    if (!layout)
      return error(place + ".dims",
                   fmt::format("tensor '{}': {}", tensor.name, layout.error().message));
    tensor.pinned = layout->attribute;
    for (const std::int64_t d : wanted.open) {
      if (d < 0 || static_cast<std::size_t>(d) >= dimensions)
        return error(place + ".open",
                     fmt::format("tensor '{}' has no dimension {}", tensor.name, d));
      tensor.open.push_back(static_cast<std::int32_t>(d));
    }
    return {};
  }

  const GraphConfig& config_;
  const std::vector<MeshAxis>& mesh_;
  const yaml::Loader& loader_;
  std::string at_;
  Graph graph_;
  std::map<std::string, TensorId> ids_;
  std::set<std::string> operators_;
  std::map<std::string, std::size_t> declared_;
};

}  // namespace

const yaml::Names<GraphTensorRole>& yaml_names(const GraphTensorRole*) {
  static const yaml::Names<GraphTensorRole> names{
      {"input", GraphTensorRole::kInput, "Comes from outside."},
      {"parameter", GraphTensorRole::kParameter, "Is trained."},
      {"frozen", GraphTensorRole::kFrozen, "A parameter that is not trained."},
      {"table", GraphTensorRole::kTable,
       "A parameter whose rows `embedding` looks up, and updates in the backward pass: it has no "
       "gradient, and of its optimizer a number for each row."},
      {"activation", GraphTensorRole::kActivation, "Is made by an operator."},
  };
  return names;
}

const yaml::Table<GraphAxis>& yaml_table(const GraphAxis*) {
  static const auto table =
      yaml::Table<GraphAxis>("axis", "An axis of the process mesh.")
          .required("name", &GraphAxis::name, "Name in annotations.", yaml::non_empty())
          .required("size", &GraphAxis::size, "Ranks along it.", yaml::between(1, 1 << 20));
  return table;
}

const yaml::Table<GraphTensor>& yaml_table(const GraphTensor*) {
  static const auto table =
      yaml::Table<GraphTensor>("tensor", "A tensor: what an operator cannot say about it.")
          .required("name", &GraphTensor::name, "Name, unique in the graph.", yaml::non_empty())
          .optional("role", &GraphTensor::role, "Where the tensor comes from.")
          .optional("dtype", &GraphTensor::dtype,
                    "Element type (bf16, fp32, int32 ...); required, unless an operator makes the "
                    "tensor: then it is checked.")
          .optional("shape", &GraphTensor::shape,
                    "Logical (whole) shape; required or checked likewise.")
          .optional("dims", &GraphTensor::dims,
                    "Its sharding: per dimension \"-\" or mesh axes, major to minor, joined by "
                    "'+', with unequal slices as \"tensor{3,3,2,2}\".")
          .optional("partial", &GraphTensor::partial,
                    "Axes over which it is partial: each rank holds a summand.")
          .optional("open", &GraphTensor::open,
                    "Dimensions (from 0) that propagation may split further.");
  return table;
}

const yaml::Table<GraphOperator>& yaml_table(const GraphOperator*) {
  static const auto table =
      yaml::Table<GraphOperator>("operator", "An operator: `foreshard catalog operators`.")
          .required("op", &GraphOperator::op, "The operation.", yaml::non_empty())
          .optional("name", &GraphOperator::name,
                    "Its name, and that of its output; may be left out where `outputs` is given.")
          .required("inputs", &GraphOperator::inputs, "Input tensors, in the operator's order.")
          .optional("outputs", &GraphOperator::outputs,
                    "Names of its outputs (default: name, name.1, ...).")
          .optional("settings", &GraphOperator::settings, "Settings of the operator, by name.")
          .optional("bodies", &GraphOperator::bodies,
                    "Sub-graphs of a loop (one) or condition (two). Their inputs are, in order, "
                    "their tensors with the role input.");
  return table;
}

const yaml::Table<GraphConfig>& yaml_table(const GraphConfig*) {
  static const auto table =
      yaml::Table<GraphConfig>("graph", "Operators and tensors of one step.")
          .folder("graphs")
          .required("name", &GraphConfig::name, "Name in reports.", yaml::non_empty())
          .optional("doc", &GraphConfig::doc, "A sentence on what the graph is.")
          .optional("mesh", &GraphConfig::mesh,
                    "Mesh axes that annotations name; the first varies fastest over the ranks. A "
                    "study replaces them by its own mesh.")
          .required("tensors", &GraphConfig::tensors,
                    "Inputs, parameters, and activations that are annotated.")
          .required("operators", &GraphConfig::operators,
                    "The operators, in the order in which they run.")
          .required("outputs", &GraphConfig::outputs, "Tensors that leave the graph.",
                    yaml::non_empty());
  return table;
}

std::vector<MeshAxis> mesh_of(const GraphConfig& config) {
  std::vector<MeshAxis> mesh;
  mesh.reserve(config.mesh.size());
  for (const GraphAxis& axis : config.mesh) mesh.push_back({axis.name, axis.size});
  return mesh;
}

Result<Graph> build_graph(const GraphConfig& config, const std::vector<MeshAxis>& mesh,
                          const yaml::Loader& loader, const std::string& at) {
  return Builder(config, mesh, loader, at).run();
}

}  // namespace foreshard
