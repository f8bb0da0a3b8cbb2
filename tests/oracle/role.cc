#include "tests/oracle/internal/role.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tests/oracle/random.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::execute {
namespace {

using plan::Action;

std::optional<TensorId> tensor_named(const Graph& graph, const std::string& name) {
  const auto it = std::ranges::find(graph.tensors, name, &Tensor::name);
  if (it == graph.tensors.end()) return std::nullopt;
  return TensorId{it - graph.tensors.begin()};
}

// As it is pinned, every value alike.
Distributed filled(const ProcessMesh& mesh, const Tensor& tensor, double value) {
  const Slices slices(Layout{mesh, *tensor.pinned}, tensor.shape);
  Distributed all{*tensor.pinned, {}};
  for (std::int64_t p = 0; p < mesh.size(); ++p)
    all.shards.of_position.emplace_back(slices.of(p).elements(), value);
  return all;
}

ProcessMesh mesh_of_role(const Training& training, std::size_t role) {
  ProcessMesh mesh = mesh_from(training.plan.parts.mesh);
  std::vector<std::int32_t> ranks;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    if (std::cmp_equal(coordinate_of(mesh, p, training.pipeline), role))
      ranks.push_back(mesh.ranks[static_cast<std::size_t>(p)]);
  }
  mesh.axes[static_cast<std::size_t>(training.pipeline)].size = 1;
  mesh.ranks = std::move(ranks);
  return mesh;
}

}  // namespace

Result<std::unique_ptr<ShardedBlock>> sharded_block(const Training& training, Graph graph,
                                                    const LayerVariant& variant) {
  auto block = std::make_unique<ShardedBlock>();
  block->forward = std::move(graph);
  FORESHARD_ASSIGN(auto forward, distribute(block->forward, training.plan.parts.mesh,
                                            Flow::kForward, backward_pass(training.strategy)));
  block->forward_sharded = std::move(forward);
  BackwardOptions options = backward_options(training.strategy);
  options.trained_before = variant.trained_before;
  block->backward = backward_graph(block->forward_sharded, options);
  FORESHARD_ASSIGN(auto backward,
                   distribute(block->backward, training.plan.parts.mesh, Flow::kForward));
  block->backward_sharded = std::move(backward);
  block->weights = weight_gradient_operators(block->backward);
  block->recomputed =
      lower::recomputed_operators(block->forward, block->backward, variant.recomputation);
  block->kept = lower::kept_tensors(block->forward, block->backward, variant.recomputation);
  for (std::size_t i = 0; i < block->forward.tensors.size(); ++i) {
    const Tensor& parameter = block->forward.tensors[i];
    if (parameter.role != TensorRole::kParameter) continue;
    const TensorId id{static_cast<std::int64_t>(i)};
    block->also_partial[id] = {};
    if (parameter.frozen) continue;
    const auto gradient = tensor_named(block->backward, "d." + parameter.name);
    FORESHARD_CHECK(gradient.has_value());
    const Attribute& lies = block->backward_sharded.attributes[gradient->index()];
    auto partial = axes_of(lies.partial);
    auto copies =
        without(copy_axes(training.plan.parts.mesh, kind_of(block->forward, id)), lies.dims);
    std::erase_if(copies, [&](Axis axis) {
      return training.plan.parts.mesh[static_cast<std::size_t>(axis)].name == kWholeExperts;
    });
    const auto is_copy = [&](Axis axis) { return std::ranges::find(copies, axis) != copies.end(); };
    if (lies.dims != parameter.pinned->dims || std::erase_if(partial, is_copy) != copies.size())
      return Error{Error::Code::kInvalidInput,
                   block->forward.name + ": the gradient of '" + parameter.name + "' lies as " +
                       describe(lies, training.plan.parts.mesh) +
                       ", not as summands of the parameter's slices over the replicas"};
    block->gradient_of[id] = *gradient;
    block->also_partial[id] = std::move(partial);
  }
  return block;
}

Role::Role(const Training& training, std::size_t role)
    : training_(training),
      role_(training.plan.roles[role]),
      parameters_(training.plan, role_, training.options, mesh_of_role(training, role)) {
  for (const plan::Chunk& chunk : role_.chunks) {
    for (std::int32_t i = 0; i < chunk.units.count; ++i) {
      const std::int32_t unit = chunk.units.first + i;
      parameters_.add(unit, block_of(unit).forward, block_of(unit).also_partial);
    }
  }
}

const ShardedBlock& Role::block_of(std::int32_t unit) const {
  const plan::Unit& its = training_.plan.parts.units[static_cast<std::size_t>(unit)];
  return *training_.blocks[static_cast<std::size_t>(its.block)];
}

// --- boundaries ---------------------------------------------------------------------------------

// What a chunk hands on lies in one place for all micro-batches where the next pass waits until it
// is sent.
Role::Boundary Role::boundary(const Action& action, std::int32_t behind) const {
  const plan::UnitRange units = role_.chunks[static_cast<std::size_t>(action.chunk)].units;
  const bool leaves =
      behind == (action.direction == Direction::kForward ? units.first + units.count : units.first);
  const bool shared = leaves && units.count > 0 && transfers_block(training_.strategy);
  return {action.chunk, behind, shared ? 0 : action.micro_batch, action.direction};
}

Role::Boundary Role::end_of_chunk(const Action& action, bool enters) const {
  const plan::UnitRange units = role_.chunks[static_cast<std::size_t>(action.chunk)].units;
  const bool first = enters == (action.direction == Direction::kForward);
  return boundary(action, first ? units.first : units.first + units.count);
}

// The chunk that makes what this one reads, where both are on this role; -1: another role does.
std::int32_t Role::chunk_before(const Boundary& boundary) const {
  const auto& [chunk, behind, micro_batch, direction] = boundary;
  const std::int32_t piece = role_.chunks[static_cast<std::size_t>(chunk)].piece;
  const std::int32_t made_by = direction == Direction::kForward ? piece - 1 : piece + 1;
  const auto it = std::ranges::find(role_.chunks, made_by, &plan::Chunk::piece);
  return it == role_.chunks.end() ? -1 : static_cast<std::int32_t>(it - role_.chunks.begin());
}

std::vector<Distributed> Role::take(const Boundary& boundary) {
  if (auto node = boundaries_.extract(boundary); !node.empty()) return std::move(node.mapped());
  if (const std::int32_t chunk = chunk_before(boundary); chunk >= 0) {
    Boundary other = boundary;
    std::get<0>(other) = chunk;
    if (auto node = boundaries_.extract(other); !node.empty()) return std::move(node.mapped());
  }
  std::vector<Distributed> none;
  for (const Tensor& tensor : training_.streams())
    none.push_back(filled(parameters_.mesh(), tensor, kNoNumber));
  return none;
}

// Every rank sends what it holds to the one with the same coordinates in the other role.
Arrays Role::send(const Action& action) {
  const Distributed stream = take(end_of_chunk(action, false)).front();
  return convert(stream.shards, training_.boundary().shape, stream.attribute, training_.sent,
                 parameters_.mesh());
}

void Role::receive(const Action& action, const Arrays& sent) {
  const Tensor tensor = training_.boundary();
  boundaries_[end_of_chunk(action, true)] = {
      {*tensor.pinned,
       convert(sent, tensor.shape, training_.sent, *tensor.pinned, parameters_.mesh())}};
}

// --- passes -------------------------------------------------------------------------------------

Status Role::pass(plan::ActionId id) {
  const Action& pass = role_.actions[static_cast<std::size_t>(id)];
  for (std::int32_t i = 0; i < pass.units.count; ++i) {
    const bool is_forward = pass.direction == Direction::kForward;
    const std::int32_t from_last = pass.units.first + pass.units.count - 1 - i;
    FORESHARD_TRY(is_forward                             ? forward(pass, pass.units.first + i)
                  : pass.part == plan::PassPart::kWeight ? weight_gradients(pass, from_last)
                                                         : backward(pass, from_last));
  }
  parameters_.end(pass, id);
  return {};
}

GraphRun Role::how(std::int32_t unit, std::int32_t micro_batch) const {
  const auto samples = static_cast<double>(training_.strategy.global_batch);
  const auto length = static_cast<double>(training_.model.sequence);
  const std::uint64_t key = key_of(key_of(training_.options.seed, "dropout"), std::int64_t{unit});
  return {.mesh = parameters_.mesh(),
          .context = {.key = key_of(key, std::int64_t{micro_batch}),
                      .loss_scale = 1 / (samples * length)}};
}

// "token_ids" and "targets": token i of a sequence, and the next one; for each module that predicts
// one more token one further on.
Distributed Role::tokens(std::int32_t unit, const std::string& tensor,
                         std::int32_t micro_batch) const {
  const Graph& graph = block_of(unit).forward;
  const Tensor& ids = graph[*tensor_named(graph, tensor)];
  const std::int64_t predictions = training_.model.multi_token_prediction;
  const std::int64_t behind = unit - training_.model.layers;  // the last layer
  const std::int64_t shift = tensor == "targets" ? 1 : std::max<std::int64_t>(0, behind);
  const std::int64_t length = ids.shape.back();
  const std::int64_t samples = ids.shape[ids.shape.size() - 2];
  const std::uint64_t key =
      key_of(key_of(training_.options.seed, "tokens"), std::int64_t{micro_batch});
  const Slices slices(Layout{parameters_.mesh(), *ids.pinned}, ids.shape);
  Distributed result{*ids.pinned, {}};
  for (std::int64_t p = 0; p < parameters_.mesh().size(); ++p) {
    std::vector<double> values;
    for (const std::int64_t index : logical_indices(ids.shape, slices.of(p))) {
      const std::int64_t sample = index / length % samples;
      const std::int64_t prediction = index / length / samples;
      const std::int64_t at =
          sample * (length + 1 + predictions) + index % length + shift + prediction;
      values.push_back(
          std::floor(uniform(key, at) * static_cast<double>(training_.model.vocabulary)));
    }
    result.shards.of_position.push_back(std::move(values));
  }
  return result;
}

// Whole numbers below `below`, or others where that is 0.
Distributed Role::data(std::int32_t unit, const std::string& tensor, std::int32_t micro_batch,
                       std::int64_t below) const {
  const Graph& graph = block_of(unit).forward;
  const Tensor& of = graph[*tensor_named(graph, tensor)];
  const std::uint64_t key =
      key_of(key_of(training_.options.seed, tensor), std::int64_t{micro_batch});
  const Slices slices(Layout{parameters_.mesh(), *of.pinned}, of.shape);
  Distributed result{*of.pinned, {}};
  for (std::int64_t p = 0; p < parameters_.mesh().size(); ++p) {
    std::vector<double> values;
    for (const std::int64_t index : logical_indices(of.shape, slices.of(p))) {
      const double random = uniform(key, index);
      values.push_back(below > 0 ? std::floor(random * static_cast<double>(below))
                                 : 2 * random - 1);
    }
    result.shards.of_position.push_back(std::move(values));
  }
  return result;
}

Status Role::forward(const Action& pass, std::int32_t unit) {
  const ShardedBlock& block = block_of(unit);
  Tensors tensors = parameters_.read(unit, block.forward);
  if (!block.forward.inputs.empty()) {
    const auto streams = take(boundary(pass, unit));  // ids of tokens may stand behind them
    for (std::size_t i = 0; i < std::min(streams.size(), block.forward.inputs.size()); ++i)
      tensors[block.forward.inputs[i]] = streams[i];
  }
  for (const char* given : {"token_ids", "targets"})
    if (const auto id = tensor_named(block.forward, given))
      tensors[*id] = tokens(unit, given, pass.micro_batch);
  const Model& model = training_.model;
  for (const auto& [given, below] :
       {std::pair("encoder_token_ids", model.vocabulary),
        std::pair("token_types", model.token_types), std::pair("class_ids", std::int64_t{1}),
        std::pair("classes", model.classes), std::pair("squares", std::int64_t{0}),
        std::pair("frames", std::int64_t{0})})
    if (const auto id = tensor_named(block.forward, given))
      tensors[*id] = data(unit, given, pass.micro_batch, below);
  FORESHARD_TRY(run(block.forward_sharded, how(unit, pass.micro_batch), tensors));
  std::vector<Distributed> streams;
  for (const TensorId out : block.forward.outputs) {
    if (block.forward[out].name.ends_with("loss"))
      keep_loss(block, out, tensors.at(out), pass.micro_batch);
    else
      streams.push_back(tensors.at(out));
  }
  if (!streams.empty()) boundaries_[boundary(pass, unit + 1)] = std::move(streams);
  if ((pass.takes & plan::kKept) == 0) return {};
  const auto storage = storages_of(block.forward);
  std::erase_if(tensors, [&](const auto& entry) {
    return !block.kept.contains(storage[entry.first.index()]);
  });
  kept_[{unit, pass.micro_batch}] = std::move(tensors);
  return {};
}

Status Role::backward(const Action& pass, std::int32_t unit) {
  const ShardedBlock& block = block_of(unit);
  auto kept = kept_.extract({unit, pass.micro_batch});
  if (kept.empty())
    return Error{Error::Code::kInvalidInput,
                 role_.name + ": nothing is kept for the backward pass of " +
                     training_.plan.parts.units[static_cast<std::size_t>(unit)].name};
  Tensors tensors = std::move(kept.mapped());
  tensors.merge(parameters_.read(unit, block.forward));
  GraphRun graph_run = how(unit, pass.micro_batch);
  if (!block.recomputed.empty()) {
    graph_run.wanted = [&](std::size_t op) {
      return std::ranges::binary_search(block.recomputed, op);
    };
    FORESHARD_TRY(run(block.forward_sharded, graph_run, tensors));
    graph_run.wanted = nullptr;
  }
  // Behind the last layer nothing reads the encoder's states.
  if (!block.backward.inputs.empty()) {
    auto gradients = take(boundary(pass, unit + 1));
    for (std::size_t i = 0; i < block.backward.inputs.size(); ++i)
      tensors[block.backward.inputs[i]] =
          i < gradients.size()
              ? gradients[i]
              : filled(parameters_.mesh(), block.backward[block.backward.inputs[i]], 0);
  }
  const bool whole = pass.part == plan::PassPart::kWhole;
  FORESHARD_TRY(whole ? run(block.backward_sharded, graph_run, tensors)
                      : run_part(block, graph_run, false, tensors));
  accumulate(block, unit, pass.part, tensors);
  std::vector<Distributed> streams;
  for (const TensorId id : block.backward.outputs) streams.push_back(tensors.at(id));
  if (!streams.empty()) boundaries_[boundary(pass, unit)] = std::move(streams);
  if (whole) return {};
  Tensors& held = held_[{unit, pass.micro_batch}];
  for (std::size_t i = 0; i < block.weights.size(); ++i) {
    if (!block.weights[i]) continue;
    for (const TensorId id : block.backward.operators[i].inputs)
      if (const auto it = tensors.find(id);
          it != tensors.end() && block.backward[id].role != TensorRole::kParameter)
        held[id] = it->second;
  }
  return {};
}

Status Role::weight_gradients(const Action& pass, std::int32_t unit) {
  const ShardedBlock& block = block_of(unit);
  auto held = held_.extract({unit, pass.micro_batch});
  if (held.empty())
    return Error{Error::Code::kInvalidInput,
                 role_.name + ": nothing is held for the gradients of weights of " +
                     training_.plan.parts.units[static_cast<std::size_t>(unit)].name};
  Tensors tensors = std::move(held.mapped());
  tensors.merge(parameters_.read(unit, block.forward));
  FORESHARD_TRY(run_part(block, how(unit, pass.micro_batch), true, tensors));
  accumulate(block, unit, pass.part, tensors);
  return {};
}

Status Role::run_part(const ShardedBlock& block, GraphRun how, bool of_weights, Tensors& tensors) {
  how.wanted = [&](std::size_t op) { return block.weights[op] == of_weights; };
  return run(block.backward_sharded, how, tensors);
}

// The gradients that this part of the pass has made.
void Role::accumulate(const ShardedBlock& block, std::int32_t unit, plan::PassPart part,
                      const Tensors& tensors) {
  std::map<TensorId, TensorId> made = block.gradient_of;
  std::erase_if(made, [&](const auto& entry) {
    if (part == plan::PassPart::kWhole) return false;
    for (std::size_t i = 0; i < block.weights.size(); ++i)
      if (std::ranges::find(block.backward.operators[i].outputs, entry.second) !=
          block.backward.operators[i].outputs.end())
        return block.weights[i] != (part == plan::PassPart::kWeight);
    return true;
  });
  parameters_.accumulate(unit, made, tensors);
}

// From the statistics, per token: log(sum of exponentials) - the target's logit.
void Role::keep_loss(const ShardedBlock& head, TensorId of, const Distributed& statistics,
                     std::int32_t micro_batch) {
  Shape shape = head.forward[of].shape;
  Layout layout{parameters_.mesh(), statistics.attribute};
  shape.pop_back();
  layout.attribute.dims.pop_back();
  const Slices slices(layout, shape);
  Arrays losses;
  for (std::int64_t p = 0; p < layout.mesh.size(); ++p) {
    const auto position = static_cast<std::size_t>(p);
    const auto& values = statistics.shards.of_position[position];
    Held held{.tensor = head.forward[of].name + "." + std::to_string(micro_batch),
              .rank = layout.mesh.ranks[position],
              .indices = logical_indices(shape, slices.of(p))};
    for (std::size_t i = 0; i < held.indices.size(); ++i)
      held.values.push_back(std::log(values[2 * i]) - values[2 * i + 1]);
    losses.of_position.push_back(held.values);
    losses_.push_back(std::move(held));
  }
  for (const double loss : gather(layout, shape, losses)) loss_ += loss;
}

}  // namespace foreshard::execute
