// The blocks of gathers, reductions, transfers, copies and the optimizer (action_blocks.h).
// Lowering calls their maker by way of plan_blocks.cc, the search by way of
// sim/search/internal/layout.cc. Sizes are elements on one rank.
#include "strategies/program/lower/action_blocks.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/check.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/program/lower/host_blocks.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using plan::ActionKind;
using program::Allocate;
using program::Block;
using program::CollectiveKind;
using program::Communication;
using program::Free;
using program::MemoryKind;
using program::Purpose;
using program::Task;

// A block with one communication.
Block communication(const std::string& name, Communication what, StreamIndex where) {
  Block block{.name = name};
  block.tasks.push_back(Task{.name = name, .body = std::move(what), .stream = stream(where)});
  return block;
}

std::string_view word(Direction direction) {
  return direction == Direction::kForward ? "forward" : "backward";
}

bool moves(const Boundary& boundary, const Subject& subject) {
  return subject.direction == Direction::kForward || boundary.has_gradient;
}

}  // namespace

ActionBlocks::ActionBlocks(const Strategy& strategy, const StateSharding& states,
                           const std::vector<MeshAxis>& mesh, std::set<Axis> split_over)
    : strategy_(strategy),
      states_(states),
      mesh_(mesh),
      split_over_(std::move(split_over)),
      pipeline_(axis_of(mesh, "pipeline")),
      copies_(copy_axes(mesh)),
      shards_(shard_axes(mesh)) {}

Block ActionBlocks::make(const Subject& subject) const {
  switch (subject.kind) {
    case ActionKind::kGather:
      return gather(subject);
    case ActionKind::kReduce:
      return reduction(subject);
    case ActionKind::kReduceCopies:
      return subject.copies.roles.size() > 1 ? tied(subject.copies) : copies(subject.copies);
    case ActionKind::kSend:
      return send(subject);
    case ActionKind::kReceive:
      return receive(subject);
    case ActionKind::kOptimizer:
      return optimizer(subject);
    case ActionKind::kOffload:
      return activations_to_host(subject.unit, kept_buffer(subject.unit), subject.block->saved,
                                 strategy_.precision);
    case ActionKind::kFetch:
      return activations_from_host(subject.unit, kept_buffer(subject.unit), subject.block->saved,
                                   strategy_.precision);
    case ActionKind::kOffloadGradients:
      return copied_gradients(subject);
    case ActionKind::kPass:
    case ActionKind::kSync:
      break;
  }
  FORESHARD_CHECK(subject.kind == ActionKind::kSync);
  Block wait{.name = subject.mark + ".sync"};
  wait.tasks.push_back(Task{.name = wait.name, .body = program::Sync{}});
  return wait;
}

DType ActionBlocks::gradient_dtype() const {
  return strategy_.framework->gradients_of(strategy_.precision);
}

// ".tensor.data" for axes other than the usual ones, else "".
std::string ActionBlocks::other_axes(const std::vector<Axis>& axes,
                                     const std::vector<Axis>& usual) const {
  std::string names;
  if (axes == usual) return names;
  for (const Axis axis : axes) names += "." + mesh_[static_cast<std::size_t>(axis)].name;
  return names;
}

std::string ActionBlocks::gradients_of(const std::vector<Axis>& over,
                                       const std::string& unit) const {
  return unit + ".gradients" + other_axes(over, copies_);
}
std::string ActionBlocks::parameters_of(const std::vector<Axis>& over,
                                        const std::string& unit) const {
  return unit + ".parameters" + other_axes(over, shards_);
}

// --- data parallelism ----------------------------------------------------------------------------
Block ActionBlocks::reduction(const Subject& subject) const {
  const plan::Bucket& summed = subject.bucket;
  Block block{.name =
                  (subject.block != nullptr ? subject.unit + ".reduce"
                                            : fmt::format("gradients.reduce.{}", summed.elements)) +
                  other_axes(summed.over, copies_)};
  append_reduction(block, "gradients", summed.elements, summed.over, mesh_, strategy_, {});
  if (subject.frees)
    block.tasks.push_back(
        {.name = "release", .body = Free{gradients_of(summed.over, subject.unit)}});
  return block;
}

std::int64_t ActionBlocks::reduced_elements(std::int64_t count,
                                            const std::vector<Axis>& over) const {
  if (!states_.cuts_optimizer) return count;
  return plan::shard_of(count, {.over = cut_axes(mesh_, over)}, mesh_);
}

Block ActionBlocks::copied_gradients(const Subject& subject) const {
  const plan::Bucket& summed = subject.bucket;
  return gradients_to_host(
      (subject.block != nullptr ? subject.unit + ".gradients"
                                : fmt::format("gradients.{}", summed.elements)) +
          ".to_host" + other_axes(summed.over, copies_),
      reduced_elements(summed.elements, summed.over));
}

// Only where parameters are whole during the unit's passes alone is there memory for them, and
// shards may be cast or come from the host.
Block ActionBlocks::gather(const Subject& subject) const {
  const plan::Bucket& whole = subject.bucket;
  const std::int64_t gathered = gathered_elements(strategy_, whole.elements, whole.quantized);
  const std::string axes = other_axes(whole.over, shards_);
  if (subject.block == nullptr)
    return gathering(fmt::format("parameters.gather.{}{}", gathered, axes), gathered, whole.over);
  const std::string name = subject.unit + ".gather" + axes;
  if (states_.gather != StateSharding::Gather::kBeforeUse)
    return gathering(name, gathered, whole.over);
  // Not modelled: parameters that stay whole, in a unit that has no larger ones.
  const auto threshold = strategy_.framework->shards.gather_each;
  const bool each =
      threshold && std::ranges::any_of(subject.block->parameter_sizes,
                                       [&](std::int64_t count) { return count > *threshold; });
  Block gather = each ? gathering_each(subject) : gathering(name, gathered, whole.over);
  const std::int64_t shards = ways(whole.over, mesh_);
  const auto shard = [&](std::int64_t count) { return (count + shards - 1) / shards; };
  append_weight_casts(gather, strategy_,
                      cast_at_gather(strategy_, whole.quantized, shard(whole.quantized)),
                      kDataStream, false);
  std::vector<Task> first{
      {.name = "keep",
       .body = Allocate{parameters_of(whole.over, subject.unit), MemoryKind::kParameters,
                        whole_parameters(strategy_, whole.elements, whole.quantized)}}};
  // The cast runs on the stream of the gather that follows it.
  if (element_bytes(strategy_).parameter != size_of(strategy_.precision))
    first.push_back(Task{.name = "cast",
                         .body = Kernel{Pass{.kind = PassKind::kCast,
                                             .rows = shard(strategy_.quantized_parameters
                                                               ? whole.elements - whole.quantized
                                                               : whole.elements),
                                             .dtype = strategy_.precision}},
                         .stream = stream(kDataStream)});
  put_before(gather, std::move(first));
  if (strategy_.offload_parameters) {
    const Bytes element = element_bytes(strategy_).parameter;
    const std::int64_t held = element == size_of(strategy_.precision) ? gathered : whole.elements;
    put_parameters_before(gather, element * static_cast<double>(shard(held)), strategy_.precision);
  }
  return gather;
}

// Gathers parameters of `count` elements from shards.
Block ActionBlocks::gathering(const std::string& name, std::int64_t count,
                              const std::vector<Axis>& over) const {
  Block block{.name = name};
  Attribute from = replicated(1);
  from.dims[0] = over;
  append_reshard(block, "parameters", {padded(count, over, mesh_)}, strategy_.precision, from,
                 replicated(1), mesh_, stream(kDataStream), {});
  return block;
}

// Gathers each parameter by itself; the host waits for each. A backward pass with full
// recomputation gathers twice: for the recomputation and for the gradients.
Block ActionBlocks::gathering_each(const Subject& subject) const {
  const LoweredBlock& unit = *subject.block;
  const bool twice = subject.direction == Direction::kBackward &&
                     subject.part != plan::PassPart::kWeight && unit.recompute == Recompute::kFull;
  Block gather{.name = subject.unit + (twice ? ".gather_twice" : ".gather_each")};
  for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
    for (const std::int64_t count : unit.parameter_sizes) {
      if (count <= *strategy_.framework->shards.gather_each) continue;
      Block one =
          gathering(gather.name, gathered_elements(strategy_, count, unit.quantized_in(count)),
                    subject.bucket.over);
      FORESHARD_CHECK(one.tasks.size() == 1);
      gather.tasks.push_back(std::move(one.tasks.front()));
      const auto gathered = static_cast<std::int32_t>(gather.tasks.size()) - 1;
      gather.tasks.push_back(
          Task{.name = "gather.sync", .body = program::Sync{}, .after = {gathered}});
    }
  }
  return gather;
}

// --- transfers between stages --------------------------------------------------------------------
// Sends or receives all tensors of the crossing in one message.
Communication ActionBlocks::transfer(const Subject& subject) const {
  Communication one{
      .kind = subject.kind == ActionKind::kSend ? CollectiveKind::kSend : CollectiveKind::kReceive,
      .group = program::AxisPeer{.axis = pipeline_, .coordinate = subject.peer},
      .dtype = subject.boundaries->front().dtype,
      .purpose = Purpose::kPipeline,
      .tag = std::string(word(subject.direction))};
  for (const Boundary& boundary : *subject.boundaries) {
    if (!moves(boundary, subject)) continue;
    double count = 1;
    for (const auto extent : largest_local_shape(boundary.shape, boundary.sent, mesh_))
      count *= static_cast<double>(extent);
    one.bytes += size_of(boundary.dtype) * count;
  }
  return one;
}

// The names are such as "receive_forward.from2", with a mark on the way back of a V.
Block ActionBlocks::receive(const Subject& subject) const {
  const bool is_forward = subject.direction == Direction::kForward;
  Block receive = communication(
      fmt::format("receive_{}.from{}{}", word(subject.direction), subject.peer, subject.mark),
      transfer(subject),
      subject.returns
          ? is_forward ? kReceiveForwardReturningStream : kReceiveBackwardReturningStream
      : is_forward ? kReceiveForwardStream
                   : kReceiveBackwardStream);
  for (const Boundary& boundary : *subject.boundaries) {
    if (moves(boundary, subject))
      append_reshard(receive, "boundary", boundary.shape, boundary.dtype, boundary.sent,
                     boundary.lies, mesh_, stream(kTensorStream), {0});
  }
  if (subject.syncs)
    receive.tasks.push_back(Task{.name = "sync", .body = program::Sync{}, .after = {0}});
  return receive;
}

Block ActionBlocks::send(const Subject& subject) const {
  const bool is_forward = subject.direction == Direction::kForward;
  return communication(
      fmt::format("send_{}.to{}{}", word(subject.direction), subject.peer, subject.mark),
      transfer(subject),
      subject.returns ? is_forward ? kSendForwardReturningStream : kSendBackwardReturningStream
      : is_forward    ? kSendForwardStream
                      : kSendBackwardStream);
}

// --- end of the step -----------------------------------------------------------------------------
Block ActionBlocks::copies(const plan::GradientCopies& copies) const {
  Block block{.name = fmt::format("replicated_gradients.reduce.{}", copies.elements)};
  Attribute from = replicated(1);
  from.partial = sums_over(copies.axes);
  append_reshard(block, "replicated_gradients", {copies.elements}, gradient_dtype(), from,
                 replicated(1), mesh_, stream(kTensorStream), {});
  return block;
}

// Stages that each hold a copy of a parameter add up their gradients.
Block ActionBlocks::tied(const plan::GradientCopies& copies) const {
  const std::string name = "tied_embedding.reduce";
  Communication sum{
      .kind = CollectiveKind::kAllReduce,
      .group = program::AxisGroup{.axes = {pipeline_},
                                  .coordinates = {copies.roles.begin(), copies.roles.end()}},
      .bytes = size_of(gradient_dtype()) * static_cast<double>(copies.elements),
      .dtype = gradient_dtype(),
      .purpose = Purpose::kPipeline,
      .tag = name};
  return communication(name, std::move(sum), kTensorStream);
}

Block ActionBlocks::optimizer(const Subject& subject) const {
  std::int64_t count = 0;
  std::int64_t quantized = 0;
  for (const plan::ParameterGroup& group : subject.parameters) {
    count +=
        states_.cuts_optimizer ? plan::shard_of(group.trained(), group, mesh_) : group.trained();
    quantized += cast_at_step_end(strategy_, group, mesh_);
  }
  // Data-parallel ranks hold equal gradients unless each has a shard of the optimizer's states.
  std::vector<Axis> spread;
  for (Axis axis = 0; axis < static_cast<Axis>(mesh_.size()); ++axis) {
    const bool is_cut = std::ranges::find(shards_, axis) != shards_.end();
    if ((is_cut && states_.cuts_optimizer) || split_over_.contains(axis)) spread.push_back(axis);
  }
  const std::vector<UpdateStep> update = update_steps(strategy_, mesh_, subject.parameters);
  std::string name = fmt::format("optimizer.{}", count);
  if (quantized > 0) name += fmt::format(".{}", quantized);
  const std::int64_t left = std::max<std::int64_t>(0, count - subject.copied);
  if (strategy_.offload_optimizer == OptimizerOffload::kCpu && left < count)
    name += fmt::format(".left.{}", left);
  return optimizer_block(std::move(name), strategy_, mesh_, spread, update,
                         {.count = count, .left = left, .quantized = quantized});
}

}  // namespace foreshard::lower
