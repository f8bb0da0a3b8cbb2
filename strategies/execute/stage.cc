#include "strategies/execute/internal/stage.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

#include "strategies/execute/random.h"
#include "strategies/graph/distribute.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/block.h"

namespace foreshard::execute {
namespace {

using schedule::Slot;

TensorId tensor_named(const Graph& graph, const std::string& name) {
  const auto it = std::ranges::find(graph.tensors, name, &Tensor::name);
  FORESHARD_CHECK(it != graph.tensors.end());
  return TensorId{it - graph.tensors.begin()};
}

ProcessMesh mesh_of_stage(const Training& training, std::int64_t stage) {
  ProcessMesh mesh = mesh_from(training.mesh);
  std::vector<std::int32_t> ranks;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    if (coordinate_of(mesh, p, training.axes.pipeline) == stage)
      ranks.push_back(mesh.ranks[static_cast<std::size_t>(p)]);
  }
  mesh.axes[static_cast<std::size_t>(training.axes.pipeline)].size = 1;
  mesh.ranks = std::move(ranks);
  return mesh;
}

Error misshapen(const Graph& graph, const Tensor& parameter, const std::string& why) {
  return {Error::Code::kInvalidInput,
          graph.name + ": the gradient of '" + parameter.name + "' " + why};
}

}  // namespace

Result<std::unique_ptr<ShardedBlock>> sharded_block(Graph graph, const Strategy& strategy,
                                                    const std::vector<MeshAxis>& mesh,
                                                    const TrainingAxes& axes, Recompute recompute) {
  auto block = std::make_unique<ShardedBlock>();
  block->forward = std::move(graph);
  block->recompute = recompute;
  auto forward = distribute(block->forward, mesh, Flow::kForward);
  if (!forward) return forward.error();
  block->forward_sharded = *std::move(forward);
  block->backward = backward_graph(block->forward_sharded, backward_options(strategy));
  auto backward = distribute(block->backward, mesh, Flow::kForward);
  if (!backward) return backward.error();
  block->backward_sharded = *std::move(backward);
  block->kept = lower::kept_tensors(block->forward, block->backward, recompute);
  for (std::size_t i = 0; i < block->forward.tensors.size(); ++i) {
    const Tensor& parameter = block->forward.tensors[i];
    if (parameter.role != TensorRole::kParameter) continue;
    const TensorId id{static_cast<std::int64_t>(i)};
    const TensorId gradient = tensor_named(block->backward, "d." + parameter.name);
    const Attribute& lies = block->backward_sharded.attributes[gradient.index()];
    if (lies.dims != parameter.pinned->dims)
      return misshapen(block->forward, parameter, "does not lie as the parameter does");
    auto partial = axes_of(lies.partial);
    if (std::erase(partial, axes.data) == 0)
      return misshapen(block->forward, parameter, "is not one of summands over the replicas");
    block->gradient_of[id] = gradient;
    block->also_partial[id] = std::move(partial);
  }
  return block;
}

Stage::Stage(const Training& training, std::int64_t stage, std::vector<Slot> slots)
    : training_(training),
      stage_(stage),
      slots_(std::move(slots)),
      parameters_(training.strategy, training.options, mesh_of_stage(training, stage),
                  training.axes) {
  for (const Slot& slot : slots_) {
    if (slot.direction == Direction::kBackward) last_backward_[slot.chunk] = slot.micro_batch;
  }
  for (std::int64_t p = stage; p < training.pieces(); p += training.strategy.pipeline_parallel) {
    if (p == 0) add_unit("embedding", *training.embedding);
    for (std::int64_t i = 0; i < training.layers_of_piece[static_cast<std::size_t>(p)]; ++i)
      add_unit("layers." + std::to_string(first_layer(p) + i), *training.layer);
    if (p == training.pieces() - 1) add_unit("head", *training.head);
  }
  if (parameters_.sharding().gather == StateSharding::Gather::kStartOfStep)
    parameters_.gather_all();
}

void Stage::add_unit(const std::string& name, const ShardedBlock& block) {
  units_.emplace(name, parameters_.add(name, block.forward, block.also_partial,
                                       training_.model.tied_embeddings));
}

const Unit& Stage::unit(const std::string& name) const {
  return units_.at(name);
}

std::int64_t Stage::piece(const Slot& slot) const {
  return slot.chunk * training_.strategy.pipeline_parallel + stage_;
}

std::int64_t Stage::first_layer(std::int64_t piece) const {
  const auto& layers = training_.layers_of_piece;
  return std::accumulate(layers.begin(), layers.begin() + piece, std::int64_t{0});
}

Result<bool> Stage::advance(Mail& mail) {
  bool any = false;
  while (next_ < slots_.size()) {
    const Slot& slot = slots_[next_];
    const bool is_forward = slot.direction == Direction::kForward;
    const bool from_outside = is_forward ? piece(slot) > 0 : piece(slot) + 1 < training_.pieces();
    if (from_outside && !mail.contains({piece(slot), slot.micro_batch, slot.direction})) break;
    if (auto error = is_forward ? forward(slot, mail) : backward(slot, mail)) return *error;
    ++next_;
    any = true;
  }
  return any;
}

std::optional<Error> Stage::forward(const Slot& slot, Mail& mail) {
  const std::int64_t p = piece(slot);
  Distributed stream;
  if (p == 0) {
    if (auto error = forward_pass(*training_.embedding, "embedding", -1, slot.micro_batch, stream))
      return error;
  } else {
    stream = receive(slot, mail);
  }
  for (std::int64_t i = 0; i < training_.layers_of_piece[static_cast<std::size_t>(p)]; ++i) {
    const std::int64_t layer = first_layer(p) + i;
    if (auto error = forward_pass(*training_.layer, "layers." + std::to_string(layer), layer,
                                  slot.micro_batch, stream))
      return error;
  }
  if (p + 1 < training_.pieces()) {
    send(p + 1, slot, stream, mail);
    return std::nullopt;
  }
  return forward_pass(*training_.head, "head", -1, slot.micro_batch, stream);
}

std::optional<Error> Stage::backward(const Slot& slot, Mail& mail) {
  const std::int64_t p = piece(slot);
  Distributed stream;
  if (p + 1 == training_.pieces()) {
    if (auto error = backward_pass(*training_.head, "head", -1, slot, stream)) return error;
  } else {
    stream = receive(slot, mail);
  }
  for (std::int64_t i = training_.layers_of_piece[static_cast<std::size_t>(p)]; i-- > 0;) {
    const std::int64_t layer = first_layer(p) + i;
    if (auto error =
            backward_pass(*training_.layer, "layers." + std::to_string(layer), layer, slot, stream))
      return error;
  }
  if (p > 0) {
    send(p - 1, slot, stream, mail);
    return std::nullopt;
  }
  return backward_pass(*training_.embedding, "embedding", -1, slot, stream);
}

GraphRun Stage::how(std::int64_t layer, std::int32_t micro_batch) const {
  const auto samples = static_cast<double>(training_.strategy.global_batch);
  const auto length = static_cast<double>(training_.model.sequence);
  const std::uint64_t key = key_of(key_of(training_.options.seed, "dropout"), layer);
  return {.mesh = parameters_.mesh(),
          .context = {.key = key_of(key, std::int64_t{micro_batch}),
                      .loss_scale = 1 / (samples * length)}};
}

// "token_ids" and "targets": token i of a sequence, and the next one.
Distributed Stage::tokens(const ShardedBlock& block, const std::string& tensor,
                          std::int32_t micro_batch) const {
  const Tensor& ids = block.forward[tensor_named(block.forward, tensor)];
  const std::int64_t shift = tensor == "targets" ? 1 : 0;
  const std::int64_t length = ids.shape[1];
  const std::uint64_t key =
      key_of(key_of(training_.options.seed, "tokens"), std::int64_t{micro_batch});
  const Slices slices(Layout{parameters_.mesh(), *ids.pinned}, ids.shape);
  Distributed result{*ids.pinned, {}};
  for (std::int64_t p = 0; p < parameters_.mesh().size(); ++p) {
    std::vector<double> values;
    for (const std::int64_t index : logical_indices(ids.shape, slices.of(p))) {
      const std::int64_t at = index / length * (length + 1) + index % length + shift;
      values.push_back(
          std::floor(uniform(key, at) * static_cast<double>(training_.model.vocabulary)));
    }
    result.shards.of_position.push_back(std::move(values));
  }
  return result;
}

std::optional<Error> Stage::forward_pass(const ShardedBlock& block, const std::string& name,
                                         std::int64_t layer, std::int32_t micro_batch,
                                         Distributed& stream) {
  parameters_.gather(unit(name));
  Tensors tensors = parameters_.parameters_of(unit(name), block.forward);
  for (const TensorId id : block.forward.inputs) tensors[id] = stream;
  for (const char* given : {"token_ids", "targets"}) {
    const auto it = std::ranges::find(block.forward.tensors, given, &Tensor::name);
    if (it != block.forward.tensors.end())
      tensors[TensorId{it - block.forward.tensors.begin()}] = tokens(block, given, micro_batch);
  }
  if (auto error = run(block.forward_sharded, how(layer, micro_batch), tensors)) return error;
  parameters_.release(unit(name));
  const TensorId out = block.forward.outputs.front();
  if (&block == training_.head.get()) {
    keep_loss(tensors.at(out), micro_batch);
  } else {
    stream = tensors.at(out);
  }
  const auto storage = storages_of(block.forward);
  std::erase_if(tensors, [&](const auto& entry) {
    return !block.kept.contains(storage[entry.first.index()]);
  });
  saved_[{name, micro_batch}] = std::move(tensors);
  return std::nullopt;
}

std::optional<Error> Stage::backward_pass(const ShardedBlock& block, const std::string& name,
                                          std::int64_t layer, const Slot& slot,
                                          Distributed& stream) {
  parameters_.gather(unit(name));
  Tensors tensors = std::move(saved_.at({name, slot.micro_batch}));
  saved_.erase({name, slot.micro_batch});
  tensors.merge(parameters_.parameters_of(unit(name), block.forward));
  GraphRun graph_run = how(layer, slot.micro_batch);
  if (block.recompute != Recompute::kNone) {
    if (block.recompute == Recompute::kSelective)
      graph_run.wanted = [](const Operator& op) { return op.core_attention; };
    if (auto error = run(block.forward_sharded, graph_run, tensors)) return error;
    graph_run.wanted = nullptr;
  }
  for (const TensorId id : block.backward.inputs) tensors[id] = stream;
  if (auto error = run(block.backward_sharded, graph_run, tensors)) return error;
  parameters_.release(unit(name));
  Tensors gradients;
  for (const auto& [parameter, gradient] : block.gradient_of)
    gradients[parameter] = tensors.at(gradient);
  parameters_.accumulate(unit(name), gradients);
  if (!block.backward.outputs.empty()) stream = tensors.at(block.backward.outputs.front());
  reduce_after(unit(name), slot);
  return std::nullopt;
}

// From the statistics, per token: log(sum of exponentials) - the target's logit.
void Stage::keep_loss(const Distributed& statistics, std::int32_t micro_batch) {
  const ShardedBlock& head = *training_.head;
  const Shape& shape = head.forward[head.forward.outputs.front()].shape;
  const Slices slices(Layout{parameters_.mesh(), statistics.attribute}, shape);
  const Shape tokens{shape[0], shape[1]};
  for (std::int64_t p = 0; p < parameters_.mesh().size(); ++p) {
    Box box = slices.of(p);
    box.begin.pop_back();
    box.end.pop_back();
    const auto& values = statistics.shards.of_position[static_cast<std::size_t>(p)];
    Held held{.tensor = "loss." + std::to_string(micro_batch),
              .rank = parameters_.mesh().ranks[static_cast<std::size_t>(p)],
              .indices = logical_indices(tokens, box)};
    for (std::size_t i = 0; i < held.indices.size(); ++i)
      held.values.push_back(std::log(values[2 * i]) - values[2 * i + 1]);
    losses_.push_back(std::move(held));
  }
}

// Every rank sends what it holds to the one with the same coordinates in the other stage.
void Stage::send(std::int64_t to, const Slot& slot, const Distributed& stream, Mail& mail) {
  const Tensor& boundary = training_.boundary();
  const Attribute sent = lower::as_sent(boundary, training_.strategy, training_.mesh);
  FORESHARD_CHECK(stream.attribute == *boundary.pinned);
  mail[{to, slot.micro_batch, slot.direction}] =
      convert(stream.shards, boundary.shape, stream.attribute, sent, parameters_.mesh());
}

Distributed Stage::receive(const Slot& slot, Mail& mail) {
  const Tensor& boundary = training_.boundary();
  const Attribute sent = lower::as_sent(boundary, training_.strategy, training_.mesh);
  auto letter = mail.extract({piece(slot), slot.micro_batch, slot.direction});
  return {*boundary.pinned,
          convert(letter.mapped(), boundary.shape, sent, *boundary.pinned, parameters_.mesh())};
}

void Stage::reduce_after(const Unit& unit, const Slot& slot) {
  using Reduce = StateSharding::Reduce;
  const Reduce when = parameters_.sharding().reduce;
  const bool last = slot.micro_batch == last_backward_.at(slot.chunk);
  if (when == Reduce::kEveryMicroBatch || (when == Reduce::kLastMicroBatch && last))
    parameters_.reduce(unit);
}

void Stage::finish_gradients() {
  using Reduce = StateSharding::Reduce;
  const Reduce when = parameters_.sharding().reduce;
  if (when == Reduce::kNever || when == Reduce::kEndOfStep) {
    for (const auto& [name, unit] : units_) parameters_.reduce(unit);
  }
  parameters_.reduce_replicated();
}

}  // namespace foreshard::execute
