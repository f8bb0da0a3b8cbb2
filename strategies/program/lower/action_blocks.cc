#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/program/lower/calls.h"
#include "strategies/program/lower/host_blocks.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionKind;
using plan::StepPlan;
using program::Allocate;
using program::Block;
using program::CollectiveKind;
using program::Communication;
using program::Free;
using program::MemoryKind;
using program::Purpose;
using program::Task;

Task memory_task(std::string name, program::TaskBody body) {
  return Task{.name = std::move(name), .body = std::move(body)};
}

// Makes the blocks of one role's actions.
class ActionBlockBuilder {
 public:
  ActionBlockBuilder(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
                     const plan::Role& role)
      : plan_(plan),
        strategy_(strategy),
        framework_(*strategy.framework),
        states_(plan.states),
        mesh_(plan.parts.mesh),
        blocks_(blocks),
        role_(role),
        pipeline_(axis_of(mesh_, "pipeline")),
        copies_(copy_axes(mesh_)),
        shards_(shard_axes(mesh_)) {}

  Block make(const Action& action, const BlockKey& subject) const {
    switch (action.kind) {
      case ActionKind::kPass:
        return pass(action, subject);
      case ActionKind::kGather:
        return gather(action, subject.of);
      case ActionKind::kReduce:
        return reduction(action, subject.of);
      case ActionKind::kReduceCopies:
        return copies(plan_.copies[static_cast<std::size_t>(action.what)]);
      case ActionKind::kSend:
        return send(action);
      case ActionKind::kReceive:
        return receive(action, subject.syncs);
      case ActionKind::kOptimizer:
        return optimizer();
      case ActionKind::kOffload:
        return activations_to_host(block_name(subject.of), kept_buffer(subject.of),
                                   lowered(subject.of).saved, strategy_.precision);
      case ActionKind::kFetch:
        return activations_from_host(block_name(subject.of), kept_buffer(subject.of),
                                     lowered(subject.of).saved, strategy_.precision);
      case ActionKind::kOffloadGradients:
        return copied_gradients(action, subject.of);
      case ActionKind::kSync:
        break;
    }
    return sync(action.what < 0 ? "pass.sync" : "pipeline.sync");
  }

 private:
  const plan::Unit& unit(std::int32_t index) const {
    return plan_.parts.units[static_cast<std::size_t>(index)];
  }
  const plan::Bucket& bucket(const Action& action) const {
    return plan_.buckets[static_cast<std::size_t>(action.what)];
  }
  const std::string& block_name(std::int32_t block) const {
    return plan_.parts.blocks[static_cast<std::size_t>(block)].name;
  }
  const LoweredBlock& lowered(std::int32_t block) const {
    return *blocks_.blocks[static_cast<std::size_t>(block)];
  }
  // The name of the buffer plan::kKept.
  std::string kept_buffer(std::int32_t block) const { return block_name(block) + ".activations"; }
  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }

  static Block sync(const std::string& name) {
    Block wait{.name = name};
    wait.tasks.push_back(Task{.name = name, .body = program::Sync{}});
    return wait;
  }

  // A block with one communication.
  static Block communication(const std::string& name, Communication what, StreamIndex where) {
    Block block{.name = name};
    block.tasks.push_back(Task{.name = name, .body = std::move(what), .stream = stream(where)});
    return block;
  }

  // The tasks of a pass, between the allocations before them and the frees after them.
  Block pass(const Action& action, const BlockKey& subject) const {
    const LoweredBlock& from = lowered(subject.of);
    const std::string& kind = block_name(subject.of);
    const std::string work = fmt::format("{}.{}.work", kind, word(action));
    const Bytes transient = transient_of(from, action);
    const auto& [kept, kept_for_weight, held] = activations_of(from, action);
    Block block = *subject.tasks;
    if ((action.takes & plan::kKeptForWeight) != 0) block.name += ".split";
    if (subject.begins) {
      std::vector<Task> tasks;
      const auto keep = [&](std::uint8_t buffer, const std::string& name, Bytes bytes) {
        if ((action.takes & buffer) != 0 && bytes > 0_B)
          tasks.push_back(
              memory_task("keep", Allocate{kind + name, MemoryKind::kActivations, bytes}));
      };
      keep(plan::kKept, ".activations", kept);
      keep(plan::kKeptForWeight, ".activations_for_weights", kept_for_weight);
      keep(plan::kHeld, ".held_for_weights", held);
      if (transient > 0_B)
        tasks.push_back(memory_task("work", Allocate{work, MemoryKind::kBuffers, transient}));
      if ((action.takes & plan::kGradient) != 0) take_gradients(action, subject.of, tasks);
      put_before(block, std::move(tasks));
    }
    if (subject.ends) {
      const std::vector<std::int32_t> uses =
          reduces_inside(block) ? last_uses(block) : std::vector<std::int32_t>{};
      const auto free = [&](std::string name, std::string buffer) {
        block.tasks.push_back(
            Task{.name = std::move(name), .body = Free{std::move(buffer)}, .after = uses});
      };
      if (transient > 0_B) free("work done", work);
      if ((action.gives_back & plan::kWhole) != 0)
        for (const auto& group : plan_.parts.cut_groups(from.parameters))
          free("release", parameters_of(group.over, subject.of));
      const auto forget = [&](std::uint8_t buffer, const std::string& name, Bytes bytes) {
        if ((action.gives_back & buffer) != 0 && bytes > 0_B) free("forget", kind + name);
      };
      forget(plan::kKept, ".activations", kept);
      forget(plan::kKeptForWeight, ".activations_for_weights", kept_for_weight);
      forget(plan::kHeld, ".held_for_weights", held);
    }
    return block;
  }

  static Bytes transient_of(const LoweredBlock& block, const Action& pass) {
    if (pass.direction == Direction::kForward) return block.transient_forward;
    if (pass.part == plan::PassPart::kWhole) return block.transient_backward;
    return pass.part == plan::PassPart::kInput ? block.split->transient_input
                                               : block.split->transient_weight;
  }

  // Sizes of the buffers plan::kKept, kKeptForWeight and kHeld.
  struct Activations {
    Bytes kept;
    Bytes kept_for_weight{};
    Bytes held{};
  };
  static Activations activations_of(const LoweredBlock& block, const Action& pass) {
    const bool apart =
        pass.part != plan::PassPart::kWhole || (pass.takes & plan::kKeptForWeight) != 0;
    if (!apart) return {block.saved};
    const Bytes for_weight = std::min(block.saved, block.split->kept_for_weight);
    return {block.saved - for_weight, for_weight, block.split->held};
  }

  // Whether the block reduces gradients: such tasks can outlast its use of activations.
  static bool reduces_inside(const Block& block) {
    return std::ranges::find(block.tasks, stream(kDataStream), &Task::stream) != block.tasks.end();
  }

  // Allocates the gradient buckets that the pass of a unit of block `of` is the first to add to.
  void take_gradients(const Action& action, std::int32_t of, std::vector<Task>& tasks) const {
    std::vector<std::int32_t> opened;
    for (const Action& other : role_.actions)
      if (other.kind == ActionKind::kReduce && action.units.contains(bucket(other).opened_by))
        opened.push_back(other.what);
    // In the order of the model: with a tied table, the embedding's bucket before the head's.
    std::ranges::sort(opened, {}, [&](std::int32_t i) {
      return std::pair(plan_.buckets[static_cast<std::size_t>(i)].units.front(), i);
    });
    opened.erase(std::unique(opened.begin(), opened.end()), opened.end());
    FORESHARD_CHECK(!opened.empty() && unit(action.units.first).block == of);
    for (const std::int32_t index : opened) {
      const plan::Bucket& one = plan_.buckets[static_cast<std::size_t>(index)];
      const Bytes whole = size_of(gradient_dtype()) * static_cast<double>(one.elements);
      tasks.push_back(
          memory_task("gradients", Allocate{gradients_of(one, unit(one.units.front().first).block),
                                            MemoryKind::kGradients, whole}));
    }
  }

  // ".tensor.data" for axes other than the usual ones, else "".
  std::string other_axes(const std::vector<Axis>& axes, const std::vector<Axis>& usual) const {
    std::string names;
    if (axes == usual) return names;
    for (const Axis axis : axes) names += "." + mesh_[static_cast<std::size_t>(axis)].name;
    return names;
  }
  // The name of the buffer for the whole gradients of a bucket.
  std::string gradients_of(const plan::Bucket& bucket, std::int32_t of) const {
    return block_name(of) + ".gradients" + other_axes(bucket.over, copies_);
  }

  // --- data parallelism ------------------------------------------------------------------------
  Block reduction(const Action& action, std::int32_t of) const {
    const plan::Bucket& summed = bucket(action);
    const bool alone = of_one_unit(states_, action);
    Block block{.name = (alone ? block_name(of) + ".reduce"
                               : fmt::format("gradients.reduce.{}", summed.elements)) +
                        other_axes(summed.over, copies_)};
    append_reduction(block, "gradients", summed.elements, summed.over, mesh_, strategy_, {});
    if ((action.gives_back & plan::kGradient) != 0)
      block.tasks.push_back(memory_task("release", Free{gradients_of(summed, of)}));
    return block;
  }

  // Elements of a bucket that one rank has after its reduction.
  std::int64_t reduced_elements(const plan::Bucket& bucket) const {
    if (!states_.cuts_optimizer) return bucket.elements;
    return plan::shard_of(bucket.elements, {.over = cut_axes(mesh_, bucket.over)}, mesh_);
  }

  Block copied_gradients(const Action& action, std::int32_t of) const {
    const plan::Bucket& summed = bucket(action);
    const bool alone = of_one_unit(states_, action);
    return gradients_to_host(
        (alone ? block_name(of) + ".gradients" : fmt::format("gradients.{}", summed.elements)) +
            ".to_host" + other_axes(summed.over, copies_),
        reduced_elements(summed));
  }

  Block gather(const Action& action, std::int32_t of) const {
    const plan::Bucket& whole = bucket(action);
    const std::int64_t gathered = gathered_elements(strategy_, whole.elements, whole.quantized);
    const std::string axes = other_axes(whole.over, shards_);
    if (!of_one_unit(states_, action))
      return gathering(fmt::format("parameters.gather.{}{}", gathered, axes), gathered, whole.over);
    const std::string name = block_name(of) + ".gather" + axes;
    if ((action.takes & plan::kWhole) == 0) return gathering(name, gathered, whole.over);
    Block gather =
        gathers_each(of) ? gathering_each(action, of) : gathering(name, gathered, whole.over);
    const std::int64_t shards = ways(whole.over, mesh_);
    const auto shard = [&](std::int64_t count) { return (count + shards - 1) / shards; };
    append_weight_casts(gather, strategy_,
                        cast_at_gather(strategy_, whole.quantized, shard(whole.quantized)),
                        kDataStream, false);
    std::vector<Task> first{memory_task(
        "keep", Allocate{parameters_of(whole.over, of), MemoryKind::kParameters,
                         whole_parameters(strategy_, whole.elements, whole.quantized)})};
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
      put_parameters_before(gather, element * static_cast<double>(shard(held)),
                            strategy_.precision);
    }
    return gather;
  }

  // The name of the buffer for whole parameters that are cut over these axes.
  std::string parameters_of(const std::vector<Axis>& over, std::int32_t of) const {
    return block_name(of) + ".parameters" + other_axes(over, shards_);
  }

  // Gathers parameters of `count` elements from shards.
  Block gathering(const std::string& name, std::int64_t count,
                  const std::vector<Axis>& over) const {
    Block block{.name = name};
    Attribute from = replicated(1);
    from.dims[0] = over;
    append_reshard(block, "parameters", {padded(count, over, mesh_)}, strategy_.precision, from,
                   replicated(1), mesh_, stream(kDataStream), {});
    return block;
  }

  // Whether the unit's parameters are gathered one by one.
  // Not modelled: parameters that stay whole, in a unit that has no larger ones.
  bool gathers_each(std::int32_t of) const {
    const auto threshold = framework_.shards.gather_each;
    return threshold && std::ranges::any_of(lowered(of).parameter_sizes,
                                            [&](std::int64_t count) { return count > *threshold; });
  }

  // Gathers each parameter by itself; the host waits for each. A backward pass with full
  // recomputation gathers twice: for the recomputation and for the gradients.
  Block gathering_each(const Action& action, std::int32_t of) const {
    const bool twice = action.direction == Direction::kBackward &&
                       action.part != plan::PassPart::kWeight &&
                       lowered(of).recompute == Recompute::kFull;
    Block gather{.name = block_name(of) + (twice ? ".gather_twice" : ".gather_each")};
    for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
      for (const std::int64_t count : lowered(of).parameter_sizes) {
        if (count <= *framework_.shards.gather_each) continue;
        const std::int64_t quantized = lowered(of).quantized_in(count);
        Block one = gathering(gather.name, gathered_elements(strategy_, count, quantized),
                              bucket(action).over);
        FORESHARD_CHECK(one.tasks.size() == 1);
        gather.tasks.push_back(std::move(one.tasks.front()));
        const auto gathered = static_cast<std::int32_t>(gather.tasks.size()) - 1;
        gather.tasks.push_back(
            Task{.name = "gather.sync", .body = program::Sync{}, .after = {gathered}});
      }
    }
    return gather;
  }

  // --- transfers between stages ----------------------------------------------------------------
  // The stage on the other side of the crossing.
  std::int64_t peer(const Action& action) const {
    const plan::Crossing& crossing = plan_.crossings[static_cast<std::size_t>(action.what)];
    const bool to_later =
        (action.kind == ActionKind::kSend) == (action.direction == Direction::kForward);
    return to_later ? crossing.to_role : crossing.from_role;
  }

  static std::string_view word(Direction direction) {
    return direction == Direction::kForward ? "forward" : "backward";
  }
  static std::string_view word(const Action& pass) {
    if (pass.part == plan::PassPart::kWhole) return word(pass.direction);
    return pass.part == plan::PassPart::kInput ? "backward_input" : "backward_weight";
  }

  const std::vector<Boundary>& handed(const Action& action) const {
    const bool is_one = blocks_.boundaries.size() == 1;
    return blocks_.boundaries[is_one ? 0 : static_cast<std::size_t>(action.what)];
  }
  static bool moves(const Boundary& boundary, const Action& action) {
    return action.direction == Direction::kForward || boundary.has_gradient;
  }

  // "receive_forward.from2", with a mark on the way back of a V and where crossings differ.
  std::string transfer_name(std::string_view what, const Action& action) const {
    const bool differ = std::ranges::adjacent_find(blocks_.boundaries, std::not_equal_to{}) !=
                        blocks_.boundaries.end();
    return fmt::format("{}{}{}{}", what, peer(action), action.returns ? ".returning" : "",
                       differ ? fmt::format(".crossing{}", action.what) : "");
  }

  // Sends or receives all tensors of the crossing in one message.
  Communication transfer(CollectiveKind kind, const Action& action) const {
    Communication one{.kind = kind,
                      .group = program::AxisPeer{.axis = pipeline_, .coordinate = peer(action)},
                      .dtype = handed(action).front().dtype,
                      .purpose = Purpose::kPipeline,
                      .tag = std::string(word(action.direction))};
    for (const Boundary& boundary : handed(action)) {
      if (!moves(boundary, action)) continue;
      double count = 1;
      for (const auto extent : largest_local_shape(boundary.shape, boundary.sent, mesh_))
        count *= static_cast<double>(extent);
      one.bytes += size_of(boundary.dtype) * count;
    }
    return one;
  }

  Block receive(const Action& action, bool syncs) const {
    const bool is_forward = action.direction == Direction::kForward;
    Block receive =
        communication(transfer_name(fmt::format("receive_{}.from", word(action.direction)), action),
                      transfer(CollectiveKind::kReceive, action),
                      action.returns ? is_forward ? kReceiveForwardReturningStream
                                                  : kReceiveBackwardReturningStream
                      : is_forward   ? kReceiveForwardStream
                                     : kReceiveBackwardStream);
    for (const Boundary& boundary : handed(action)) {
      if (moves(boundary, action))
        append_reshard(receive, "boundary", boundary.shape, boundary.dtype, boundary.sent,
                       boundary.lies, mesh_, stream(kTensorStream), {0});
    }
    if (syncs) receive.tasks.push_back(Task{.name = "sync", .body = program::Sync{}, .after = {0}});
    return receive;
  }

  Block send(const Action& action) const {
    const bool is_forward = action.direction == Direction::kForward;
    return communication(
        transfer_name(fmt::format("send_{}.to", word(action.direction)), action),
        transfer(CollectiveKind::kSend, action),
        action.returns ? is_forward ? kSendForwardReturningStream : kSendBackwardReturningStream
        : is_forward   ? kSendForwardStream
                       : kSendBackwardStream);
  }

  // --- end of the step -------------------------------------------------------------------------
  Block copies(const plan::GradientCopies& copies) const {
    if (copies.roles.size() > 1) return tied(copies);
    Block block{.name = fmt::format("replicated_gradients.reduce.{}", copies.elements)};
    Attribute from = replicated(1);
    from.partial = sums_over(copies.axes);
    append_reshard(block, "replicated_gradients", {copies.elements}, gradient_dtype(), from,
                   replicated(1), mesh_, stream(kTensorStream), {});
    return block;
  }

  // Stages that each hold a copy of a parameter add up their gradients.
  Block tied(const plan::GradientCopies& copies) const {
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

  Block optimizer() const {
    std::int64_t count = 0;
    std::int64_t quantized = 0;
    for (const plan::ParameterGroup& group : role_.parameters) {
      const auto shard = [&](std::int64_t of) { return plan::shard_of(of, group, mesh_); };
      count += states_.cuts_optimizer ? shard(group.trained()) : group.trained();
      quantized += cast_at_step_end(strategy_, group, mesh_);
    }
    // Data-parallel ranks hold equal gradients unless each has a shard of the optimizer's states.
    std::vector<Axis> spread;
    for (Axis axis = 0; axis < static_cast<Axis>(mesh_.size()); ++axis) {
      const bool is_cut = std::ranges::find(shards_, axis) != shards_.end();
      if ((is_cut && states_.cuts_optimizer) || blocks_.split_over.contains(axis))
        spread.push_back(axis);
    }
    const std::vector<UpdateStep> update = update_steps(strategy_, mesh_, role_.parameters);
    std::string name = fmt::format("optimizer.{}", count);
    if (quantized > 0) name += fmt::format(".{}", quantized);
    const std::int64_t left = std::max<std::int64_t>(0, count - copied_elements());
    if (strategy_.offload_optimizer == OptimizerOffload::kCpu && left < count)
      name += fmt::format(".left.{}", left);
    return optimizer_block(std::move(name), strategy_, mesh_, spread, update,
                           {.count = count, .left = left, .quantized = quantized});
  }

  // Elements whose gradients were copied to the host after their reduction.
  std::int64_t copied_elements() const {
    std::set<std::int32_t> copied;
    for (const Action& action : role_.actions)
      if (action.kind == ActionKind::kOffloadGradients) copied.insert(action.what);
    std::int64_t sum = 0;
    for (const std::int32_t index : copied)
      sum += reduced_elements(plan_.buckets[static_cast<std::size_t>(index)]);
    return sum;
  }

  const StepPlan& plan_;
  const Strategy& strategy_;
  const Framework& framework_;
  const StateSharding& states_;
  const std::vector<MeshAxis>& mesh_;
  const PlannedBlocks& blocks_;
  const plan::Role& role_;
  Axis pipeline_;
  std::vector<Axis> copies_;
  std::vector<Axis> shards_;
};

}  // namespace

Block block_for(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
                const plan::Role& role, const Action& action, const BlockKey& subject) {
  return ActionBlockBuilder(plan, strategy, blocks, role).make(action, subject);
}

bool of_one_unit(const StateSharding& states, const Action& action) {
  if (action.kind == ActionKind::kGather) return states.gather != StateSharding::Gather::kEndOfStep;
  const bool reduces =
      action.kind == ActionKind::kReduce || action.kind == ActionKind::kOffloadGradients;
  return reduces && states.reduce != StateSharding::Reduce::kEndOfStep;
}

}  // namespace foreshard::lower
