#include "strategies/program/lower/block.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "base/check.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/emitter.h"
#include "strategies/program/lower/exchanges.h"
#include "strategies/program/lower/legacy_behavior.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/purpose.h"
#include "strategies/program/lower/quantized_weights.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::lower {
namespace {

using program::Block;
using program::Communication;
using program::Task;

// The last kernel or communication on the stream; -1: none.
std::int32_t last_on(const Block& block, StreamIndex where) {
  for (std::size_t t = block.tasks.size(); t-- > 0;) {
    const Task& task = block.tasks[t];
    const bool runs = std::holds_alternative<Kernel>(task.body) ||
                      std::holds_alternative<Communication>(task.body);
    if (runs && task.stream == stream(where)) return static_cast<std::int32_t>(t);
  }
  return -1;
}

// Parameters that products read quantized, or that are held in 4 bits.
std::set<TensorId> quantized_weights(const Graph& graph) {
  std::set<TensorId> weights;
  for (const Operator& op : graph.operators) {
    const bool is_quantized = op.settings.has("recipe") && op.settings.text("recipe") != "none";
    if (!is_quantized && op.type != "dequantize") continue;
    for (const TensorId id : op.inputs)
      if (graph[id].role == TensorRole::kParameter && graph[id].shape.size() > 1)
        weights.insert(id);
  }
  return weights;
}

// The matrices of a layer's weight: one or, for experts, one for each expert that the rank holds.
MatrixGroup matrices_of(const Tensor& weight, const std::vector<MeshAxis>& mesh) {
  const Shape local = local_shape(weight.shape, *weight.pinned, mesh);
  const std::size_t last = weight.shape.size() - 1;
  MatrixGroup one{.rows = weight.shape[last - 1], .columns = weight.shape[last], .count = 1};
  for (std::size_t i = 0; i + 1 < last; ++i) one.count *= local[i];
  for (const std::size_t i : {last - 1, last})
    for (const Axis axis : weight.pinned->dims[i]) one.split.push_back(axis);
  return one;
}

// The parameters of a block, grouped by the axes over which ranks hold copies and by
// `also_partial(tensor)`.
template <class AlsoPartial>
std::vector<plan::ParameterGroup> grouped(const ShardedGraph& forward, AlsoPartial also_partial,
                                          const Optimizer& optimizer) {
  const bool whole_tensors = rule_of(optimizer).whole_tensors;
  const std::set<TensorId> quantized = quantized_weights(*forward.graph);
  std::map<std::pair<std::vector<Axis>, std::vector<Axis>>, plan::ParameterGroup> groups;
  for (std::size_t i = 0; i < forward.graph->tensors.size(); ++i) {
    const Tensor& tensor = forward.graph->tensors[i];
    if (tensor.role != TensorRole::kParameter) continue;
    const Parameters kind = kind_of(*forward.graph, TensorId{static_cast<std::int64_t>(i)});
    auto over = without(copy_axes(forward.mesh, kind), tensor.pinned->dims);
    auto partial = also_partial(tensor);
    const std::int64_t count = local_elements(tensor, *tensor.pinned, forward.mesh);
    plan::ParameterGroup& group = groups[{partial, over}];
    group.over = std::move(over);
    group.also_partial = std::move(partial);
    group.elements += count;
    if (quantized.contains(TensorId{static_cast<std::int64_t>(i)})) group.quantized += count;
    if (tensor.frozen) group.frozen += count;
    if (tensor.frozen || !whole_tensors) continue;
    const bool is_matrix = is_matrix_of_layer(tensor);
    const MatrixGroup matrices = is_matrix ? matrices_of(tensor, forward.mesh) : MatrixGroup{};
    group.tensors += is_matrix ? matrices.count : 1;
    if (is_matrix) add_matrices(group.matrices, matrices);
  }
  std::vector<plan::ParameterGroup> list;
  list.reserve(groups.size());
  for (auto& [axes, group] : groups) list.push_back(std::move(group));
  return list;
}

std::vector<plan::ParameterGroup> parameter_groups(const ShardedGraph& forward,
                                                   const ShardedGraph& backward,
                                                   const Optimizer& optimizer) {
  // name of a parameter's gradient -> axes over which it is partial, besides the axes of copies.
  std::map<std::string, std::vector<Axis>> partial;
  for (std::size_t i = 0; i < backward.graph->tensors.size(); ++i) {
    const Tensor& tensor = backward.graph->tensors[i];
    if (tensor.role != TensorRole::kParameterGradient || !tensor.gradient_of.valid()) continue;
    auto axes = axes_of(backward.attributes[i].partial);
    const auto copies = copy_axes(forward.mesh, kind_of(*forward.graph, tensor.gradient_of));
    std::erase_if(axes, [&](Axis axis) {
      return std::ranges::find(copies, axis) != copies.end() ||
             backward.mesh[static_cast<std::size_t>(axis)].size == 1;
    });
    partial[tensor.name] = std::move(axes);
  }
  return grouped(
      forward, [&](const Tensor& tensor) { return partial["d." + tensor.name]; }, optimizer);
}

std::vector<std::int64_t> parameter_sizes(const Graph& graph, const std::vector<MeshAxis>& mesh) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == TensorRole::kParameter)
      sizes.push_back(local_elements(tensor, *tensor.pinned, mesh));
  }
  return sizes;
}

void add_sizes(LoweredBlock& lowered, const Graph& graph, const std::vector<MeshAxis>& mesh) {
  lowered.parameter_sizes = parameter_sizes(graph, mesh);
  const auto& sizes = lowered.parameter_sizes;
  lowered.largest_parameter = sizes.empty() ? 0 : *std::ranges::max_element(sizes);
}

// Placeholders of gradients that products add up themselves: local shape -> bytes.
std::map<std::vector<std::int64_t>, Bytes> placeholders(const ShardedGraph& backward) {
  const Graph& graph = *backward.graph;
  std::map<std::vector<std::int64_t>, Bytes> found;
  for (const Operator& op : graph.operators) {
    if (!op.accumulates) continue;
    const Tensor& weight = graph[graph[op.outputs.front()].gradient_of];
    found[largest_local_shape(weight.shape, *weight.pinned, backward.mesh)] =
        local_bytes(weight, *weight.pinned, backward.mesh);
  }
  return found;
}

// Nothing is kept: each activation, including the block's inputs, is freed after its last reader.
LoweredBlock lower_forward_only(const ShardedGraph& forward, const Strategy& strategy) {
  const Graph& graph = *forward.graph;
  LoweredBlock lowered;
  Block pass{.name = graph.name + ".forward"};
  Emitter(pass, {}, launch_cost_of(strategy)).emit(forward);
  lowered.forward = {{.block = std::move(pass)}};
  lowered.backward = {{.block = {.name = graph.name + ".backward"}}};
  lowered.transient_forward = forward_work(forward, {});
  add_sizes(lowered, graph, forward.mesh);
  lowered.parameters = grouped(
      forward, [](const Tensor&) { return std::vector<Axis>{}; }, Optimizer{});
  return lowered;
}

SplitBackward split_backward(const ShardedGraph& forward, const ShardedGraph& backward,
                             const std::set<TensorId>& kept, const BackwardWork& how,
                             Overlap overlap, const LaunchCost& launching) {
  const std::vector<bool> weights = weight_gradient_operators(*backward.graph);
  const std::string& name = forward.graph->name;
  std::set<std::int32_t> converted;  // conversions of the first part, for both
  const auto part = [&](std::string_view suffix, bool of_weights) {
    Block block{.name = name + std::string(suffix)};
    Emitter tasks(block, overlap, launching);
    if (!of_weights)
      tasks.emit(forward, recomputed_operators(*forward.graph, *backward.graph, how.recomputation));
    std::vector<std::size_t> selected;
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i] == of_weights) selected.push_back(i);
    tasks.emit(backward, selected, converted);
    return Pieces{{.block = std::move(block)}};
  };
  const SplitWork work = split_work(forward, backward, kept, weights, how);
  SplitBackward split{.kept_for_weight = work.kept_for_weight,
                      .held = work.held,
                      .transient_input = work.input,
                      .transient_weight = work.weight};
  split.input = part(".backward_input", false);
  split.weight = part(".backward_weight", true);
  return split;
}

// A graph and its backward graph, both sharded.
struct ForwardBackward {
  ShardedGraph forward;
  Graph gradients;
  ShardedGraph backward;  // of `gradients`
};

// Moves the sum of a partial tensor from its readers to right after its producer, if all readers
// want the same sum and the sum takes no more memory: what is kept is then the sum.
void add_up_at_once(ShardedGraph& sharded) {
  const Graph& graph = *sharded.graph;
  for (std::size_t c = 0; c < sharded.conversions.size(); ++c) {
    const Conversion& sum = sharded.conversions[c];
    const auto index = static_cast<std::int32_t>(c);
    const auto converts = [&](std::int32_t other) {
      return sharded.conversions[static_cast<std::size_t>(other)].tensor == sum.tensor;
    };
    const Tensor& tensor = graph[sum.tensor];
    if (ways(axes_of(sum.from.partial), sharded.mesh) == 1 || !sum.to.partial.empty() ||
        tensor.pinned || std::ranges::find(graph.outputs, sum.tensor) != graph.outputs.end() ||
        local_bytes(tensor, sum.to, sharded.mesh) > local_bytes(tensor, sum.from, sharded.mesh))
      continue;
    std::vector<std::size_t> readers;
    std::optional<std::size_t> producer;
    bool alike = true;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const Operator& op = graph.operators[i];
      const auto is_it = [&](TensorId id) { return id == sum.tensor; };
      if (std::ranges::any_of(op.outputs, is_it)) producer = i;
      if (std::ranges::none_of(op.inputs, is_it)) continue;
      const auto& needs = sharded.operators[i].conversions;
      alike = alike && std::ranges::count_if(needs, converts) == 1 &&
              std::ranges::find(needs, index) != needs.end();
      readers.push_back(i);
    }
    if (!alike || !producer || std::ranges::any_of(sharded.after_operator[*producer], converts))
      continue;
    for (const std::size_t i : readers) std::erase(sharded.operators[i].conversions, index);
    sharded.after_operator[*producer].push_back(index);
    sharded.attributes[sum.tensor.index()] = sum.to;
  }
}

// Shards a graph and its backward graph: the work that does not depend on the recomputation.
Status distribute_both(const Graph& graph, const std::vector<MeshAxis>& mesh,
                       const Strategy& strategy, bool trained_before, ForwardBackward& result) {
  FORESHARD_ASSIGN(result.forward, distribute(graph, mesh, Flow::kForward, BackwardPass::kFollows));
  add_up_at_once(result.forward);
  BackwardOptions options = backward_options(strategy);
  options.trained_before = trained_before;
  result.gradients = backward_graph(result.forward, options);
  FORESHARD_ASSIGN(result.backward, distribute(result.gradients, mesh, Flow::kForward));
  return {};
}

LoweredBlock lower_block(const ForwardBackward& of, const Strategy& strategy,
                         const Recomputation& recomputation) {
  const auto& [forward, back, backward] = of;
  const Graph& graph = *forward.graph;
  const Framework& framework = *strategy.framework;
  LoweredBlock lowered;
  Block ahead{.name = graph.name + ".forward"};
  // A forward pass has nothing that overlaps a conversion: each operator needs the one before.
  Emitter(ahead, {.products = framework.overlap_tensor_products}, launch_cost_of(strategy))
      .emit(forward);
  lowered.forward = {{.block = std::move(ahead)}};

  Block behind{.name = graph.name + ".backward"};
  const Overlap overlap{.conversions = framework.overlap_tensor_gradients,
                        .products = framework.overlap_tensor_products};
  Emitter backward_tasks(behind, overlap, launch_cost_of(strategy));
  backward_tasks.emit(forward, recomputed_operators(graph, back, recomputation));
  backward_tasks.emit(backward);
  lowered.backward = {{.block = std::move(behind)}};

  const std::set<TensorId> kept = kept_tensors(graph, back, recomputation);
  const BackwardWork how{.recomputation = recomputation,
                         .placeholders_kept = framework.keeps_gradient_placeholders};
  if (splits_backward(strategy) && can_split(back))
    lowered.split = split_backward(forward, backward, kept, how, overlap, launch_cost_of(strategy));
  lowered.saved = bytes_held(kept, forward);
  lowered.transient_forward = forward_work(forward, kept);
  lowered.transient_backward = backward_work(forward, backward, kept, how);
  lowered.recompute = recomputation.how;
  lowered.placeholders = placeholders(backward);
  lowered.parameters = parameter_groups(forward, backward, strategy.optimizer);
  add_sizes(lowered, graph, forward.mesh);
  return lowered;
}

Result<LoweredBlock> lower_block(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                 const Strategy& strategy, const LayerVariant& variant) {
  if (backward_pass(strategy) == BackwardPass::kNone) {
    FORESHARD_ASSIGN(const auto forward, distribute(graph, mesh, Flow::kForward));
    return lower_forward_only(forward, strategy);
  }
  ForwardBackward of;
  FORESHARD_TRY(distribute_both(graph, mesh, strategy, variant.trained_before, of));
  return lower_block(of, strategy, variant.recomputation);
}

// Elements of a block's parameters that are gathered for each of its passes.
std::int64_t gathered_for_pass(const LoweredBlock& block, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh) {
  if (state_sharding(strategy).gather != StateSharding::Gather::kBeforeUse) return 0;
  std::int64_t elements = 0;
  for (const plan::ParameterGroup& group : plan::by_shards(block.parameters, mesh))
    if (!group.over.empty())
      elements += gathered_elements(strategy, group.elements, group.quantized);
  return elements;
}

// Makes each pass begin with a copy of the parameters that were gathered for it.
void copy_out(LoweredBlock& block, std::int64_t elements, DType dtype) {
  for (Pieces* pass : all_passes(block)) {
    Piece* first = first_block(*pass);
    if (first == nullptr || first->block.tasks.empty()) continue;
    put_before(first->block,
               {Task{.name = "copy_out",
                     .body = Kernel{Pass{
                         .kind = PassKind::kUnary, .rows = elements, .columns = 1, .dtype = dtype}},
                     .stream = stream(kComputeStream)}});
  }
}

// Changes a block's tasks as the framework and the token dispatcher do.
void finish(LoweredBlock& block, const Model& model, const Strategy& strategy,
            const std::vector<MeshAxis>& mesh) {
  const std::int64_t gathered = gathered_for_pass(block, strategy, mesh);
  if (strategy.framework->shards.copied_out && gathered > 0)
    copy_out(block, gathered, strategy.precision);
  for (Pieces* pass : all_passes(block)) {
    if (strategy.framework->matrix_units_need_alignment)
      visit_blocks(*pass, avoid_unaligned_matrix_units);
    const Framework& framework = *strategy.framework;
    visit_blocks(*pass, [&](Block& tasks) {
      if (strategy.captures(Capture::kStep)) return;
      launch_experts(tasks, framework.expert_product_time.value_or(0_s),
                     framework.expert_pass_time);
    });
    if (strategy.token_dispatcher == TokenDispatcher::kDeepEp)
      visit_blocks(*pass,
                   [&](Block& tasks) { exchange_once_per_node(tasks, routing_of(model), mesh); });
  }
}

}  // namespace

const Block& only_block(const Pieces& pieces) {
  FORESHARD_CHECK(is_one_block(pieces));
  return pieces.front().block;
}

void put_before(Block& block, std::vector<Task> tasks) {
  for (Task& task : block.tasks)
    for (std::int32_t& index : task.after) index += static_cast<std::int32_t>(tasks.size());
  block.tasks.insert(block.tasks.begin(), std::move_iterator(tasks.begin()),
                     std::move_iterator(tasks.end()));
}

std::vector<std::int32_t> last_uses(const Block& block) {
  std::vector<std::int32_t> last;
  for (const StreamIndex where : {kComputeStream, kTensorStream})
    if (const std::int32_t task = last_on(block, where); task >= 0) last.push_back(task);
  std::ranges::sort(last);
  return last;
}

std::int32_t open_conversion(const Block& block) {
  std::vector<bool> is_awaited(block.tasks.size(), false);
  for (const Task& task : block.tasks)
    if (!std::holds_alternative<program::Free>(task.body))
      for (const std::int32_t earlier : task.after)
        is_awaited[static_cast<std::size_t>(earlier)] = true;
  for (std::size_t t = block.tasks.size(); t-- > 0;)
    if (std::holds_alternative<Communication>(block.tasks[t].body) &&
        block.tasks[t].stream == stream(kTensorStream) && !is_awaited[t])
      return static_cast<std::int32_t>(t);
  return -1;
}

std::vector<Pieces*> all_passes(LoweredBlock& block) {
  std::vector<Pieces*> passes{&block.forward, &block.backward, &block.reducing};
  if (block.split) passes.insert(passes.end(), {&block.split->input, &block.split->weight});
  return passes;
}

std::vector<program::Stream> streams() {
  return {{"compute"},
          {"tensor"},
          {"data"},
          {"receive_forward"},
          {"send_forward"},
          {"receive_backward"},
          {"send_backward"},
          {"receive_forward_returning"},
          {"send_forward_returning"},
          {"receive_backward_returning"},
          {"send_backward_returning"},
          {"to_host"},
          {"from_host"},
          {"on_host"}};
}

std::string tag_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  std::string names;
  for (const Axis axis : axes)
    names += (names.empty() ? "" : "+") + mesh[static_cast<std::size_t>(axis)].name;
  return names;
}

// Ranks along the pipeline run other blocks, so they cannot take part in a conversion.
static std::vector<MeshAxis> mesh_of_stage(std::vector<MeshAxis> mesh) {
  for (MeshAxis& axis : mesh)
    if (axis.name == "pipeline") axis.size = 1;
  return mesh;
}

std::optional<std::int32_t> append_reshard(Block& block, const std::string& name,
                                           const std::vector<std::int64_t>& shape, DType dtype,
                                           const Attribute& from, const Attribute& to,
                                           const std::vector<MeshAxis>& mesh,
                                           program::StreamId where, std::vector<std::int32_t> after,
                                           const reshard::MeshPlanner& planner) {
  std::optional<std::int32_t> last;
  for (const auto& step : planner({dtype, shape}, from, to, mesh_of_stage(mesh))) {
    const auto kind = reshard::collective_of(step.primitive);
    if (!kind) continue;
    const auto ranks = static_cast<double>(ways(step.axes, mesh));
    const program::Purpose purpose = where == stream(kDataStream)
                                         ? purpose_of_states(step.axes, mesh)
                                     : exchanges_tokens(step, mesh) ? program::Purpose::kExpert
                                                                    : purpose_of(step.axes, mesh);
    Task task{.name = std::string(reshard::name_of(step.primitive)) + "." + name,
              .stream = where,
              .after = std::exchange(after, {})};
    task.body = Communication{
        .kind = *kind,
        .group = program::AxisGroup{.axes = step.axes},
        .bytes = reshard::communication_bytes(step.primitive, step.volume.logical, ranks),
        .dtype = dtype,
        .purpose = purpose,
        .tag = tag_of(step.axes, mesh)};
    block.tasks.push_back(std::move(task));
    last = static_cast<std::int32_t>(block.tasks.size()) - 1;
    after = {*last};
  }
  return last;
}

std::int64_t padded(std::int64_t count, const std::vector<Axis>& axes,
                    const std::vector<MeshAxis>& mesh) {
  const auto parallel = std::ranges::count_if(
      axes, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size > 1; });
  if (parallel < 2) return count;
  const std::int64_t ranks = ways(axes, mesh);
  return (count + ranks - 1) / ranks * ranks;
}

void append_reduction(Block& block, const std::string& name, std::int64_t count,
                      const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh,
                      const Strategy& strategy, std::vector<std::int32_t> after) {
  Attribute from = replicated(1);
  from.partial = sums_over(axes);
  Attribute to = replicated(1);
  if (state_sharding(strategy).cuts_optimizer) to.dims[0] = cut_axes(mesh, axes);
  append_reshard(block, name, {padded(count, to.dims[0], mesh)},
                 strategy.framework->gradients_of(strategy.precision), from, to, mesh,
                 stream(kDataStream), std::move(after));
}

Attribute as_sent(const Tensor& boundary, const Strategy& strategy,
                  const std::vector<MeshAxis>& mesh) {
  Attribute sent = *boundary.pinned;
  const std::vector<Axis> tensor = tensor_axes(mesh);
  const bool whole = state_of(sent, tensor.front()).kind == AxisState::Kind::kReplicated;
  const std::int64_t ways = foreshard::ways(tensor, mesh);
  if (strategy.framework->pipeline_scatter_gather && whole && ways > 1 &&
      boundary.shape[1] % (ways * foreshard::ways(sent.dims[1], mesh)) == 0)
    sent.dims[1].insert(sent.dims[1].end(), tensor.begin(), tensor.end());
  return sent;
}

Result<LoweredModel> lower_blocks(const Model& model, const Strategy& strategy) {
  LoweredModel lowered;
  lowered.mesh = mesh_of(strategy);
  const TransformerGraphs graphs = graphs_of(model, strategy);

  const auto lower_into = [&](LoweredBlock& into, const Graph& graph,
                              const LayerVariant& variant) -> Status {
    FORESHARD_ASSIGN(into, lower_block(graph, lowered.mesh, strategy, variant));
    finish(into, model, strategy, lowered.mesh);
    return {};
  };
  // The embedding's inputs (tokens, pixels, frames of sound) have no gradient.
  FORESHARD_TRY(lower_into(lowered.embedding, graphs.embedding, {.trained_before = false}));
  for (const LayerVariant& variant : layers_of(model, strategy).variants) {
    Graph layer = graphs.layers[variant.kind];
    layer.name = name_of(variant, model, strategy);
    FORESHARD_TRY(lower_into(lowered.layers.emplace_back(), layer, variant));
  }
  for (const Graph& prediction : graphs.predictions)
    FORESHARD_TRY(lower_into(lowered.predictions.emplace_back(), prediction,
                             variant_of_prediction(strategy)));
  FORESHARD_TRY(lower_into(lowered.head, graphs.head,
                           {.trained_before = model.is_trained_before(model.layers)}));
  const Graph& layer = graphs.layers.front();
  const Tensor& boundary = layer[layer.inputs.front()];
  lowered.boundary_shape = boundary.shape;
  lowered.boundary = *boundary.pinned;
  lowered.boundary_sent = as_sent(boundary, strategy, lowered.mesh);
  return lowered;
}

Status lower_with_recomputations(const Model& model, const Strategy& strategy,
                                 std::span<const Recomputation> ways,
                                 const RecomputeVisitor& visit) {
  const std::vector<MeshAxis> mesh = mesh_of(strategy);
  const TransformerGraphs graphs = graphs_of(model, strategy);
  std::size_t which = 0;
  const auto lower_each = [&](const Graph& graph, const LayerVariant& variant) -> Status {
    ForwardBackward of;
    FORESHARD_TRY(distribute_both(graph, mesh, strategy, variant.trained_before, of));
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const bool again = variant.recomputation.how != Recompute::kNone;
      LoweredBlock block = lower_block(of, strategy, again ? ways[way] : Recomputation{});
      finish(block, model, strategy, mesh);
      visit(way, which, block);
    }
    ++which;
    return {};
  };
  for (const LayerVariant& variant : layers_of(model, strategy).variants)
    FORESHARD_TRY(lower_each(graphs.layers[variant.kind], variant));
  for (const Graph& prediction : graphs.predictions)
    FORESHARD_TRY(lower_each(prediction, variant_of_prediction(strategy)));
  return {};
}

}  // namespace foreshard::lower
