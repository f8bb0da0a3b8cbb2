#include "strategies/execute/graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

#include "strategies/execute/reshard.h"
#include "strategies/reshard/direct.h"

namespace foreshard::execute {
namespace {

// `axis` does in the result what it does in `to`; the others what they do in `from`.
Attribute with_axis_of(const Attribute& from, const Attribute& to, Axis axis) {
  Attribute next = from;
  for (auto& axes : next.dims) std::erase(axes, axis);
  std::erase_if(next.partial, [&](const Partial& partial) { return partial.axis == axis; });
  const AxisState state = state_of(to, axis);
  if (state.kind == AxisState::Kind::kPartial) {
    next.partial.push_back({axis, state.reduction});
    std::ranges::sort(next.partial);
  } else if (state.kind == AxisState::Kind::kSplit) {
    next.dims[static_cast<std::size_t>(state.dim)].push_back(axis);
  }
  return next;
}

// Axes that split dimensions, those of one rank left out.
std::vector<std::vector<Axis>> splits_of(const Attribute& attribute, const ProcessMesh& mesh) {
  std::vector<std::vector<Axis>> dims = attribute.dims;
  for (auto& axes : dims)
    std::erase_if(axes,
                  [&](Axis axis) { return mesh.axes[static_cast<std::size_t>(axis)].size == 1; });
  return dims;
}

// The direct steps with their layouts; nothing if they cannot be taken one by one: slices of
// unequal size, or a major axis that goes before a minor one, so that what is between is no slice.
std::optional<std::vector<reshard::Step>> direct_layouts(const reshard::TensorSpec& tensor,
                                                         const Attribute& from, const Attribute& to,
                                                         const ProcessMesh& mesh) {
  if (!from.sizes.empty() || !to.sizes.empty()) return std::nullopt;
  std::vector<reshard::Step> steps;
  Attribute lies = from;
  for (const auto& [primitive, axis, volume] :
       reshard::direct_steps(tensor.shape, size_of(tensor.dtype), from, to, mesh.axes)) {
    for (const auto& axes : splits_of(lies, mesh)) {
      const auto it = std::ranges::find(axes, axis);
      if (it != axes.end() && it + 1 != axes.end()) return std::nullopt;
    }
    Attribute next = with_axis_of(lies, to, axis);
    steps.push_back(
        {.primitive = primitive, .from = {mesh, lies}, .to = {mesh, next}, .axes = {axis}});
    lies = std::move(next);
  }
  if (splits_of(lies, mesh) != splits_of(to, mesh)) return std::nullopt;
  return steps;
}

class GraphRunner {
 public:
  GraphRunner(const ShardedGraph& sharded, const GraphRun& how, Tensors& tensors)
      : sharded_(sharded), graph_(*sharded.graph), how_(how), tensors_(tensors) {
    FORESHARD_CHECK(how.mesh.axes.size() == sharded.mesh.size());
  }

  std::optional<Error> run() {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (how_.wanted && !how_.wanted(graph_.operators[i])) continue;
      if (auto error = run_operator(i)) return error;
    }
    return std::nullopt;
  }

 private:
  std::optional<Error> run_operator(std::size_t i) {
    const Operator& op = graph_.operators[i];
    const ShardedOperator& how = sharded_.operators[i];
    if (!can_compute(op))
      return Error{Error::Code::kUnsupported, graph_.name + ": operator '" + op.name + "' (" +
                                                  op.type + ") is not executed on arrays"};
    std::vector<const Distributed*> inputs;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const auto input = find(op, op.inputs[k]);
      if (!input) return input.error();
      const Distributed* lies = *input;
      if (lies->attribute != how.operands[k]) {
        const auto converted = converted_input(op, how, op.inputs[k], how.operands[k], *lies);
        if (!converted) return converted.error();
        lies = *converted;
      }
      inputs.push_back(lies);
    }
    if (op.fused_bias.valid()) {
      const auto bias = find(op, op.fused_bias);
      if (!bias) return bias.error();
      inputs.push_back(*bias);
    }
    compute_everywhere(op, how, inputs);
    for (const std::int32_t c : sharded_.after_operator[i]) {
      const Conversion& wish = sharded_.conversions[static_cast<std::size_t>(c)];
      Distributed& lies = tensors_.at(wish.tensor);
      if (lies.attribute != wish.from) return misplaced(op, wish.tensor, lies.attribute, wish.from);
      lies.shards = convert(lies.shards, graph_[wish.tensor].shape, wish.from, wish.to, how_.mesh);
      lies.attribute = wish.to;
    }
    return std::nullopt;
  }

  void compute_everywhere(const Operator& op, const ShardedOperator& how,
                          const std::vector<const Distributed*>& inputs) {
    std::vector<TensorId> ids = op.inputs;
    if (op.fused_bias.valid()) ids.push_back(op.fused_bias);
    std::vector<Slices> slices;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      slices.emplace_back(Layout{how_.mesh, inputs[k]->attribute}, graph_[ids[k]].shape);
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const Attribute& attribute = how.operands[op.inputs.size() + o];
      slices.emplace_back(Layout{how_.mesh, attribute}, graph_[op.outputs[o]].shape);
      tensors_[op.outputs[o]] = {attribute, {}};
    }
    // Those at the first coordinate of every axis over which the result is summed later.
    const auto& summed = how.operands[op.inputs.size()].partial;
    for (std::int64_t p = 0; p < how_.mesh.size(); ++p) {
      std::vector<Operand> in;
      for (std::size_t k = 0; k < inputs.size(); ++k)
        in.push_back({graph_[ids[k]].shape, slices[k].of(p),
                      inputs[k]->shards.of_position[static_cast<std::size_t>(p)]});
      std::vector<Operand> out;
      for (std::size_t o = 0; o < op.outputs.size(); ++o)
        out.push_back(unwritten(graph_[op.outputs[o]].shape, slices[inputs.size() + o].of(p)));
      KernelContext context = how_.context;
      context.first_summand = std::ranges::all_of(summed, [&](const Partial& partial) {
        return coordinate_of(how_.mesh, p, partial.axis) == 0;
      });
      compute(op, in, out, context);
      for (std::size_t o = 0; o < out.size(); ++o)
        tensors_[op.outputs[o]].shards.of_position.push_back(std::move(out[o].values));
    }
    for (const TensorId id : op.outputs) forget_conversions_of(id);
  }

  Result<const Distributed*> find(const Operator& op, TensorId id) const {
    const auto it = tensors_.find(id);
    if (it != tensors_.end()) return &it->second;
    return Error{Error::Code::kInvalidInput, graph_.name + ": operator '" + op.name + "' reads '" +
                                                 graph_[id].name + "', which nobody made"};
  }

  Result<const Distributed*> converted_input(const Operator& op, const ShardedOperator& how,
                                             TensorId id, const Attribute& to,
                                             const Distributed& lies) {
    for (const std::int32_t c : how.conversions) {
      const Conversion& wish = sharded_.conversions[static_cast<std::size_t>(c)];
      if (wish.tensor != id || wish.to != to || wish.from != lies.attribute) continue;
      const auto [it, is_new] = converted_.try_emplace(c);
      if (is_new)
        it->second = {to, convert(lies.shards, graph_[id].shape, wish.from, to, how_.mesh)};
      return &it->second;
    }
    return misplaced(op, id, lies.attribute, to);
  }

  void forget_conversions_of(TensorId id) {
    std::erase_if(converted_, [&](const auto& entry) {
      return sharded_.conversions[static_cast<std::size_t>(entry.first)].tensor == id;
    });
  }

  Error misplaced(const Operator& op, TensorId id, const Attribute& lies,
                  const Attribute& wanted) const {
    return {Error::Code::kInvalidInput,
            graph_.name + ": operator '" + op.name + "' needs '" + graph_[id].name + "' as " +
                describe(wanted, sharded_.mesh) + ", it lies as " + describe(lies, sharded_.mesh) +
                ", and the graph has no conversion"};
  }

  const ShardedGraph& sharded_;
  const Graph& graph_;
  const GraphRun& how_;
  Tensors& tensors_;
  std::map<std::int32_t, Distributed> converted_;
};

}  // namespace

std::optional<Error> run(const ShardedGraph& sharded, const GraphRun& how, Tensors& tensors) {
  return GraphRunner(sharded, how, tensors).run();
}

Shards<double> convert(const Shards<double>& shards, const Shape& shape, const Attribute& from,
                       const Attribute& to, const ProcessMesh& mesh) {
  const reshard::TensorSpec tensor{.dtype = DType::kFp32, .shape = shape};
  const auto steps = direct_layouts(tensor, from, to, mesh);
  if (steps) {
    Shards<double> current = shards;
    for (const reshard::Step& step : *steps) current = execute(step, tensor, current).shards;
    return current;
  }
  const auto price = [&](const reshard::Step& step) -> Result<Seconds> {
    return Seconds::from_base(reshard::volume_of(step, tensor).exact_total.in_base());
  };
  const auto candidates = reshard::candidates(tensor, {mesh, from}, {mesh, to}, price);
  FORESHARD_CHECK(candidates.has_value());
  return execute(candidates->plans.front(), tensor, shards).shards;
}

}  // namespace foreshard::execute
