#include "strategies/program/lower/calls.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/check.h"

#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::StepPlan;
using program::Allocate;
using program::Block;
using program::BlockId;
using program::Call;
using program::CollectiveKind;
using program::Communication;
using program::Free;
using program::MemoryKind;
using program::Program;
using program::Purpose;
using program::Role;
using program::Task;

// Blocks of parts_of().
enum PartIndex : std::int32_t { kEmbedding, kLayer, kHead };

Task memory_task(std::string name, program::TaskBody body) {
  return Task{.name = std::move(name), .body = std::move(body)};
}

// What a block of the Program is made for. Actions that agree in it share a block.
struct Subject {
  ActionKind kind = ActionKind::kPass;
  Direction direction = Direction::kForward;
  std::int32_t of = 0;  // a block of the plan, a role, or an index as in Action::what
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  bool syncs = false;
  auto operator<=>(const Subject&) const = default;
};

// Writes the calls of all roles.
class Writer {
 public:
  Writer(Program& program, const StepPlan& plan, const Strategy& strategy,
         const LoweredModel& blocks)
      : program_(program),
        plan_(plan),
        strategy_(strategy),
        framework_(*strategy.framework),
        states_(plan.states),
        mesh_(blocks.mesh),
        blocks_(blocks),
        lowered_{&blocks.embedding, &blocks.layer, &blocks.head},
        pipeline_(axis_of(mesh_, "pipeline")),
        data_(axis_of(mesh_, "data")) {}

  void write(const plan::Role& from, Role& to) {
    from_ = &from;
    to_ = &to;
    call_of_.assign(from.actions.size(), -1);
    for (std::size_t id = 0; id < from.actions.size(); ++id) {
      const Action& action = from.actions[id];
      if (action.kind == ActionKind::kPass) {
        write_pass(id);
      } else if (is_sync_of_receive(id)) {
        call_of_[id] = call_of_[id - 1];
      } else {
        const bool syncs = id + 1 < from.actions.size() && is_sync_of_receive(id + 1);
        Call one = between_units(action) ? Call{} : at(action);
        if (of_one_unit(action)) one.first_layer = unit(bucket(action).units.front().first).layer;
        write_call(id,
                   Subject{.kind = action.kind,
                           .direction = action.direction,
                           .of = subject_of(action),
                           .takes = action.takes,
                           .gives_back = action.gives_back,
                           .syncs = syncs},
                   std::move(one), action.after);
      }
    }
  }

 private:
  // --- the plan ------------------------------------------------------------------------------
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
    return *lowered_[static_cast<std::size_t>(block)];
  }
  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }

  // Whether the action moves the bucket of one unit beside its passes, rather than all of a role's.
  bool of_one_unit(const Action& action) const {
    if (action.kind == ActionKind::kGather)
      return states_.gather != StateSharding::Gather::kEndOfStep;
    return action.kind == ActionKind::kReduce &&
           states_.reduce != StateSharding::Reduce::kEndOfStep;
  }
  // Whether the action belongs to the step rather than to a micro-batch.
  bool between_units(const Action& action) const {
    const bool moves = action.kind == ActionKind::kGather || action.kind == ActionKind::kReduce;
    return (moves && !of_one_unit(action)) || action.kind == ActionKind::kReduceCopies ||
           action.kind == ActionKind::kOptimizer || action.kind == ActionKind::kSync;
  }
  std::int32_t subject_of(const Action& action) const {
    if (action.kind == ActionKind::kOptimizer)
      return static_cast<std::int32_t>(from_ - plan_.roles.data());
    return of_one_unit(action) ? unit(bucket(action).units.front().first).block : action.what;
  }
  // A sync that waits for the receive before it alone is a task of the receive's block.
  bool is_sync_of_receive(std::size_t id) const {
    const Action& action = from_->actions[id];
    return action.kind == ActionKind::kSync && id > 0 &&
           from_->actions[id - 1].kind == ActionKind::kReceive &&
           action.after == std::vector<ActionId>{static_cast<ActionId>(id) - 1};
  }

  // --- calls ---------------------------------------------------------------------------------
  static Call at(const Action& action) {
    return Call{.chunk = action.chunk, .micro_batch = action.micro_batch};
  }

  void write_call(std::size_t id, const Subject& subject, Call call,
                  const std::vector<ActionId>& after) {
    const auto [found, is_new] = block_of_.emplace(subject, BlockId{});
    if (is_new) found->second = add(block_for(from_->actions[id], subject));
    call.block = found->second;
    for (const ActionId earlier : after)
      call.after.push_back({.call = call_of_[static_cast<std::size_t>(earlier)]});
    std::ranges::sort(call.after);
    call.after.erase(std::unique(call.after.begin(), call.after.end()), call.after.end());
    to_->calls.push_back(std::move(call));
    call_of_[id] = static_cast<std::int32_t>(to_->calls.size()) - 1;
  }

  // One call for each run of units of one block.
  void write_pass(std::size_t id) {
    const Action& pass = from_->actions[id];
    const bool is_forward = pass.direction == Direction::kForward;
    const std::int32_t step = is_forward ? 1 : -1;
    const auto nth = [&](std::int32_t i) -> const plan::Unit& {
      return unit(is_forward ? pass.units.first + i : pass.units.first + pass.units.count - 1 - i);
    };
    std::vector<ActionId> after = pass.after;
    for (std::int32_t i = 0; i < pass.units.count;) {
      const plan::Unit& first = nth(i);
      std::int32_t n = 1;
      while (i + n < pass.units.count && nth(i + n).block == first.block) ++n;
      Call call = at(pass);
      call.repeat = n;
      call.first_layer = first.layer;
      if (n > 1) call.layer_step = step;
      write_call(id,
                 Subject{.kind = ActionKind::kPass,
                         .direction = pass.direction,
                         .of = first.block,
                         .takes = pass.takes,
                         .gives_back = pass.gives_back},
                 std::move(call), std::exchange(after, {}));
      i += n;
    }
  }

  BlockId add(Block wanted) {
    const auto it = std::ranges::find(program_.blocks, wanted.name, &Block::name);
    if (it != program_.blocks.end()) {
      FORESHARD_CHECK(*it == wanted);
      return BlockId{it - program_.blocks.begin()};
    }
    program_.blocks.push_back(std::move(wanted));
    return BlockId{static_cast<std::int64_t>(program_.blocks.size()) - 1};
  }

  // --- blocks --------------------------------------------------------------------------------
  Block block_for(const Action& action, const Subject& subject) const {
    switch (action.kind) {
      case ActionKind::kPass:
        return pass(action, subject.of);
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
      case ActionKind::kSync:
        break;
    }
    return sync(action.what < 0 ? "pass.sync" : "pipeline.sync");
  }

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

  // Forward or backward tasks with what they keep in memory around them.
  Block pass(const Action& action, std::int32_t of) const {
    const bool is_forward = action.direction == Direction::kForward;
    const LoweredBlock& from = lowered(of);
    const std::string& kind = block_name(of);
    Block block = is_forward ? from.forward : from.backward;
    const Bytes transient = is_forward ? from.transient_forward : from.transient_backward;
    std::vector<Task> tasks;
    if ((action.takes & plan::kKept) != 0 && from.saved > 0_B)
      tasks.push_back(memory_task(
          "keep", Allocate{kind + ".activations", MemoryKind::kActivations, from.saved}));
    if (transient > 0_B)
      tasks.push_back(
          memory_task("work", Allocate{block.name + ".work", MemoryKind::kBuffers, transient}));
    if ((action.takes & plan::kGradient) != 0) take_gradients(action, of, tasks);
    const auto shift = static_cast<std::int32_t>(tasks.size());
    for (Task& task : block.tasks) {
      for (std::int32_t& index : task.after) index += shift;
      tasks.push_back(std::move(task));
    }
    if (transient > 0_B) tasks.push_back(memory_task("work done", Free{block.name + ".work"}));
    if ((action.gives_back & plan::kWhole) != 0)
      tasks.push_back(memory_task("release", Free{kind + ".parameters"}));
    if ((action.gives_back & plan::kKept) != 0 && from.saved > 0_B)
      tasks.push_back(memory_task("forget", Free{kind + ".activations"}));
    block.tasks = std::move(tasks);
    return block;
  }

  // The buckets of gradients that begin with the pass of a unit of block `of`.
  void take_gradients(const Action& action, std::int32_t of, std::vector<Task>& tasks) const {
    std::vector<std::int32_t> opened;
    for (const Action& other : from_->actions)
      if (other.kind == ActionKind::kReduce && action.units.contains(bucket(other).opened_by))
        opened.push_back(other.what);
    // In the order of the model: of a tied table, the embedding's before the head's.
    std::ranges::sort(opened, {}, [&](std::int32_t i) {
      return plan_.buckets[static_cast<std::size_t>(i)].units.front();
    });
    opened.erase(std::unique(opened.begin(), opened.end()), opened.end());
    FORESHARD_CHECK(!opened.empty() && unit(action.units.first).block == of);
    for (const std::int32_t index : opened) {
      const plan::Bucket& one = plan_.buckets[static_cast<std::size_t>(index)];
      const Bytes whole = size_of(gradient_dtype()) * static_cast<double>(one.elements);
      tasks.push_back(memory_task(
          "gradients", Allocate{block_name(unit(one.units.front().first).block) + ".gradients",
                                MemoryKind::kGradients, whole}));
    }
  }

  // --- data parallelism ------------------------------------------------------------------------
  // Gradients of `count` elements: partial over the data axis; then whole, or in shards.
  Block reduction(const Action& action, std::int32_t of) const {
    const std::int64_t count = bucket(action).elements;
    const bool alone = of_one_unit(action);
    Block block{.name =
                    alone ? block_name(of) + ".reduce" : fmt::format("gradients.reduce.{}", count)};
    Attribute from = replicated(1);
    from.partial = sums_over({data_});
    Attribute to = replicated(1);
    if (states_.cuts_optimizer) to.dims[0] = {data_};
    append_reshard(block, "gradients", {count}, gradient_dtype(), from, to, mesh_,
                   stream(kDataStream), {});
    if ((action.gives_back & plan::kGradient) != 0)
      block.tasks.push_back(memory_task("release", Free{block_name(of) + ".gradients"}));
    return block;
  }

  Block gather(const Action& action, std::int32_t of) const {
    const std::int64_t count = bucket(action).elements;
    if (!of_one_unit(action)) return gathering(fmt::format("parameters.gather.{}", count), count);
    const std::string name = block_name(of) + ".gather";
    if ((action.takes & plan::kWhole) == 0) return gathering(name, count);
    Block gather =
        framework_.shards.gather_each ? gathering_each(action, of) : gathering(name, count);
    const Bytes whole = size_of(strategy_.precision) * static_cast<double>(count);
    std::vector<Task> first{memory_task(
        "keep", Allocate{block_name(of) + ".parameters", MemoryKind::kParameters, whole})};
    // A kernel on the stream of the gather that follows.
    if (element_bytes(strategy_).parameter != size_of(strategy_.precision))
      first.push_back(Task{.name = "cast",
                           .body = Kernel{Pass{.kind = PassKind::kCast,
                                               .rows = states_.shard_of(count),
                                               .dtype = strategy_.precision}},
                           .stream = stream(kDataStream)});
    for (Task& task : gather.tasks) {
      for (std::int32_t& index : task.after) index += static_cast<std::int32_t>(first.size());
    }
    gather.tasks.insert(gather.tasks.begin(), first.begin(), first.end());
    return gather;
  }

  // Parameters of `count` elements: from shards to whole.
  Block gathering(const std::string& name, std::int64_t count) const {
    Block block{.name = name};
    Attribute from = replicated(1);
    from.dims[0] = {data_};
    append_reshard(block, "parameters", {count}, strategy_.precision, from, replicated(1), mesh_,
                   stream(kDataStream), {});
    return block;
  }

  // Each parameter by itself, the host waiting for it. A pass that computes activations again
  // gathers for that, and again for the gradients.
  Block gathering_each(const Action& action, std::int32_t of) const {
    const bool twice = action.direction == Direction::kBackward &&
                       strategy_.recompute == Recompute::kFull && of == kLayer;
    Block gather{.name = block_name(of) + (twice ? ".gather_twice" : ".gather_each")};
    for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
      for (const std::int64_t count : lowered(of).parameter_sizes) {
        if (count <= *framework_.shards.gather_each) continue;
        Block one = gathering(gather.name, count);
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

  Communication transfer(CollectiveKind kind, const Action& action) const {
    double count = 1;
    for (const auto extent : local_shape(blocks_.boundary_shape, blocks_.boundary_sent, mesh_))
      count *= static_cast<double>(extent);
    return {.kind = kind,
            .group = program::AxisPeer{.axis = pipeline_, .coordinate = peer(action)},
            .bytes = size_of(strategy_.precision) * count,
            .dtype = strategy_.precision,
            .purpose = Purpose::kPipeline,
            .tag = std::string(word(action.direction))};
  }

  Block receive(const Action& action, bool syncs) const {
    const bool is_forward = action.direction == Direction::kForward;
    Block receive =
        communication(fmt::format("receive_{}.from{}", word(action.direction), peer(action)),
                      transfer(CollectiveKind::kReceive, action),
                      is_forward ? kReceiveForwardStream : kReceiveBackwardStream);
    append_reshard(receive, "boundary", blocks_.boundary_shape, strategy_.precision,
                   blocks_.boundary_sent, blocks_.boundary, mesh_, stream(kTensorStream), {0});
    if (syncs) receive.tasks.push_back(Task{.name = "sync", .body = program::Sync{}, .after = {0}});
    return receive;
  }

  Block send(const Action& action) const {
    return communication(
        fmt::format("send_{}.to{}", word(action.direction), peer(action)),
        transfer(CollectiveKind::kSend, action),
        action.direction == Direction::kForward ? kSendForwardStream : kSendBackwardStream);
  }

  // --- end of the step -------------------------------------------------------------------------
  Block copies(const plan::Copies& copies) const {
    if (copies.roles.size() > 1) return tied(copies);
    Block block{.name = fmt::format("replicated_gradients.reduce.{}", copies.elements)};
    Attribute from = replicated(1);
    from.partial = sums_over(copies.axes);
    append_reshard(block, "replicated_gradients", {copies.elements}, gradient_dtype(), from,
                   replicated(1), mesh_, stream(kTensorStream), {});
    return block;
  }

  // Stages that hold a copy each of a parameter add up their gradients.
  Block tied(const plan::Copies& copies) const {
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
    const std::int64_t all = from_->elements;
    const std::int64_t count = states_.cuts_optimizer ? states_.shard_of(all) : all;
    // Data-parallel ranks hold equal gradients unless each has a shard of the optimizer's states.
    std::vector<Axis> spread;
    for (Axis axis = 0; axis < static_cast<Axis>(mesh_.size()); ++axis) {
      if (axis != data_ || states_.cuts_optimizer) spread.push_back(axis);
    }
    return optimizer_block(fmt::format("optimizer.{}", count), strategy_, mesh_, spread, count);
  }

  Program& program_;
  const StepPlan& plan_;
  const Strategy& strategy_;
  const Framework& framework_;
  const StateSharding& states_;
  const std::vector<MeshAxis>& mesh_;
  const LoweredModel& blocks_;
  std::array<const LoweredBlock*, 3> lowered_;  // by block of the plan
  Axis pipeline_;
  Axis data_;
  std::map<Subject, BlockId> block_of_;
  const plan::Role* from_ = nullptr;
  Role* to_ = nullptr;
  std::vector<std::int32_t> call_of_;  // by action: its last call
};

plan::Block planned(std::string name, const LoweredBlock& block) {
  return {.name = std::move(name), .groups = block.parameters};
}

}  // namespace

plan::Parts parts_of(const Model& model, const Strategy& strategy, const LoweredModel& blocks) {
  plan::Parts parts{
      .name = fmt::format("{}, tensor {} x pipeline {} x data {}{}", model.name,
                          strategy.tensor_parallel, strategy.pipeline_parallel,
                          strategy.data_parallel, strategy.mode == Mode::kTrain ? "" : ", forward"),
      .mesh = blocks.mesh,
      .blocks = {planned("embedding", blocks.embedding), planned("layer", blocks.layer),
                 planned("head", blocks.head)},
      .boundary = "layer_out"};
  parts.units.push_back({.name = "embedding", .block = kEmbedding});
  for (std::int32_t layer = 0; layer < model.layers; ++layer)
    parts.units.push_back(
        {.name = fmt::format("layer {}", layer), .block = kLayer, .layer = layer});
  parts.units.push_back({.name = "head", .block = kHead});
  std::int32_t next = 1;
  for (const std::int64_t layers : layers_of_stages(strategy, model)) {
    parts.pieces.push_back({next, static_cast<std::int32_t>(layers)});
    next += static_cast<std::int32_t>(layers);
  }
  parts.pieces.front() = {0, parts.pieces.front().count + 1};
  ++parts.pieces.back().count;
  if (model.tied_embeddings)
    parts.tie = plan::Tie{.first_unit = 0,
                          .last_unit = static_cast<std::int32_t>(parts.units.size()) - 1,
                          .elements = blocks.head.largest_parameter};
  return parts;
}

void append_roles(Program& program, const StepPlan& plan, const Model& model,
                  const Strategy& strategy, const LoweredModel& blocks) {
  Writer writer(program, plan, strategy, blocks);
  for (std::size_t stage = 0; stage < plan.roles.size(); ++stage) {
    Role& role = program.roles.emplace_back();
    role.name = plan.roles[stage].name;
    role.memory = resident_memory(strategy, model, blocks, static_cast<std::int64_t>(stage));
    writer.write(plan.roles[stage], role);
  }
}

}  // namespace foreshard::lower
