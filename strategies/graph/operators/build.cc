#include "strategies/graph/operators/build.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace foreshard {
namespace {

Error fault(const OperatorSpec& spec, const std::string& why) {
  return {Error::Code::kInvalidInput,
          fmt::format("operator '{}' ({}): {}", spec.name, spec.type, why)};
}

std::vector<std::string> words_of(const SettingDefinition& setting) {
  return {setting.words.begin(), setting.words.end()};
}

// Checks the given settings against the definition and adds the defaults.
std::string complete(const OperatorDefinition& definition, Settings& settings) {
  std::vector<std::string> names;
  for (const SettingDefinition& each : definition.settings) names.emplace_back(each.name);
  for (const auto& [name, value] : settings.all()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    std::string message = "unknown setting '" + name + "'";
    if (names.empty()) return message + "; it has none";
    if (const auto nearest = nearest_name(name, names))
      return message + "; did you mean '" + *nearest + "'?";
    return message + "; it has " + quoted_choice(names);
  }
  for (const SettingDefinition& each : definition.settings) {
    const std::string name(each.name);
    if (!settings.has(name)) {
      if (each.required) return "needs the setting '" + name + "': " + std::string(each.doc);
      settings.set(name, each.fallback);
      continue;
    }
    SettingValue value = settings.all().at(name);
    // An integer may stand for a number, or for a list of one integer.
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      if (std::holds_alternative<double>(each.fallback)) {
        value = static_cast<double>(*integer);
      } else if (std::holds_alternative<Integers>(each.fallback)) {
        value = Integers{*integer};
      }
      settings.set(name, value);
    }
    if (value.index() != each.fallback.index())
      return fmt::format("setting '{}' must be {}, not {} '{}'", name, type_name_of(each.fallback),
                         type_name_of(value), describe(value));
    if (const auto* text = std::get_if<std::string>(&value);
        text != nullptr && !each.words.empty() &&
        std::ranges::find(each.words, *text) == each.words.end()) {
      const auto nearest = nearest_name(*text, words_of(each));
      return fmt::format("setting '{}': unknown '{}'; {}", name, *text,
                         nearest ? "did you mean '" + *nearest + "'?"
                                 : "it is one of " + quoted_choice(words_of(each), 40));
    }
  }
  return {};
}

// Refuses extents and element counts that can only be mistakes, and would overflow computations
// with them.
std::string too_large(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;
  constexpr double kMostElements = 1e18;
  double elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent > kLargestExtent)
      return fmt::format("its result would have an extent of {}, more than 2^40", extent);
    elements *= static_cast<double>(extent);
  }
  return elements > kMostElements ? "its result would have more than 1e18 elements" : "";
}

struct Prepared {
  const OperatorDefinition* definition;
  Inferred inferred;
};

// Checks `spec` and infers its outputs; also adds defaults to `spec.settings`.
Result<Prepared> prepare(const Graph& graph, OperatorSpec& spec) {
  const OperatorDefinition* definition = find_operator(spec.type);
  if (definition == nullptr)
    return Error{Error::Code::kInvalidInput,
                 "operator '" + spec.name + "': " + unknown_operator(spec.type)};
  if (spec.inputs.size() < definition->least_inputs || spec.inputs.size() > definition->most_inputs)
    return fault(spec,
                 fmt::format("has {} inputs; it takes {}", spec.inputs.size(), definition->inputs));
  if (spec.bodies.size() != definition->bodies)
    return fault(spec,
                 fmt::format("has {} bodies; it takes {}", spec.bodies.size(), definition->bodies));
  if (const std::string why = complete(*definition, spec.settings); !why.empty())
    return fault(spec, why);
  Call call{.settings = spec.settings};
  for (const TensorId input : spec.inputs)
    call.inputs.push_back({graph[input].dtype, graph[input].shape});
  for (const Graph& body : spec.bodies) call.bodies.push_back(&body);
  auto inferred = definition->infer(call);
  if (!inferred) return fault(spec, inferred.error().message);
  for (const TensorType& output : inferred->outputs)
    if (const std::string why = too_large(output.shape); !why.empty()) return fault(spec, why);
  return Prepared{definition, *std::move(inferred)};
}

Call call_of(const Graph& graph, const Operator& op) {
  Call call{.settings = op.settings, .accumulates = op.accumulates};
  for (const TensorId id : op.inputs) call.inputs.push_back({graph[id].dtype, graph[id].shape});
  for (const TensorId id : op.outputs) call.outputs.push_back({graph[id].dtype, graph[id].shape});
  for (const std::int32_t body : op.bodies)
    call.bodies.push_back(&graph.bodies[static_cast<std::size_t>(body)]);
  return call;
}

}  // namespace

TensorId add_input(Graph& graph, std::string name, TensorType type) {
  const TensorId id =
      graph.add({.name = std::move(name), .dtype = type.dtype, .shape = std::move(type.shape)});
  graph.inputs.push_back(id);
  return id;
}

TensorId add_parameter(Graph& graph, std::string name, TensorType type) {
  return graph.add({.name = std::move(name),
                    .dtype = type.dtype,
                    .shape = std::move(type.shape),
                    .role = TensorRole::kParameter});
}

Result<std::vector<TensorId>> add_operator(Graph& graph, OperatorSpec spec) {
  FORESHARD_ASSIGN(auto prepared, prepare(graph, spec));
  Inferred inferred = (std::move(prepared)).inferred;
  if (spec.output_names.size() > inferred.outputs.size())
    return fault(spec, fmt::format("has {} outputs; it makes {}", spec.output_names.size(),
                                   inferred.outputs.size()));
  Operator op{.name = spec.name,
              .type = spec.type,
              .inputs = std::move(spec.inputs),
              .settings = std::move(spec.settings),
              .rule = std::move(inferred.rule)};
  for (std::size_t i = 0; i < inferred.outputs.size(); ++i) {
    std::string name = i < spec.output_names.size() ? spec.output_names[i]
                       : i == 0                     ? spec.name
                                                    : spec.name + "." + std::to_string(i);
    op.outputs.push_back(graph.add({.name = std::move(name),
                                    .dtype = inferred.outputs[i].dtype,
                                    .shape = std::move(inferred.outputs[i].shape)}));
  }
  for (Graph& body : spec.bodies) {
    op.bodies.push_back(static_cast<std::int32_t>(graph.bodies.size()));
    graph.bodies.push_back(std::move(body));
  }
  std::vector<TensorId> outputs = op.outputs;
  graph.operators.push_back(std::move(op));
  return outputs;
}

Result<TensorId> add_single(Graph& graph, OperatorSpec spec) {
  FORESHARD_ASSIGN(auto outputs, add_operator(graph, std::move(spec)));
  return outputs.front();
}

Result<Inferred> infer_operator(const Graph& graph, const OperatorSpec& spec) {
  OperatorSpec copy = spec;
  FORESHARD_ASSIGN(auto prepared, prepare(graph, copy));
  return (std::move(prepared)).inferred;
}

std::vector<Kernel> kernels_of(const Graph& graph, const Operator& op,
                               const std::vector<std::vector<std::int64_t>>& local_shapes) {
  const OperatorDefinition* definition = find_operator(op.type);
  FORESHARD_CHECK(definition != nullptr);
  FORESHARD_CHECK(local_shapes.size() == op.inputs.size() + op.outputs.size());
  if (definition->kernels == nullptr) return {};
  const Call whole = call_of(graph, op);
  Call local = whole;
  for (std::size_t i = 0; i < local_shapes.size(); ++i) {
    TensorType& type =
        i < local.inputs.size() ? local.inputs[i] : local.outputs[i - local.inputs.size()];
    type.shape = local_shapes[i];
  }
  return definition->kernels(local, whole);
}

bool is_view(const Operator& op) {
  const OperatorDefinition* definition = find_operator(op.type);
  FORESHARD_CHECK(definition != nullptr);
  return definition->view;
}

Flops flops_of(const Graph& graph) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
    for (const Kernel& kernel : kernels_of(graph, op, shapes)) sum += flops_of(kernel);
    for (std::size_t i = 0; i < op.bodies.size(); ++i)
      sum += body_weight(op, i) * flops_of(graph.bodies[static_cast<std::size_t>(op.bodies[i])]);
  }
  return sum;
}

std::int64_t parameter_elements(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors)
    if (tensor.role == TensorRole::kParameter) sum += elements(tensor);
  for (const Operator& op : graph.operators) {
    for (const std::int32_t body : op.bodies) {
      const std::int64_t copies = op.type == "loop" && op.settings.flag("own_parameters")
                                      ? op.settings.integer("count")
                                      : 1;
      sum += copies * parameter_elements(graph.bodies[static_cast<std::size_t>(body)]);
    }
  }
  return sum;
}

double body_weight(const Operator& op, std::size_t body) {
  if (op.type == "loop") return static_cast<double>(op.settings.integer("count"));
  const double first = op.settings.number("probability");
  return body == 0 ? first : 1.0 - first;
}

}  // namespace foreshard
