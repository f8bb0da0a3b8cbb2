#include "strategies/graph/onnx/internal/fuse.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "strategies/graph/onnx/internal/fold.h"

namespace foreshard::onnx_file {
namespace {

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
  struct Centred {
    ValueIndex x;
    std::int64_t axis;
    std::set<std::size_t> nodes;
  };
  std::optional<Centred> centred(ValueIndex of) const {
    const auto sub = made_by(of, "Sub");
    if (!sub) return std::nullopt;
    const auto mean = made_by(input(*sub, 1), "ReduceMean");
    if (!mean || input(*mean, 0) != input(*sub, 0)) return std::nullopt;
    const auto axis = mean_axis(*mean);
    if (!axis) return std::nullopt;
    return Centred{input(*sub, 0), *axis, {*sub, *mean}};
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

}  // namespace

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

}  // namespace foreshard::onnx_file
