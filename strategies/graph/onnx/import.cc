#include "strategies/graph/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

#include "strategies/graph/onnx/internal/fold.h"
#include "strategies/graph/onnx/internal/translate.h"
#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {
namespace {

// Fuses operators that exporters write in pieces and frameworks run as one kernel.
//
//     layer norm: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) * scale + shift
//     GeLU:       x * (1 + erf(x / sqrt(2))) / 2, in any order of the factors

struct Fused {
  std::int64_t norms = 0;
  std::int64_t gelus = 0;
};

// Value -> number of nodes and outputs that read it.
std::vector<std::int64_t> uses_of(const Model& model) {
  std::vector<std::int64_t> uses(model.values.size());
  const auto count = [&](const std::vector<ValueIndex>& list) {
    for (const ValueIndex value : list)
      if (value != kNone) ++uses[static_cast<std::size_t>(value)];
  };
  const auto visit = [&](const Body& body) {
    count(body.outputs);
    for (const Node& node : body.nodes) count(node.inputs);
  };
  visit(model.main);
  for (const Body& body : model.bodies) visit(body);
  return uses;
}

class Fuser {
 public:
  Fuser(const Model& model, Body& body, const std::vector<std::int64_t>& uses)
      : model_(model), body_(body), uses_(uses) {
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      for (const ValueIndex output : body.nodes[i].outputs)
        if (output != kNone) producer_[output] = i;
      for (const ValueIndex input : body.nodes[i].inputs)
        if (input != kNone) readers_[input].push_back(i);
    }
  }

  Fused run() {
    Fused fused;
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      if (gone_.contains(i)) continue;
      if (body_.nodes[i].op == "Div" && norm(i)) ++fused.norms;
      if (body_.nodes[i].op == "Erf" && gelu(i)) ++fused.gelus;
    }
    std::vector<Node> left;
    for (std::size_t i = 0; i < body_.nodes.size(); ++i)
      if (!gone_.contains(i)) left.push_back(std::move(body_.nodes[i]));
    body_.nodes = std::move(left);
    return fused;
  }

 private:
  // The node that makes `value`, if it has operator `op`.
  std::optional<std::size_t> made_by(ValueIndex value, const char* op) const {
    const auto it = producer_.find(value);
    if (it == producer_.end() || body_.nodes[it->second].op != op) return std::nullopt;
    return it->second;
  }
  ValueIndex input(std::size_t node, std::size_t index) const {
    const auto& inputs = body_.nodes[node].inputs;
    return index < inputs.size() ? inputs[index] : kNone;
  }
  ValueIndex output(std::size_t node) const { return body_.nodes[node].outputs.at(0); }
  const Value& value(ValueIndex index) const {
    return model_.values[static_cast<std::size_t>(index)];
  }

  bool is_number(ValueIndex index, double wanted) const {
    if (index == kNone || !value(index).numbers) return false;
    const auto* reals = std::get_if<std::vector<double>>(&*value(index).numbers);
    return reals != nullptr && reals->size() == 1 &&
           std::abs(reals->front() - wanted) < 1e-3 * std::abs(wanted);
  }
  bool is_scalar(ValueIndex index) const {
    return index != kNone && value(index).kind == Value::Kind::kConstant &&
           count_of(value(index).shape) == 1;
  }

  // The only reader of `node`'s result, if it has operator `op` and nothing else reads the result.
  std::optional<std::size_t> only_reader(std::size_t node, const char* op) const {
    const auto it = readers_.find(output(node));
    if (it == readers_.end() || it->second.size() != 1 || uses(output(node)) != 1 ||
        body_.nodes[it->second[0]].op != op)
      return std::nullopt;
    return it->second[0];
  }
  std::int64_t uses(ValueIndex index) const { return uses_[static_cast<std::size_t>(index)]; }
  // The operand other than `known` of a node with two operands.
  ValueIndex other(std::size_t node, ValueIndex known) const {
    return input(node, 0) == known ? input(node, 1) : input(node, 0);
  }

  // The first of the dimensions that a mean is taken over, if they are the last dimensions.
  std::optional<std::int64_t> mean_axis(std::size_t node) const {
    const auto rank = static_cast<std::int64_t>(value(input(node, 0)).shape.size());
    auto axes = integers_of(body_.nodes[node], "axes");
    if (!axes && input(node, 1) != kNone) axes = integers_of(value(input(node, 1)));
    if (!axes || axes->empty() || integer_of(body_.nodes[node], "keepdims", 1) != 1)
      return std::nullopt;
    for (std::int64_t& axis : *axes) axis = axis < 0 ? axis + rank : axis;
    std::ranges::sort(*axes);
    const std::int64_t first = axes->front();
    for (std::size_t i = 0; i < axes->size(); ++i)
      if ((*axes)[i] != first + static_cast<std::int64_t>(i)) return std::nullopt;
    if (first + static_cast<std::int64_t>(axes->size()) != rank) return std::nullopt;
    return first;
  }

  // A match of x - mean(x).
  struct MeanSubtraction {
    ValueIndex x;
    std::int64_t axis;
    std::set<std::size_t> nodes;
  };
  std::optional<MeanSubtraction> centred(ValueIndex of) const {
    const auto sub = made_by(of, "Sub");
    if (!sub) return std::nullopt;
    const auto mean = made_by(input(*sub, 1), "ReduceMean");
    if (!mean || input(*mean, 0) != input(*sub, 0)) return std::nullopt;
    const auto axis = mean_axis(*mean);
    if (!axis) return std::nullopt;
    return MeanSubtraction{input(*sub, 0), *axis, {*sub, *mean}};
  }

  // Whether nothing outside `nodes` reads their results, except the result of `last`.
  bool closed(const std::set<std::size_t>& nodes, std::size_t last) const {
    return std::ranges::all_of(nodes, [&](std::size_t node) {
      if (node == last) return true;
      std::int64_t inside = 0;
      for (const std::size_t reader : nodes)
        inside += std::ranges::count(body_.nodes[reader].inputs, output(node));
      return inside == uses(output(node));
    });
  }

  bool norm(std::size_t div) {
    const auto top = centred(input(div, 0));
    const auto root = made_by(input(div, 1), "Sqrt");
    if (!top || !root) return false;
    const auto add = made_by(input(*root, 0), "Add");
    if (!add) return false;
    const ValueIndex epsilon = is_scalar(input(*add, 1)) ? input(*add, 1) : input(*add, 0);
    const auto mean = made_by(other(*add, epsilon), "ReduceMean");
    if (!is_scalar(epsilon) || !mean || mean_axis(*mean) != top->axis) return false;
    auto square = made_by(input(*mean, 0), "Pow");
    if (square && !is_number(input(*square, 1), 2)) return false;
    if (!square) {
      square = made_by(input(*mean, 0), "Mul");
      if (!square || input(*square, 0) != input(*square, 1)) return false;
    }
    const auto below = centred(input(*square, 0));
    if (!below || below->x != top->x) return false;
    const auto scale = only_reader(div, "Mul");
    if (!scale) return false;
    const ValueIndex weight = other(*scale, output(div));
    const auto shift = only_reader(*scale, "Add");
    if (!shift) return false;
    const ValueIndex bias = other(*shift, output(*scale));
    const Shape& whole = value(top->x).shape;
    const Shape normalised(whole.begin() + top->axis, whole.end());
    if (value(weight).shape != normalised || value(bias).shape != normalised) return false;

    std::set<std::size_t> nodes{div, *root, *add, *mean, *square, *scale, *shift};
    nodes.insert(top->nodes.begin(), top->nodes.end());
    nodes.insert(below->nodes.begin(), below->nodes.end());
    return replace(nodes, *shift, "LayerNormalization", {top->x, weight, bias},
                   {{"axis", Attribute(top->axis)}});
  }

  bool gelu(std::size_t erf) {
    // erf(x / sqrt(2)) or erf(x * (1 / sqrt(2))).
    auto inner = made_by(input(erf, 0), "Div");
    if (inner && !is_number(input(*inner, 1), std::sqrt(2.0))) return false;
    ValueIndex x = inner ? input(*inner, 0) : kNone;
    if (!inner) {
      inner = made_by(input(erf, 0), "Mul");
      if (!inner) return false;
      const bool second = is_number(input(*inner, 1), std::sqrt(0.5));
      if (!second && !is_number(input(*inner, 0), std::sqrt(0.5))) return false;
      x = input(*inner, second ? 0 : 1);
    }
    const auto add = only_reader(erf, "Add");
    if (!add || !is_number(other(*add, output(erf)), 1)) return false;
    const auto product = only_reader(*add, "Mul");
    if (!product) return false;
    const ValueIndex factor = other(*product, output(*add));
    std::set<std::size_t> nodes{erf, *inner, *add, *product};
    std::size_t last = *product;
    if (factor == x) {  // (x (1 + erf)) / 2
      const auto half = only_reader(*product, "Mul");
      if (!half || !is_number(other(*half, output(*product)), 0.5)) return false;
      nodes.insert(*half);
      last = *half;
    } else {  // (x / 2) (1 + erf)
      const auto half = made_by(factor, "Mul");
      if (!half) return false;
      const bool second = is_number(input(*half, 1), 0.5);
      if (!second && !is_number(input(*half, 0), 0.5)) return false;
      if (input(*half, second ? 0 : 1) != x) return false;
      nodes.insert(*half);
    }
    return replace(nodes, last, "Gelu", {x}, {});
  }

  // Replaces `nodes` by one node in the place of `last`.
  bool replace(const std::set<std::size_t>& nodes, std::size_t last, const char* op,
               std::vector<ValueIndex> inputs, std::map<std::string, Attribute> attributes) {
    if (!closed(nodes, last)) return false;
    const Node& before = body_.nodes[last];
    Node fused{.name = before.name,
               .op = op,
               .domain = "",
               .opset = before.opset,
               .inputs = std::move(inputs),
               .outputs = before.outputs,
               .attributes = std::move(attributes)};
    for (const std::size_t node : nodes)
      if (node != last) gone_.insert(node);
    body_.nodes[last] = std::move(fused);
    return true;
  }

  const Model& model_;
  Body& body_;
  const std::vector<std::int64_t>& uses_;
  std::map<ValueIndex, std::size_t> producer_;
  std::map<ValueIndex, std::vector<std::size_t>> readers_;
  std::set<std::size_t> gone_;
};

// Replaces the pieces by nodes LayerNormalization and Gelu, if nothing else reads the values
// between them.
// \return the number of nodes of each kind.
Fused fuse(Model& model) {
  const auto uses = uses_of(model);
  Fused sum = Fuser(model, model.main, uses).run();
  for (Body& body : model.bodies) {
    const Fused more = Fuser(model, body, uses).run();
    sum.norms += more.norms;
    sum.gelus += more.gelus;
  }
  return sum;
}

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
