#include "strategies/graph/onnx/import.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/text.h"

#include "strategies/graph/onnx/internal/fold.h"
#include "strategies/graph/onnx/internal/fuse.h"
#include "strategies/graph/onnx/internal/translate.h"

namespace foreshard::onnx_file {
namespace {

// Translates one body into a graph of its own. If it reads a value of the body around it, the value
// becomes an input.
class Importer final : public Scope {
 public:
  Importer(const Model& model, const ImportOptions& options, std::string name,
           std::vector<std::string>& remarks, Importer* around = nullptr)
      : model_(model), options_(options), remarks_(remarks), around_(around) {
    graph_.name = std::move(name);
  }

  Graph& graph() override { return graph_; }
  const ImportOptions& options() const override { return options_; }
  const Value& value(ValueIndex index) const override {
    return model_.values[static_cast<std::size_t>(index)];
  }

  TensorId tensor(ValueIndex index) override {
    const auto known = tensors_.find(index);
    if (known != tensors_.end()) return known->second;
    const Value& of = value(index);
    TensorId made;
    if (of.kind == Value::Kind::kConstant) {
      made = constant(of.name, type_of(of));
    } else if (around_ != nullptr) {
      captured_.push_back(index);
      made = graph_.add({.name = of.name, .dtype = type_of(of).dtype, .shape = of.shape});
    } else {
      made = add_parameter(graph_, of.name, type_of(of));
    }
    tensors_[index] = made;
    return made;
  }
  void set(ValueIndex index, TensorId tensor) override { tensors_[index] = tensor; }
  TensorId constant(const std::string& name, TensorType type) override {
    return graph_.add({.name = name, .dtype = type.dtype, .shape = std::move(type.shape)});
  }

  TensorType type_of(const Value& value) const {
    return {value.is_real() ? options_.precision : value.dtype, value.shape};
  }

  // Adds the tensor of a value that exists from the start (an input).
  void take(ValueIndex index) {
    const Value& of = value(index);
    tensors_[index] = graph_.add({.name = of.name, .dtype = type_of(of).dtype, .shape = of.shape});
  }

  Status run(const Body& body) {
    for (const Node& node : body.nodes) {
      auto error = translate(node);
      if (error.ok()) error = other_shape(node);
      if (!error.ok()) {
        if (error.error().message.find('\'' + node.name) == std::string::npos)
          error.error().message =
              fmt::format("node '{}' ({}): {}", node.name, node.op, error.error().message);
        return error;
      }
    }
    return {};
  }

  const std::vector<ValueIndex>& captured() const { return captured_; }

 private:
  Status translate(const Node& node) {
    if (node.op == "Loop") return loop(node);
    if (node.op == "If") return condition(node);
    return find_translation(node.op)(*this, node);
  }

  // Refuses a result with one shape by the node's attributes and another by its operands (a
  // kernel_shape that is not the weight's).
  Status other_shape(const Node& node) const {
    for (const ValueIndex index : node.outputs) {
      const auto made = index == kNone ? tensors_.end() : tensors_.find(index);
      if (made == tensors_.end() || graph_[made->second].shape == value(index).shape) continue;
      return Error{Error::Code::kInvalidInput,
                   fmt::format("'{}' is [{}] by its attributes, but [{}] by its operands",
                               value(index).name, fmt::join(value(index).shape, ", "),
                               fmt::join(graph_[made->second].shape, ", "))};
    }
    return {};
  }

  const Body& body_of(const Node& node, const std::string& name) const {
    return model_.bodies[node.bodies.at(name)];
  }

  Status loop(const Node& node) {
    const Body& body = body_of(node, "body");
    const std::int64_t count = integer_of(node, "count", 0);
    if (count == 0) {  // carried values leave the loop unchanged
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (node.outputs[i] != kNone) set(node.outputs[i], tensor(node.inputs[i + 2]));
      return {};
    }
    Importer inner(model_, options_, node.name, remarks_, this);
    for (const ValueIndex index : body.inputs) inner.take(index);
    FORESHARD_TRY(inner.run(body));
    std::vector<TensorId> inputs;
    for (std::size_t i = 2; i < body.inputs.size(); ++i) {
      inner.graph_.inputs.push_back(inner.tensor(body.inputs[i]));
      inputs.push_back(tensor(node.inputs[i]));
    }
    for (std::size_t i = 1; i < body.outputs.size(); ++i)
      inner.graph_.outputs.push_back(inner.tensor(body.outputs[i]));
    for (const ValueIndex index : inner.captured()) {
      inner.graph_.inputs.push_back(inner.tensor(index));
      inputs.push_back(tensor(index));
    }
    FORESHARD_ASSIGN(
        auto made, add_operator(graph_, {.type = "loop",
                                         .name = node.name,
                                         .inputs = std::move(inputs),
                                         .settings = {{"count", count}, {"own_parameters", false}},
                                         .bodies = {std::move(inner.graph_)}}));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) set(node.outputs[i], made[i]);
    return {};
  }

  Status condition(const Node& node) {
    Importer yes(model_, options_, node.name + ".then", remarks_, this);
    Importer no(model_, options_, node.name + ".else", remarks_, this);
    FORESHARD_TRY(yes.run(body_of(node, "then_branch")));
    FORESHARD_TRY(no.run(body_of(node, "else_branch")));
    for (const ValueIndex index : body_of(node, "then_branch").outputs)
      yes.graph_.outputs.push_back(yes.tensor(index));
    for (const ValueIndex index : body_of(node, "else_branch").outputs)
      no.graph_.outputs.push_back(no.tensor(index));
    // Both branches have the values that either reads as inputs.
    std::set<ValueIndex> read(yes.captured().begin(), yes.captured().end());
    read.insert(no.captured().begin(), no.captured().end());
    std::vector<TensorId> inputs;
    for (const ValueIndex index : read) {
      inputs.push_back(tensor(index));
      yes.graph_.inputs.push_back(yes.tensor(index));
      no.graph_.inputs.push_back(no.tensor(index));
    }
    const auto given = options_.probabilities.find(node.name);
    if (given == options_.probabilities.end())
      remarks_.push_back(
          fmt::format("condition '{}' takes its first branch with probability 0.5; "
                      "graph.probabilities can change that",
                      node.name));
    const double probability = given == options_.probabilities.end() ? 0.5 : given->second;
    FORESHARD_ASSIGN(
        auto made, add_operator(graph_, {.type = "condition",
                                         .name = node.name,
                                         .inputs = std::move(inputs),
                                         .settings = {{"probability", probability}},
                                         .bodies = {std::move(yes.graph_), std::move(no.graph_)}}));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) set(node.outputs[i], made[i]);
    return {};
  }

  const Model& model_;
  const ImportOptions& options_;
  std::vector<std::string>& remarks_;
  Importer* around_;
  Graph graph_;
  std::map<ValueIndex, TensorId> tensors_;
  std::vector<ValueIndex> captured_;  // values of the bodies around, in the order of first reading
};

// Collects every operator without a counterpart, with a node that uses it.
void collect_unknown(const Model& model, const Body& body,
                     std::map<std::string, std::string>& unknown) {
  for (const Node& node : body.nodes) {
    for (const auto& [name, index] : node.bodies)
      collect_unknown(model, model.bodies[index], unknown);
    if (node.op == "If" || node.op == "Loop" || find_translation(node.op) != nullptr) continue;
    unknown.emplace(node.op,
                    fmt::format("'{}' (opset {}, node '{}')", node.op, node.opset, node.name));
  }
}

Status unknown_operators(const Model& model) {
  std::map<std::string, std::string> unknown;
  collect_unknown(model, model.main, unknown);
  if (unknown.empty()) return {};
  std::vector<std::string> lines;
  lines.reserve(unknown.size());
  for (const auto& [op, line] : unknown) lines.push_back(line);
  const auto near = nearest_name(unknown.begin()->first, supported_operators());
  return Error{
      Error::Code::kUnsupported,
      fmt::format("{} not supported: {}{}; export the model with other operators, or write "
                  "the graph in YAML",
                  unknown.size() == 1 ? "an operator is" : "operators are", join(lines),
                  near ? fmt::format(" (did it mean '{}'?)", *near) : "")};
}

}  // namespace

Result<Imported> import_onnx(const Model& model, const ImportOptions& options) {
  FORESHARD_TRY(unknown_operators(model));
  Model pieces = model;
  Imported result;
  result.remarks = model.remarks;
  const Fused fused = fuse(pieces);
  if (fused.norms + fused.gelus > 0)
    result.remarks.push_back(
        fmt::format("{} layer norms and {} GeLUs that the file has in pieces run "
                    "as one operator each",
                    fused.norms, fused.gelus));
  if (options.training && model.main.nodes.empty())
    return Error{Error::Code::kInvalidInput, "it computes nothing but constants"};

  Importer importer(pieces, options, model.name, result.remarks);
  for (const ValueIndex index : pieces.main.inputs) {
    importer.take(index);
    importer.graph().inputs.push_back(importer.tensor(index));
  }
  FORESHARD_TRY(importer.run(pieces.main));
  for (const ValueIndex index : pieces.main.outputs)
    importer.graph().outputs.push_back(importer.tensor(index));
  result.graph = std::move(importer.graph());

  if (!pieces.main.inputs.empty()) {
    const Value& first = importer.value(pieces.main.inputs.front());
    if (!first.shape.empty()) result.batch = first.shape[0];
  }
  return result;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names = translated_operators();
  names.insert(names.end(), {"If", "Loop"});
  std::ranges::sort(names);
  return names;
}

}  // namespace foreshard::onnx_file
