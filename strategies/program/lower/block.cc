#include "strategies/program/lower/block.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"

#include "strategies/reshard/reshard.h"

namespace foreshard::lower {
namespace {

using program::Block;
using program::Communication;
using program::Task;

std::int64_t local_elements(const Tensor& tensor, const Attribute& attribute,
                            const std::vector<MeshAxis>& mesh) {
  std::int64_t count = 1;
  for (const std::int64_t extent : local_shape(tensor.shape, attribute, mesh)) count *= extent;
  return count;
}

Bytes local_bytes(const Tensor& tensor, const Attribute& attribute,
                  const std::vector<MeshAxis>& mesh) {
  return size_of(tensor.dtype) * static_cast<double>(local_elements(tensor, attribute, mesh));
}

// Writes operators of one sharded graph as tasks. Kernels go to the compute stream in order;
// conversions become communication beside them.
class Emitter {
 public:
  Emitter(Block& block, bool overlap) : block_(block), overlap_(overlap) {}

  /// Emits those operators of `sharded` that `wanted` selects.
  template <class Wanted>
  void emit(const ShardedGraph& sharded, Wanted wanted) {
    const Graph& graph = *sharded.graph;
    converted_.clear();
    producer_.clear();
    std::set<TensorId> produced;
    std::vector<std::size_t> selected;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      if (!wanted(graph.operators[i])) continue;
      selected.push_back(i);
      produced.insert(graph.operators[i].outputs.begin(), graph.operators[i].outputs.end());
    }
    for (std::size_t n = 0; n < selected.size(); ++n) {
      const std::size_t i = selected[n];
      for (const std::int32_t c : sharded.operators[i].conversions) convert(sharded, c);
      // A tensor saved earlier can be converted while the operator before its user computes.
      if (overlap_ && n + 1 < selected.size()) {
        for (const std::int32_t c : sharded.operators[selected[n + 1]].conversions) {
          if (!produced.contains(conversion(sharded, c).tensor)) convert(sharded, c);
        }
      }
      kernel(sharded, i);
      for (const std::int32_t c : sharded.after_operator[i]) convert(sharded, c);
      // What others need of the result can be converted at once, beside the operators between.
      for (std::size_t c = 0; c < sharded.conversions.size(); ++c) {
        const TensorId tensor = sharded.conversions[c].tensor;
        if (std::ranges::find(graph.operators[i].outputs, tensor) !=
                graph.operators[i].outputs.end() &&
            used_by(sharded, static_cast<std::int32_t>(c), selected))
          convert(sharded, static_cast<std::int32_t>(c));
      }
    }
  }

 private:
  static const Conversion& conversion(const ShardedGraph& sharded, std::int32_t index) {
    return sharded.conversions[static_cast<std::size_t>(index)];
  }

  static bool used_by(const ShardedGraph& sharded, std::int32_t conversion,
                      const std::vector<std::size_t>& selected) {
    return std::ranges::any_of(selected, [&](std::size_t i) {
      return std::ranges::find(sharded.operators[i].conversions, conversion) !=
             sharded.operators[i].conversions.end();
    });
  }

  void convert(const ShardedGraph& sharded, std::int32_t index) {
    if (converted_.contains(index)) return;
    const Conversion& wish = conversion(sharded, index);
    const Tensor& tensor = (*sharded.graph)[wish.tensor];
    std::vector<std::int32_t> after;
    if (const auto it = producer_.find(wish.tensor); it != producer_.end()) {
      after.push_back(it->second);
    } else if (last_kernel_ >= 0) {
      after.push_back(last_kernel_);
    }
    // A tensor that comes from the block before is ready when the compute stream gets here; without
    // a kernel to wait for, its conversion takes its place on that stream.
    const auto where = stream(after.empty() ? kComputeStream : kTensorStream);
    const auto last = append_reshard(block_, tensor.name, tensor.shape, tensor.dtype, wish.from,
                                     wish.to, sharded.mesh, where, std::move(after));
    converted_[index] = last;
    if (last) pending_ = *last;
    // The tensor now lies as its pin says: later users wait for the conversion.
    if (tensor.pinned && *tensor.pinned == wish.to && last) producer_[wish.tensor] = *last;
  }

  void kernel(const ShardedGraph& sharded, std::size_t i) {
    const Operator& op = sharded.graph->operators[i];
    const ShardedOperator& how = sharded.operators[i];
    std::set<std::int32_t> after;
    for (const std::int32_t c : how.conversions) {
      if (const auto last = converted_.at(c)) after.insert(*last);
    }
    for (const TensorId input : op.inputs) {
      const auto it = producer_.find(input);
      if (it != producer_.end() && std::holds_alternative<Communication>(
                                       block_.tasks[static_cast<std::size_t>(it->second)].body))
        after.insert(it->second);
    }
    if (!overlap_ && pending_ >= 0) after.insert(std::exchange(pending_, -1));

    const auto body = kernel_for(sharded, i);
    if (!body) {  // a view: whoever reads it waits for what it views
      for (const TensorId output : op.outputs) {
        if (!after.empty()) producer_[output] = *after.rbegin();
      }
      return;
    }
    Task task{.name = op.name, .body = *body, .stream = stream(kComputeStream)};
    task.after.assign(after.begin(), after.end());
    block_.tasks.push_back(std::move(task));
    last_kernel_ = static_cast<std::int32_t>(block_.tasks.size()) - 1;
    for (const TensorId output : op.outputs) producer_[output] = last_kernel_;
  }

  static std::optional<Kernel> kernel_for(const ShardedGraph& sharded, std::size_t i) {
    const Graph& graph = *sharded.graph;
    const Operator& op = graph.operators[i];
    std::vector<std::vector<std::int64_t>> local;
    std::vector<std::vector<std::int64_t>> whole;
    std::size_t operand = 0;
    const auto add = [&](TensorId id) {
      whole.push_back(graph[id].shape);
      local.push_back(
          local_shape(graph[id].shape, sharded.operators[i].operands[operand++], sharded.mesh));
    };
    for (const TensorId id : op.inputs) add(id);
    for (const TensorId id : op.outputs) add(id);
    const TensorId main =
        op.kind == OperatorKind::kPass && op.extent >= static_cast<std::int32_t>(op.inputs.size())
            ? op.outputs[static_cast<std::size_t>(op.extent) - op.inputs.size()]
            : op.inputs[op.kind == OperatorKind::kPass ? static_cast<std::size_t>(op.extent) : 0];
    return kernel_of(op, local, whole, graph[main].dtype);
  }

  Block& block_;
  bool overlap_;
  std::map<std::int32_t, std::optional<std::int32_t>> converted_;
  std::map<TensorId, std::int32_t> producer_;  // the task after which a tensor can be used
  std::int32_t last_kernel_ = -1;
  std::int32_t pending_ = -1;  // communication that the next kernel waits for without overlap
};

// Peak of the bytes that live only while `operators` run in order: tensors and conversions that
// they produce, from there to the last reader; saved tensors, parameters and their gradients are
// booked elsewhere.
Bytes transient_peak(const ShardedGraph& sharded, const std::set<TensorId>& kept) {
  const Graph& graph = *sharded.graph;
  std::map<TensorId, std::size_t> last_use;
  std::map<std::int32_t, std::size_t> last_conversion_use;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const TensorId id : graph.operators[i].inputs) last_use[storage_of(graph, id)] = i;
    for (const std::int32_t c : sharded.operators[i].conversions) last_conversion_use[c] = i;
  }
  for (const TensorId id : graph.outputs) last_use[id] = graph.operators.size();

  Bytes live;
  Bytes peak;
  std::map<std::size_t, Bytes> expire;
  std::set<std::int32_t> done;
  const auto appear = [&](Bytes bytes, std::size_t until) {
    live += bytes;
    expire[until] += bytes;
  };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    for (const std::int32_t c : sharded.operators[i].conversions) {
      if (!done.insert(c).second) continue;
      const Conversion& wish = sharded.conversions[static_cast<std::size_t>(c)];
      appear(local_bytes(graph[wish.tensor], wish.to, sharded.mesh), last_conversion_use[c]);
    }
    if (op.kind != OperatorKind::kView) {
      for (std::size_t o = 0; o < op.outputs.size(); ++o) {
        const TensorId id = op.outputs[o];
        if (kept.contains(id) || graph[id].role != TensorRole::kActivation) continue;
        const auto use = last_use.find(id);
        appear(local_bytes(graph[id], sharded.operators[i].operands[op.inputs.size() + o],
                           sharded.mesh),
               use == last_use.end() ? i : use->second);
      }
    }
    peak = std::max(peak, live);
    if (const auto it = expire.find(i); it != expire.end()) live -= it->second;
  }
  return peak;
}

std::vector<ParameterGroup> parameter_groups(const ShardedGraph& forward,
                                             const ShardedGraph& backward, Axis data) {
  // A gradient is named after its parameter; the axes it is partial over, besides data, decide.
  std::map<std::string, std::vector<Axis>> partial;
  for (std::size_t i = 0; i < backward.graph->tensors.size(); ++i) {
    const Tensor& tensor = backward.graph->tensors[i];
    if (tensor.role != TensorRole::kParameterGradient) continue;
    auto axes = axes_of(backward.attributes[i].partial);
    std::erase(axes, data);
    partial[tensor.name] = std::move(axes);
  }
  std::map<std::vector<Axis>, std::int64_t> elements_of;
  for (const Tensor& tensor : forward.graph->tensors) {
    if (tensor.role != TensorRole::kParameter) continue;
    elements_of[partial["d." + tensor.name]] +=
        local_elements(tensor, *tensor.pinned, forward.mesh);
  }
  std::vector<ParameterGroup> groups;
  groups.reserve(elements_of.size());
  for (const auto& [axes, count] : elements_of) groups.push_back({axes, count});
  return groups;
}

Bytes sum_bytes(const std::set<TensorId>& tensors, const ShardedGraph& sharded) {
  Bytes sum;
  for (const TensorId id : tensors)
    sum += local_bytes((*sharded.graph)[id], sharded.attributes[id.index()], sharded.mesh);
  return sum;
}

// What stays between forward and backward under `recompute`.
std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward, Recompute recompute) {
  const auto all = saved_tensors(forward, backward);
  std::set<TensorId> kept(all.begin(), all.end());
  if (recompute == Recompute::kFull) return {forward.inputs.begin(), forward.inputs.end()};
  if (recompute == Recompute::kSelective) {
    for (const Operator& op : forward.operators) {
      if (!op.core_attention) continue;
      for (const TensorId id : op.outputs) kept.erase(storage_of(forward, id));
    }
    std::set<TensorId> made;
    for (const Operator& op : forward.operators) {
      if (!op.core_attention) continue;
      made.insert(op.outputs.begin(), op.outputs.end());
    }
    for (const Operator& op : forward.operators) {
      if (!op.core_attention) continue;
      for (const TensorId id : op.inputs) {
        if (!made.contains(id)) kept.insert(storage_of(forward, id));
      }
    }
  }
  return kept;
}

Result<LoweredBlock> lower_block(const Graph& graph, const std::vector<MeshAxis>& mesh, Axis data,
                                 const Strategy& strategy, Recompute recompute) {
  const Framework& framework = *strategy.framework;
  auto forward = shard(graph, mesh);
  if (!forward) return forward.error();
  const Graph back =
      backward_graph(*forward, {.fused_accumulation = framework.fused_gradient_accumulation});
  auto backward = shard(back, mesh);
  if (!backward) return backward.error();

  LoweredBlock lowered;
  lowered.forward.name = graph.name + ".forward";
  lowered.backward.name = graph.name + ".backward";
  const auto all = [](const Operator&) { return true; };
  // A forward pass has nothing to put beside a reshard: each operator needs the one before.
  Emitter(lowered.forward, false).emit(*forward, all);

  Emitter backward_tasks(lowered.backward, framework.overlap_tensor_gradients);
  if (recompute == Recompute::kFull) {
    backward_tasks.emit(*forward, all);
  } else if (recompute == Recompute::kSelective) {
    backward_tasks.emit(*forward, [](const Operator& op) { return op.core_attention; });
  }
  backward_tasks.emit(*backward, all);

  const auto everything = saved_tensors(graph, back);
  const std::set<TensorId> saved(everything.begin(), everything.end());
  const std::set<TensorId> kept = kept_tensors(graph, back, recompute);
  lowered.saved = sum_bytes(kept, *forward);
  lowered.transient_forward = transient_peak(*forward, kept);
  lowered.transient_backward = transient_peak(*backward, saved);
  std::set<TensorId> recomputed;
  for (const TensorId id : saved) {
    if (!kept.contains(id)) recomputed.insert(id);
  }
  lowered.transient_backward += sum_bytes(recomputed, *forward);
  lowered.parameters = parameter_groups(*forward, *backward, data);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role != TensorRole::kParameter) continue;
    lowered.largest_parameter =
        std::max(lowered.largest_parameter, local_elements(tensor, *tensor.pinned, mesh));
  }
  return lowered;
}

}  // namespace

std::vector<program::Stream> streams() {
  return {{"compute"},      {"tensor"},           {"data"},         {"receive_forward"},
          {"send_forward"}, {"receive_backward"}, {"send_backward"}};
}

program::Purpose purpose_of(const MeshAxis& axis) {
  if (axis.name == "tensor") return program::Purpose::kTensor;
  if (axis.name == "pipeline") return program::Purpose::kPipeline;
  return program::Purpose::kData;
}

std::optional<std::int32_t> append_reshard(Block& block, const std::string& name,
                                           const std::vector<std::int64_t>& shape, DType dtype,
                                           const Attribute& from, const Attribute& to,
                                           const std::vector<MeshAxis>& mesh,
                                           program::StreamId where,
                                           std::vector<std::int32_t> after) {
  std::optional<std::int32_t> last;
  for (const auto& step : reshard::plan(shape, size_of(dtype), from, to, mesh)) {
    const auto kind = reshard::collective_of(step.primitive);
    if (!kind) continue;
    const MeshAxis& axis = mesh[static_cast<std::size_t>(step.axis)];
    Task task{.name = std::string(reshard::name_of(step.primitive)) + "." + name,
              .stream = where,
              .after = std::exchange(after, {})};
    task.body = Communication{.kind = *kind,
                              .group = program::AxisGroup{.axes = {step.axis}},
                              .bytes = step.logical,
                              .dtype = dtype,
                              .purpose = purpose_of(axis),
                              .tag = axis.name};
    block.tasks.push_back(std::move(task));
    last = static_cast<std::int32_t>(block.tasks.size()) - 1;
    after = {*last};
  }
  return last;
}

Result<LoweredModel> lower_blocks(const Model& model, const Strategy& strategy) {
  LoweredModel lowered;
  for (const std::string& name : strategy.rank_order) {
    lowered.mesh.push_back({name, name == "tensor" ? strategy.tensor_parallel
                                  : name == "data" ? strategy.data_parallel
                                                   : strategy.pipeline_parallel});
  }
  const auto data = static_cast<Axis>(
      std::ranges::find(lowered.mesh, std::string("data"), &MeshAxis::name) - lowered.mesh.begin());
  const Framework& framework = *strategy.framework;
  const TransformerOptions options{
      .mesh = lowered.mesh,
      .batch = strategy.micro_batch * strategy.data_parallel,
      .sequence_parallel = strategy.sequence_parallel && strategy.tensor_parallel > 1,
      .flash_attention = framework.flash_attention,
      .vocabulary_multiple = framework.vocabulary_multiple * strategy.tensor_parallel,
      .dtype = strategy.precision};
  const TransformerGraphs graphs = transformer_graphs(model, options);

  struct Part {
    const Graph& graph;
    Recompute recompute;
    LoweredBlock& into;
  };
  for (const Part& part : {Part{graphs.embedding, Recompute::kNone, lowered.embedding},
                           Part{graphs.layer, strategy.recompute, lowered.layer},
                           Part{graphs.head, Recompute::kNone, lowered.head}}) {
    auto block = lower_block(part.graph, lowered.mesh, data, strategy, part.recompute);
    if (!block) return block.error();
    part.into = *std::move(block);
  }
  const Tensor& boundary = graphs.layer[graphs.layer.inputs.front()];
  lowered.boundary_shape = boundary.shape;
  lowered.boundary = *boundary.pinned;
  return lowered;
}

}  // namespace foreshard::lower
