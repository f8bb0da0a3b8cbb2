#include "strategies/graph/distribute.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/graph/internal/propagation.h"
#include "strategies/graph/layout.h"

namespace foreshard {
namespace {

using internal::Assignment;
using internal::AxisConflict;
using internal::Node;
using internal::Propagation;
using Pins = std::vector<const Attribute*>;

Pins pins_of(const Graph& graph) {
  Pins pins;
  pins.reserve(graph.tensors.size());
  for (const Tensor& tensor : graph.tensors)
    pins.push_back(tensor.pinned ? &*tensor.pinned : nullptr);
  return pins;
}

// Checks that every annotation, also in bodies, keeps the constraints of layout.h.
class Checker {
 public:
  explicit Checker(const std::vector<MeshAxis>& mesh) : layout_{.mesh = mesh_from(mesh)} {}

  Status check(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors) {
      if (!tensor.pinned) continue;
      const auto [known, added] = faults_.try_emplace({*tensor.pinned, tensor.shape});
      if (added) {
        layout_.attribute = *tensor.pinned;
        known->second = fault_in(layout_, tensor.shape);
      }
      if (known->second)
        return Error{Error::Code::kInvalidInput,
                     fmt::format("tensor '{}': {}", tensor.name, *known->second)};
    }
    for (const Graph& body : graph.bodies) {
      FORESHARD_TRY(check(body));
    }
    return {};
  }

 private:
  Layout layout_;
  std::map<std::pair<Attribute, Shape>, std::optional<std::string>> faults_;
};

class Distributor {
 public:
  Distributor(const Graph& graph, const std::vector<MeshAxis>& mesh, Flow flow,
              BackwardPass backward, Pins pins)
      : graph_(graph),
        mesh_(mesh),
        flow_(flow),
        backward_(backward),
        propagation_(graph, mesh, flow, std::move(pins)) {
    sharded_.graph = &graph;
    sharded_.mesh = mesh;
  }

  Result<ShardedGraph> run() {
    propagation_.run();
    sharded_.attributes = propagation_.attributes();
    readers_.resize(graph_.tensors.size());
    needs_.resize(graph_.operators.size());
    conversions_of_.resize(graph_.tensors.size());
    for (const Node& node : propagation_.nodes()) {
      if (node.op < 0) continue;
      FORESHARD_TRY(plan(node));
    }
    is_output_.resize(graph_.tensors.size());
    for (const TensorId id : graph_.outputs) is_output_[id.index()] = true;
    defer();
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) resolve(i);
    sharded_.bodies.resize(graph_.bodies.size());
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      FORESHARD_TRY(enter(i));
    }
    return std::move(sharded_);
  }

 private:
  struct Reader {
    std::size_t op;
    std::size_t operand;
  };

  // Notes the attributes that the operator needs of its operands, and who reads each tensor.
  Status plan(const Node& node) {
    const auto op = static_cast<std::size_t>(node.op);
    std::vector<AxisConflict> clashes;
    const Assignment assignment = propagation_.assign(node, &clashes);
    for (const AxisConflict& clash : clashes) {
      std::string text = remark(node, clash);
      if (flow_ == Flow::kForward && !divides(node, clash))
        return Error{Error::Code::kInvalidInput, std::move(text)};
      sharded_.remarks.push_back(std::move(text));
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      Attribute attribute = assignment.attribute(i);
      if (i >= node.inputs) attribute.partial = assignment.partial(i);
      needs_[op].push_back(std::move(attribute));
      if (i < node.inputs) readers_[node.operands[i].index()].push_back({op, i});
    }
    linearity_.push_back(node.rule->linearity);
    return {};
  }

  // Whether the axis that was refused would divide the factor.
  bool divides(const Node& node, const AxisConflict& clash) const {
    return clash.factor < 0 || node.rule->factors[static_cast<std::size_t>(clash.factor)].size %
                                       mesh_[static_cast<std::size_t>(clash.axis)].size ==
                                   0;
  }

  std::string remark(const Node& node, const AxisConflict& clash) const {
    const Operator& op = graph_.operators[static_cast<std::size_t>(node.op)];
    const TensorId tensor = node.operands[clash.operand];
    const std::string& axis = mesh_[static_cast<std::size_t>(clash.axis)].name;
    const auto name = [&](std::int32_t factor) {
      return node.rule->factors[static_cast<std::size_t>(factor)].name;
    };
    std::string why = "a dimension that the operator repeats or makes cannot be split";
    if (clash.factor >= 0) {
      const Factor& factor = node.rule->factors[static_cast<std::size_t>(clash.factor)];
      if (clash.holder >= 0) {
        why = fmt::format("axis '{}' splits its factor '{}' already, and cannot split '{}' as well",
                          axis, name(clash.holder), name(clash.factor));
      } else if (factor.whole) {
        why = fmt::format("its factor '{}' must stay whole", factor.name);
      } else {
        why =
            fmt::format("its factor '{}' of size {} is split otherwise", factor.name, factor.size);
      }
    }
    return fmt::format("operator '{}' cannot take tensor '{}' in its sharding {}: {} (rule {})",
                       op.name, graph_[tensor].name,
                       describe(propagation_.attributes()[tensor.index()], mesh_), why,
                       describe(*node.rule));
  }

  void resolve(std::size_t i) {
    const Operator& op = graph_.operators[i];
    ShardedOperator result{.operands = std::move(needs_[i]), .conversions = {}};
    std::vector<std::int32_t> after;
    const std::vector<Partial>& carried = carried_[i];
    for (std::size_t o = 0; o < op.inputs.size(); ++o) {
      const TensorId tensor = op.inputs[o];
      if (deferred_[tensor.index()]) result.operands[o].partial = carried;
      if (sharded_.attributes[tensor.index()] == result.operands[o]) continue;
      const std::int32_t conversion = convert(tensor, result.operands[o]);
      if (std::ranges::find(result.conversions, conversion) == result.conversions.end())
        result.conversions.push_back(conversion);
    }
    for (std::size_t o = op.inputs.size(); o < result.operands.size(); ++o) {
      const TensorId tensor = op.outputs[o - op.inputs.size()];
      Attribute& made = result.operands[o];
      made.partial.insert(made.partial.end(), carried.begin(), carried.end());
      std::ranges::sort(made.partial);
      const Attribute lies = settled(tensor, made);
      sharded_.attributes[tensor.index()] = made;
      if (lies != made) after.push_back(convert(tensor, lies));
      sharded_.attributes[tensor.index()] = lies;
    }
    sharded_.operators.push_back(std::move(result));
    sharded_.after_operator.push_back(std::move(after));
  }

  // How an output that the operator leaves as `made` lies for its readers.
  Attribute settled(TensorId tensor, const Attribute& made) {
    const Attribute* pin = propagation_.pin(tensor);
    if (graph_[tensor].role != TensorRole::kActivation) {
      Attribute lies = propagation_.attributes()[tensor.index()];
      lies.partial = made.partial;
      for (const Partial& partial : made.partial)
        if (state_of(lies, partial.axis).kind == AxisState::Kind::kSplit) return made;
      return lies;
    }
    if (pin != nullptr) return propagation_.attributes()[tensor.index()];
    if (made.partial.empty() || deferred_[tensor.index()] || flow_ == Flow::kForward) return made;
    const auto& readers = readers_[tensor.index()];
    const auto need = [&](const Reader& reader) { return needs_[reader.op][reader.operand]; };
    if (!readers.empty()) {
      const Attribute first = need(readers.front());
      if (std::ranges::all_of(readers, [&](const Reader& r) { return need(r) == first; }))
        return first;
    }
    return propagation_.attributes()[tensor.index()];
  }

  // Finds the tensors that stay summands (rule 6). Starts with all candidates and removes, until
  // nothing changes, tensors that some reader cannot read as summands, given the remaining ones. If
  // a product could then read either of its two inputs as summands, the one that it does not pass
  // on is removed.
  // Cost: O(operands) per round; further rounds only for readers whose inputs differ.
  void defer() {
    deferred_.resize(graph_.tensors.size());
    for (std::size_t t = 0; t < deferred_.size(); ++t) {
      const TensorRole role = graph_.tensors[t].role;
      deferred_[t] = !is_output_[t] && !readers_[t].empty() &&
                     (role == TensorRole::kParameterGradient ||
                      (role == TensorRole::kActivation &&
                       propagation_.pin(TensorId{static_cast<std::int64_t>(t)}) == nullptr));
    }
    carried_.resize(graph_.operators.size());
    made_.resize(graph_.tensors.size());
    const auto keep_only = [&](auto stays) {
      bool changes = false;
      for (std::size_t t = 0; t < deferred_.size(); ++t) {
        if (!deferred_[t] || stays(t)) continue;
        deferred_[t] = false;
        changes = true;
      }
      return changes;
    };
    do {
      for (std::size_t i = 0; i < graph_.operators.size(); ++i) carry(i);
    } while (keep_only([&](std::size_t t) { return can_stay_summands(t); }) ||
             keep_only([&](std::size_t t) { return is_carried(t); }));
  }

  // Sets the summands that operator `i` passes on from its inputs, and so its outputs' summands.
  void carry(std::size_t i) {
    const Operator& op = graph_.operators[i];
    carried_[i].clear();
    if (const auto carrier = carrier_of(i)) carried_[i] = made_[op.inputs[*carrier].index()];
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      auto& partial = made_[op.outputs[o].index()];
      partial = needs_[i][op.inputs.size() + o].partial;
      partial.insert(partial.end(), carried_[i].begin(), carried_[i].end());
      std::ranges::sort(partial);
    }
  }

  // The operand whose summands operator `i` can pass on: for a sum the first one, if all are
  // partial over the same axes; for a product its largest partial operand.
  std::optional<std::size_t> carrier_of(std::size_t i) const {
    const Operator& op = graph_.operators[i];
    const auto is_partial = [&](TensorId in) {
      return deferred_[in.index()] && !made_[in.index()].empty();
    };
    std::optional<std::size_t> carrier;
    if (linearity_[i] == Linearity::kJoint) {
      const bool alike = !op.inputs.empty() && std::ranges::all_of(op.inputs, [&](TensorId in) {
        return is_partial(in) && made_[in.index()] == made_[op.inputs[0].index()];
      });
      if (alike) carrier = 0;
    } else if (linearity_[i] == Linearity::kSeparate && backward_ == BackwardPass::kNone) {
      for (std::size_t o = 0; o < op.inputs.size(); ++o)
        if (is_partial(op.inputs[o]) && (!carrier || elements_of(i, o) > elements_of(i, *carrier)))
          carrier = o;
    }
    return carrier;
  }

  // Elements of operand `o` of operator `i` on the rank with the largest slice.
  std::int64_t elements_of(std::size_t i, std::size_t o) const {
    const Operator& op = graph_.operators[i];
    const TensorId id = o < op.inputs.size() ? op.inputs[o] : op.outputs[o - op.inputs.size()];
    return elements(
        {.name = {}, .shape = largest_local_shape(graph_[id].shape, needs_[i][o], mesh_)});
  }

  // Whether all readers can work on the summands and split nothing over their axes, and their
  // results together are no more to reduce than the tensor itself.
  bool can_stay_summands(std::size_t tensor) const {
    const auto& partial = made_[tensor];
    const auto is_sum = [](const Partial& p) { return p.reduction == Reduction::kSum; };
    if (partial.empty() || !std::ranges::all_of(partial, is_sum)) return false;
    std::int64_t results = 0;
    std::set<std::size_t> operators;
    for (const Reader& reader : readers_[tensor]) {
      if (!works_on_summands(reader, partial)) return false;
      if (operators.insert(reader.op).second) results += elements_to_reduce(reader.op);
    }
    const Reader& first = readers_[tensor].front();
    return results <= elements_of(first.op, first.operand);
  }

  bool works_on_summands(const Reader& reader, const std::vector<Partial>& partial) const {
    const bool is_linear = linearity_[reader.op] == Linearity::kJoint
                               ? carried_[reader.op] == partial
                               : carrier_of(reader.op).has_value();
    return is_linear && std::ranges::all_of(needs_[reader.op], [&](const Attribute& need) {
             return std::ranges::all_of(partial, [&](const Partial& p) {
               return state_of(need, p.axis).kind == AxisState::Kind::kReplicated;
             });
           });
  }

  // Whether every product among the readers passes on the summands of this tensor, not of its other
  // operand: a product is linear in one operand at a time.
  bool is_carried(std::size_t tensor) const {
    return std::ranges::all_of(readers_[tensor], [&](const Reader& reader) {
      if (linearity_[reader.op] == Linearity::kJoint) return true;
      const auto& inputs = graph_.operators[reader.op].inputs;
      return carrier_of(reader.op) == reader.operand &&
             std::ranges::count(inputs, inputs[reader.operand]) == 1;
    });
  }

  // Elements of the operator's results that remain to be reduced. Gradients of parameters that a
  // sum makes stay summands anyway and do not count; gradients that a product makes count, as they
  // would be reduced over one axis more.
  std::int64_t elements_to_reduce(std::size_t i) const {
    const Operator& op = graph_.operators[i];
    std::int64_t sum = 0;
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      if (linearity_[i] == Linearity::kSeparate ||
          graph_[op.outputs[o]].role != TensorRole::kParameterGradient)
        sum += elements_of(i, op.inputs.size() + o);
    return sum;
  }

  std::int32_t convert(TensorId tensor, const Attribute& to) {
    auto& known = conversions_of_[tensor.index()];
    const Attribute& from = sharded_.attributes[tensor.index()];
    for (const std::int32_t index : known) {
      const Conversion& wish = sharded_.conversions[static_cast<std::size_t>(index)];
      if (wish.from == from && wish.to == to) return index;
    }
    known.push_back(static_cast<std::int32_t>(sharded_.conversions.size()));
    sharded_.conversions.push_back({tensor, from, to});
    return known.back();
  }

  // Distributes the bodies of operator `i`. Their inputs and outputs are pinned as the operator's
  // operands.
  Status enter(std::size_t i) {
    for (const std::int32_t index : graph_.operators[i].bodies) {
      const auto at = static_cast<std::size_t>(index);
      const Graph& body = graph_.bodies[at];
      const auto& operands = sharded_.operators[i].operands;
      Pins pins = pins_of(body);
      FORESHARD_CHECK(body.inputs.size() + body.outputs.size() == operands.size());
      for (std::size_t o = 0; o < body.inputs.size(); ++o)
        pins[body.inputs[o].index()] = &operands[o];
      for (std::size_t o = 0; o < body.outputs.size(); ++o)
        pins[body.outputs[o].index()] = &operands[body.inputs.size() + o];
      FORESHARD_ASSIGN(auto sharded,
                       Distributor(body, mesh_, flow_, backward_, std::move(pins)).run());
      for (const std::string& line : sharded.remarks)
        sharded_.remarks.push_back("in '" + graph_.operators[i].name + "': " + line);
      sharded_.bodies[at] = std::move(sharded);
    }
    return {};
  }

  const Graph& graph_;
  const std::vector<MeshAxis>& mesh_;
  Flow flow_;
  BackwardPass backward_;
  Propagation propagation_;
  ShardedGraph sharded_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<std::vector<Attribute>> needs_;  // operator, operand -> attribute, until resolved
  std::vector<Linearity> linearity_;
  std::vector<std::vector<std::int32_t>> conversions_of_;
  std::vector<bool> is_output_;
  std::vector<bool> deferred_;                 // tensor -> whether it is left as summands
  std::vector<std::vector<Partial>> made_;     // tensor -> summands that its producer leaves
  std::vector<std::vector<Partial>> carried_;  // operator -> summands that it passes on
};

}  // namespace

Result<ShardedGraph> distribute(const Graph& graph, const std::vector<MeshAxis>& mesh, Flow flow,
                                BackwardPass backward) {
  FORESHARD_TRY(Checker(mesh).check(graph));
  return Distributor(graph, mesh, flow, backward, pins_of(graph)).run();
}

std::vector<std::int64_t> largest_local_shape(const std::vector<std::int64_t>& shape,
                                              const Attribute& attribute,
                                              const std::vector<MeshAxis>& mesh) {
  std::vector<std::int64_t> local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < attribute.sizes.size() && !attribute.sizes[d].empty()) {
      local[d] = *std::ranges::max_element(attribute.sizes[d]);
      continue;
    }
    const std::int64_t parts = ways(attribute.dims[d], mesh);
    local[d] = (shape[d] + parts - 1) / parts;
  }
  return local;
}

}  // namespace foreshard
