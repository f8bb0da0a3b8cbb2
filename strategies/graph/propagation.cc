#include "strategies/graph/internal/propagation.h"

#include <algorithm>
#include <array>
#include <deque>

#include "base/check.h"

namespace foreshard::internal {
namespace {

// The rule that makes a parameter and its gradient lie in the same way.
Rule tie_of(const std::vector<std::int64_t>& shape) {
  Rule rule{.inputs = 1, .operands = {2, std::vector<std::vector<std::int32_t>>(shape.size())}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    rule.factors.push_back({.name = "d" + std::to_string(d), .size = shape[d]});
    rule.operands[0][d] = rule.operands[1][d] = {static_cast<std::int32_t>(d)};
  }
  rule.uneven = true;
  return rule;
}

// Annotations on the inputs and outputs of an operator's bodies (Node::hints).
std::vector<const Attribute*> hints_of(const Graph& graph, const Operator& op) {
  std::vector<const Attribute*> hints;
  if (op.bodies.empty()) return hints;
  hints.resize(op.inputs.size() + op.outputs.size());
  for (const std::int32_t index : op.bodies) {
    const Graph& body = graph.bodies[static_cast<std::size_t>(index)];
    const auto note = [&](std::size_t operand, TensorId inside) {
      if (hints[operand] == nullptr && body[inside].pinned) hints[operand] = &*body[inside].pinned;
    };
    for (std::size_t i = 0; i < body.inputs.size(); ++i) note(i, body.inputs[i]);
    for (std::size_t i = 0; i < body.outputs.size(); ++i)
      note(op.inputs.size() + i, body.outputs[i]);
  }
  return hints;
}

}  // namespace

Propagation::Propagation(const Graph& graph, const std::vector<MeshAxis>& mesh, Flow flow,
                         std::vector<const Attribute*> pins)
    : graph_(graph), mesh_(mesh), flow_(flow), pins_(std::move(pins)) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    attributes_.push_back(pins_[t] != nullptr ? *pins_[t]
                                              : replicated(graph.tensors[t].shape.size()));
  ties_.reserve(graph.tensors.size());
  nodes_.reserve(graph.operators.size() + graph.tensors.size());
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    Node node{.rule = &op.rule,
              .operands = op.inputs,
              .inputs = op.inputs.size(),
              .op = static_cast<std::int32_t>(i),
              .hints = hints_of(graph, op)};
    node.operands.insert(node.operands.end(), op.outputs.begin(), op.outputs.end());
    FORESHARD_CHECK(node.rule->operands.size() == node.operands.size());
    nodes_.push_back(std::move(node));
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const TensorId parameter = graph.tensors[t].gradient_of;
    if (!parameter.valid() || graph[parameter].shape != graph.tensors[t].shape) continue;
    ties_.push_back(tie_of(graph.tensors[t].shape));
    nodes_.push_back({.rule = &ties_.back(),
                      .operands = {parameter, TensorId{static_cast<std::int64_t>(t)}},
                      .inputs = 1});
  }
  nodes_of_.resize(graph.tensors.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    for (const TensorId tensor : nodes_[n].operands) {
      auto& users = nodes_of_[tensor.index()];
      if (users.empty() || users.back() != static_cast<std::int32_t>(n))
        users.push_back(static_cast<std::int32_t>(n));
    }
  }
}

AttributeSource Propagation::claim_of(TensorId tensor) const {
  const bool parameter = graph_[tensor].role != TensorRole::kActivation;
  if (pin(tensor) != nullptr)
    return parameter ? AttributeSource::kPinnedParameter : AttributeSource::kPinned;
  return parameter ? AttributeSource::kParameter : AttributeSource::kPropagated;
}

bool Propagation::may_grow(TensorId tensor, std::size_t dim) const {
  if (pin(tensor) == nullptr) return true;
  const auto& open = graph_[tensor].open;
  return std::ranges::find(open, static_cast<std::int32_t>(dim)) != open.end();
}

Assignment Propagation::assign(const Node& node, std::vector<AxisConflict>* clashes) const {
  Assignment assignment(*node.rule, mesh_);
  if (node.op >= 0) {
    const auto& splits = graph_.operators[static_cast<std::size_t>(node.op)].splits;
    if (splits) {
      FORESHARD_CHECK(assignment.take(*splits));
      return assignment;
    }
  }
  for (const AttributeSource claim : {AttributeSource::kPinnedParameter, AttributeSource::kPinned,
                                      AttributeSource::kParameter, AttributeSource::kPropagated}) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const TensorId tensor = node.operands[i];
      if (claim == AttributeSource::kPinned && !node.hints.empty() && node.hints[i] != nullptr)
        assignment.merge(i, *node.hints[i], graph_[tensor].shape, clashes);
      if (claim_of(tensor) == claim)
        assignment.merge(i, attributes_[tensor.index()], graph_[tensor].shape, clashes);
    }
    if (claim != AttributeSource::kPinnedParameter) continue;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const TensorId tensor = node.operands[i];
      if (claim_of(tensor) == claim && graph_[tensor].open.empty()) assignment.fix(i);
    }
  }
  assignment.trim();
  return assignment;
}

// Lets `tensor` take over the splits of `wish` that extend its own.
// \return whether it took any.
bool Propagation::extend(TensorId tensor, const Attribute& wish) {
  Attribute& lies = attributes_[tensor.index()];
  bool grown = false;
  for (std::size_t d = 0; d < wish.dims.size(); ++d) {
    const auto& more = wish.dims[d];
    auto& axes = lies.dims[d];
    const bool sized = d < lies.sizes.size() && !lies.sizes[d].empty();
    if (more.size() <= axes.size() || sized || !may_grow(tensor, d)) continue;
    if (!std::equal(axes.begin(), axes.end(), more.begin())) continue;
    const bool unequal = d < wish.sizes.size() && !wish.sizes[d].empty();
    if (unequal && !axes.empty()) continue;
    const bool free = std::all_of(
        more.begin() + static_cast<std::ptrdiff_t>(axes.size()), more.end(),
        [&](Axis axis) { return state_of(lies, axis).kind == AxisState::Kind::kReplicated; });
    if (!free || (!unequal && graph_[tensor].shape[d] % ways(more, mesh_) != 0)) continue;
    axes = more;
    if (unequal) {
      lies.sizes.resize(lies.dims.size());
      lies.sizes[d] = wish.sizes[d];
    }
    grown = true;
  }
  return grown;
}

// Visits operators until nothing changes: at first every one, then those whose tensors changed.
// Without `all`, only operators that work element by element.
void Propagation::settle(bool all) {
  std::deque<std::int32_t> queue;
  std::vector<bool> queued(nodes_.size());
  const auto push = [&](std::int32_t n) {
    const auto index = static_cast<std::size_t>(n);
    if (queued[index] || (!all && !nodes_[index].rule->uneven)) return;
    queued[index] = true;
    queue.push_back(n);
  };
  for (std::size_t n = 0; n < nodes_.size(); ++n) push(static_cast<std::int32_t>(n));
  while (!queue.empty()) {
    const std::int32_t n = queue.front();
    queue.pop_front();
    queued[static_cast<std::size_t>(n)] = false;
    const Node& node = nodes_[static_cast<std::size_t>(n)];
    const Assignment assignment = assign(node, nullptr);
    const std::size_t first = flow_ == Flow::kForward ? node.inputs : 0;
    for (std::size_t i = first; i < node.operands.size(); ++i) {
      const TensorId tensor = node.operands[i];
      if (!extend(tensor, assignment.attribute(i))) continue;
      for (const std::int32_t user : nodes_of_[tensor.index()]) {
        if (user != n) push(user);
      }
    }
  }
}

void Propagation::run() {
  if (flow_ == Flow::kBothWays) settle(false);
  settle(true);
}

}  // namespace foreshard::internal
