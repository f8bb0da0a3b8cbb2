#include "tests/oracle/graph.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tests/oracle/reshard.h"

#include "strategies/reshard/within_mesh.h"

namespace foreshard::execute {
namespace {

class GraphRunner {
 public:
  GraphRunner(const ShardedGraph& sharded, const GraphRun& how, Tensors& tensors)
      : sharded_(sharded), graph_(*sharded.graph), how_(how), tensors_(tensors) {
    FORESHARD_CHECK(how.mesh.axes.size() == sharded.mesh.size());
  }

  Status run() {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (how_.wanted && !how_.wanted(i)) continue;
      FORESHARD_TRY(run_operator(i));
    }
    return {};
  }

 private:
  Status run_operator(std::size_t i) {
    const Operator& op = graph_.operators[i];
    const ShardedOperator& how = sharded_.operators[i];
    if (!can_compute(op))
      return Error{Error::Code::kUnsupported, graph_.name + ": operator '" + op.name + "' (" +
                                                  op.type + ") is not executed on arrays"};
    std::vector<const Distributed*> inputs;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      FORESHARD_ASSIGN(const auto input, find(op, op.inputs[k]));
      const Distributed* lies = input;
      if (lies->attribute != how.operands[k]) {
        FORESHARD_ASSIGN(const auto converted,
                         converted_input(op, how, op.inputs[k], how.operands[k], *lies));
        lies = converted;
      }
      inputs.push_back(lies);
    }
    compute_everywhere(op, how, inputs);
    for (const std::int32_t c : sharded_.after_operator[i]) {
      const Conversion& wish = sharded_.conversions[static_cast<std::size_t>(c)];
      Distributed& lies = tensors_.at(wish.tensor);
      if (lies.attribute != wish.from) return misplaced(op, wish.tensor, lies.attribute, wish.from);
      lies.shards = convert(lies.shards, graph_[wish.tensor].shape, wish.from, wish.to, how_.mesh);
      lies.attribute = wish.to;
    }
    return {};
  }

  void compute_everywhere(const Operator& op, const ShardedOperator& how,
                          const std::vector<const Distributed*>& inputs) {
    const std::vector<TensorId>& ids = op.inputs;
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

Status run(const ShardedGraph& sharded, const GraphRun& how, Tensors& tensors) {
  return GraphRunner(sharded, how, tensors).run();
}

Shards<double> convert(const Shards<double>& shards, const Shape& shape, const Attribute& from,
                       const Attribute& to, const ProcessMesh& mesh) {
  const reshard::TensorSpec tensor{.dtype = DType::kFp32, .shape = shape};
  Shards<double> current = shards;
  for (const auto& step : reshard::steps_within(tensor, from, to, mesh.axes)) {
    current = execute({.primitive = step.primitive,
                       .from = {mesh, step.from},
                       .to = {mesh, step.to},
                       .axes = step.axes},
                      tensor, current)
                  .shards;
  }
  return current;
}

}  // namespace foreshard::execute
