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
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/emitter.h"
#include "strategies/program/lower/exchanges.h"
#include "strategies/program/lower/legacy_behavior.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/purpose.h"
#include "strategies/program/lower/quantized_weights.h"
#include "strategies/program/lower/unit_block.h"

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

// Adds the parameters of a block, grouped by the axes over which ranks hold copies, and by other
// axes over which gradients are partial. `backward`: null in forward mode.
void add_parameters(LoweredBlock& lowered, const ShardedGraph& forward,
                    const ShardedGraph* backward, const Optimizer& optimizer) {
  const bool whole_tensors = backward != nullptr && rule_of(optimizer).whole_tensors;
  const std::set<TensorId> quantized = quantized_weights(*forward.graph);
  std::map<TensorId, TensorId> gradients;
  if (backward != nullptr) gradients = gradients_in(*backward->graph);
  std::map<std::pair<std::vector<Axis>, std::vector<Axis>>, plan::ParameterGroup> groups;
  for (std::size_t i = 0; i < forward.graph->tensors.size(); ++i) {
    const Tensor& tensor = forward.graph->tensors[i];
    if (tensor.role != TensorRole::kParameter) continue;
    const TensorId id{static_cast<std::int64_t>(i)};
    const std::vector<Axis> copies = copy_axes(forward.mesh, kind_of(*forward.graph, id));
    std::vector<Axis> partial;
    if (const auto found = gradients.find(id); found != gradients.end())
      partial = partial_axes(backward->attributes[found->second.index()], backward->mesh);
    std::erase_if(partial,
                  [&](Axis axis) { return std::ranges::find(copies, axis) != copies.end(); });
    const std::vector<Axis> over = without(copies, tensor.pinned->dims);
    const std::int64_t count = local_elements(tensor, *tensor.pinned, forward.mesh);
    plan::ParameterGroup& group = groups[{partial, over}];
    group.over = over;
    group.also_partial = partial;
    group.elements += count;
    lowered.parameter_sizes.push_back(count);
    lowered.largest_parameter = std::max(lowered.largest_parameter, count);
    if (quantized.contains(id)) group.quantized += count;
    if (tensor.frozen) group.frozen += count;
    if (tensor.frozen || !whole_tensors) continue;
    const bool is_matrix = is_matrix_of_layer(tensor);
    const MatrixGroup matrices = is_matrix ? matrices_of(tensor, forward.mesh) : MatrixGroup{};
    group.tensors += is_matrix ? matrices.count : 1;
    if (is_matrix) add_matrices(group.matrices, matrices);
  }
  for (auto& [axes, group] : groups) lowered.parameters.push_back(std::move(group));
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

// A graph and its backward graph, both sharded. In forward mode there is no backward graph.
struct ForwardBackward {
  ShardedGraph forward;
  Graph gradients;
  std::optional<ShardedGraph> backward;  // of `gradients`
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
  const BackwardPass follows = backward_pass(strategy);
  FORESHARD_ASSIGN(result.forward, distribute(graph, mesh, Flow::kForward, follows));
  if (follows == BackwardPass::kNone) return {};
  add_up_at_once(result.forward);
  BackwardOptions options = backward_options(strategy);
  options.trained_before = trained_before;
  result.gradients = backward_graph(result.forward, options);
  FORESHARD_ASSIGN(result.backward, distribute(result.gradients, mesh, Flow::kForward));
  return {};
}

// Copies in 16 bits of matrices that are gathered in fp32, which autograd saves for products.
Bytes copies_of_autocast(const ShardedGraph& forward, const Strategy& strategy) {
  Bytes copies;
  if (!strategy.framework->shards.gathered_fp32) return copies;
  for (const Operator& op : forward.graph->operators) {
    if (op.type != "matmul") continue;
    for (const TensorId id : op.inputs)
      if ((*forward.graph)[id].role == TensorRole::kParameter)
        copies += local_bytes((*forward.graph)[id], *(*forward.graph)[id].pinned, forward.mesh);
  }
  return copies;
}

// Gives a pass without tasks a block without tasks.
void complete(Pieces& pass, std::string name) {
  if (pass.empty()) pass = {{.block = {.name = std::move(name)}}};
}

LoweredBlock lower_block(const ForwardBackward& of, const Strategy& strategy,
                         const Recomputation& recomputation) {
  const ShardedGraph& forward = of.forward;
  const ShardedGraph* backward = of.backward ? &*of.backward : nullptr;
  const Framework& framework = *strategy.framework;
  // A forward pass has nothing that overlaps a conversion: each operator needs the one before.
  const bool products = backward != nullptr && framework.overlap_tensor_products;
  PartialElements none;
  LoweredBlock lowered =
      lower_unit({.forward = forward,
                  .backward = backward,
                  .recomputation = recomputation,
                  .recomputes_inside = true,
                  .forward_overlap = {.products = products},
                  .backward_overlap = {.conversions = framework.overlap_tensor_gradients,
                                       .products = products},
                  .launching = launch_cost_of(strategy),
                  .placeholders_kept = framework.keeps_gradient_placeholders},
                 strategy, none);
  complete(lowered.forward, forward.graph->name + ".forward");
  complete(lowered.backward, forward.graph->name + ".backward");
  if (backward != nullptr) lowered.placeholders = placeholders(*backward);
  add_parameters(lowered, forward, backward, strategy.optimizer);
  if (backward != nullptr && recomputation.how != Recompute::kFull)
    lowered.saved += copies_of_autocast(forward, strategy);
  return lowered;
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

// Lowers a block of the model with each of `ways`, and gives the results to `visit`.
template <class Visit>
Status lower_each(const Graph& graph, const Model& model, const Strategy& strategy,
                  bool trained_before, std::span<const Recomputation> ways, Visit visit) {
  const std::vector<MeshAxis> mesh = mesh_of(strategy);
  ForwardBackward of;
  FORESHARD_TRY(distribute_both(graph, mesh, strategy, trained_before, of));
  for (std::size_t way = 0; way < ways.size(); ++way) {
    LoweredBlock block = lower_block(of, strategy, ways[way]);
    finish(block, model, strategy, mesh);
    visit(way, std::move(block));
  }
  return {};
}

}  // namespace

const Block& only_block(const Pieces& pieces) {
  FORESHARD_CHECK(is_one_block(pieces));
  return pieces.front().block;
}

bool host_waits_in(const Pieces& pieces) {
  return std::ranges::any_of(pieces, [](const Piece& piece) {
    const auto waits = [](const Task& task) {
      return std::holds_alternative<program::Sync>(task.body);
    };
    return std::ranges::any_of(piece.block.tasks, waits) ||
           std::ranges::any_of(piece.bodies, host_waits_in);
  });
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
    return lower_each(graph, model, strategy, variant.trained_before, {&variant.recomputation, 1},
                      [&](std::size_t, LoweredBlock block) { into = std::move(block); });
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
  LayerVariant head{.trained_before = model.is_trained_before(model.layers)};
  if (strategy.framework->loss_words > 0) head.recomputation.how = Recompute::kFull;
  FORESHARD_TRY(lower_into(lowered.head, graphs.head, head));
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
  const TransformerGraphs graphs = graphs_of(model, strategy);
  const std::vector<Recomputation> none(ways.size());
  std::size_t which = 0;
  const auto lower_variant = [&](const Graph& graph, const LayerVariant& variant) -> Status {
    const bool again = variant.recomputation.how != Recompute::kNone;
    const std::size_t block = which++;
    return lower_each(
        graph, model, strategy, variant.trained_before, again ? ways : std::span(none),
        [&](std::size_t way, const LoweredBlock& lowered) { visit(way, block, lowered); });
  };
  for (const LayerVariant& variant : layers_of(model, strategy).variants)
    FORESHARD_TRY(lower_variant(graphs.layers[variant.kind], variant));
  for (const Graph& prediction : graphs.predictions)
    FORESHARD_TRY(lower_variant(prediction, variant_of_prediction(strategy)));
  return {};
}

}  // namespace foreshard::lower
