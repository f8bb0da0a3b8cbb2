#include "strategies/program/lower/calls.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/lower/era.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::Run;
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
  std::vector<Axis> over{};      // of gradients
  const Block* tasks = nullptr;  // of a pass
  bool begins = true;            // the pass through a unit begins with it
  bool ends = true;
  auto operator<=>(const Subject&) const = default;
};

// The branches that conditions take: drawn in the forward pass, taken again in the backward pass.
class Branches {
 public:
  // Micro-batch, unit, the loops and conditions around, the iteration of these loops.
  using Place = std::tuple<std::int32_t, std::int32_t, std::string, std::int64_t>;

  explicit Branches(std::uint64_t seed) : random_(seed) {}

  std::size_t draw(Place place, double probability, bool is_taken_again) {
    const double draw = static_cast<double>(random_() >> 11U) * 0x1.0p-53;
    const std::size_t taken = draw < probability ? 0 : 1;
    if (is_taken_again) taken_.insert_or_assign(std::move(place), taken);
    return taken;
  }
  std::size_t take(const Place& place) {
    const auto known = taken_.extract(place);
    FORESHARD_CHECK(!known.empty());
    return known.mapped();
  }

 private:
  std::mt19937_64 random_;
  std::map<Place, std::size_t> taken_;
};

// Writes the calls of all roles.
class Writer {
 public:
  Writer(Program& program, const StepPlan& plan, const Strategy& strategy,
         const PlannedBlocks& blocks)
      : program_(program),
        plan_(plan),
        strategy_(strategy),
        framework_(*strategy.framework),
        states_(plan.states),
        mesh_(plan.parts.mesh),
        blocks_(blocks),
        pipeline_(axis_of(mesh_, "pipeline")),
        data_(axis_of(mesh_, "data")),
        branches_(blocks.seed) {}

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
      } else if (action.kind != ActionKind::kOptimizer || holds_parameters()) {
        const bool syncs = id + 1 < from.actions.size() && is_sync_of_receive(id + 1);
        Call one = between_units(action) ? Call{} : at(action);
        if (of_one_unit(action)) one.first_layer = unit(bucket(action).units.front().first).layer;
        write_call(id,
                   Subject{.kind = action.kind,
                           .direction = action.direction,
                           .of = subject_of(action),
                           .takes = action.takes,
                           .gives_back = action.gives_back,
                           .syncs = syncs,
                           .over = action.kind == ActionKind::kReduce ? bucket(action).over
                                                                      : std::vector<Axis>{}},
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
    return *blocks_.blocks[static_cast<std::size_t>(block)];
  }
  DType gradient_dtype() const { return framework_.gradients_of(strategy_.precision); }

  bool holds_parameters() const {
    return std::ranges::any_of(plan_.roles,
                               [](const plan::Role& role) { return role.elements > 0; });
  }

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

  // One call for each run of units of one block or, where a unit has several, one for each of them.
  void write_pass(std::size_t id) {
    const Action& pass = from_->actions[id];
    const bool is_forward = pass.direction == Direction::kForward;
    const auto nth = [&](std::int32_t i) {
      return is_forward ? pass.units.first + i : pass.units.first + pass.units.count - 1 - i;
    };
    awaited_ = pass.after;
    const std::pair slot{pass.chunk, pass.micro_batch};
    const auto before = last_call_.extract(slot);
    before_ = before.empty() ? -1 : before.mapped();
    for (std::int32_t i = 0; i < pass.units.count;) {
      const std::int32_t first = nth(i);
      const LoweredBlock& block = lowered(unit(first).block);
      const Pieces& pieces = is_forward     ? block.forward
                             : pass.reduces ? block.reducing
                                            : block.backward;
      std::int32_t n = 1;
      if (is_one_block(pieces)) {
        while (i + n < pass.units.count && unit(nth(i + n)).block == unit(first).block) ++n;
        Call call = at(pass);
        call.repeat = n;
        call.first_layer = unit(first).layer;
        if (n > 1) call.layer_step = is_forward ? 1 : -1;
        write_piece(id, pieces.front(), unit(first).block, std::move(call), true, true);
      } else {
        write_pieces(id, first, pieces, unit(first).layer, {});
      }
      i += n;
    }
    const Run& chunk = from_->chunks[static_cast<std::size_t>(pass.chunk)].units;
    const std::int32_t last = is_forward && strategy_.mode == Mode::kForward
                                  ? chunk.first + chunk.count - 1
                                  : chunk.first;
    if (is_forward == (strategy_.mode == Mode::kForward) && pass.units.contains(last)) return;
    last_call_[slot] = before_;
  }

  // `path`: the loops and conditions around the pieces, by their names in the forward pass;
  // `layer`: the iteration of these loops.
  void write_pieces(std::size_t id, std::int32_t of_unit, const Pieces& pieces, std::int64_t layer,
                    const std::string& path) {
    const bool is_forward = from_->actions[id].direction == Direction::kForward;
    const auto first = std::ranges::find(pieces, Piece::Kind::kBlock, &Piece::kind);
    const auto last = std::find_if(pieces.rbegin(), pieces.rend(), [](const Piece& piece) {
      return piece.kind == Piece::Kind::kBlock;
    });
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::kBlock) {
        Call call = at(from_->actions[id]);
        call.first_layer = static_cast<std::int32_t>(layer);
        write_piece(id, piece, unit(of_unit).block, std::move(call),
                    path.empty() && &piece == &*first, path.empty() && &piece == &*last);
        continue;
      }
      const std::string inner = path + '/' + (is_forward ? piece.key : piece.key.substr(2));
      if (piece.kind == Piece::Kind::kLoop)
        write_loop(id, of_unit, piece, layer, inner);
      else
        write_pieces(id, of_unit, piece.bodies[branch(id, of_unit, piece, layer, inner)], layer,
                     inner);
    }
  }

  void write_loop(std::size_t id, std::int32_t of_unit, const Piece& piece, std::int64_t layer,
                  const std::string& path) {
    const Action& pass = from_->actions[id];
    const Pieces& body = piece.bodies[0];
    const bool is_forward = pass.direction == Direction::kForward;
    const std::int64_t first = layer * piece.count + (is_forward ? 0 : piece.count - 1);
    const std::int32_t step = is_forward ? 1 : -1;
    if (is_one_block(body) && piece.count > 0) {
      Call call = at(pass);
      call.repeat = static_cast<std::int32_t>(piece.count);
      call.first_layer = static_cast<std::int32_t>(first);
      call.layer_step = step;
      write_piece(id, body.front(), unit(of_unit).block, std::move(call), false, false);
      return;
    }
    for (std::int64_t i = 0; i < piece.count; ++i)
      write_pieces(id, of_unit, body, first + i * step, path);
  }

  std::size_t branch(std::size_t id, std::int32_t of_unit, const Piece& piece, std::int64_t layer,
                     const std::string& path) {
    const Action& pass = from_->actions[id];
    const Branches::Place place{pass.micro_batch, of_unit, path, layer};
    if (pass.direction == Direction::kBackward) return branches_.take(place);
    return branches_.draw(place, piece.probability, strategy_.mode == Mode::kTrain);
  }

  // Waits for the conversion with which the call before it ends: no lane orders the two.
  void write_piece(std::size_t id, const Piece& piece, std::int32_t of, Call call, bool begins,
                   bool ends) {
    const Action& pass = from_->actions[id];
    if (blocks_.waits_for_conversions && before_ >= 0) {
      const Call& before = to_->calls[static_cast<std::size_t>(before_)];
      const std::int32_t conversion = open_conversion(program_.blocks[before.block.index()]);
      if (conversion >= 0) call.after.push_back({.call = before_, .task = conversion});
    }
    write_call(id,
               Subject{.kind = ActionKind::kPass,
                       .direction = pass.direction,
                       .of = of,
                       .takes = pass.takes,
                       .gives_back = pass.gives_back,
                       .tasks = &piece.block,
                       .begins = begins,
                       .ends = ends},
               std::move(call), std::exchange(awaited_, {}));
    before_ = call_of_[id];
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
  Block pass(const Action& action, const Subject& subject) const {
    const bool is_forward = action.direction == Direction::kForward;
    const LoweredBlock& from = lowered(subject.of);
    const std::string& kind = block_name(subject.of);
    const std::string work = fmt::format("{}.{}.work", kind, word(action.direction));
    const Bytes transient = is_forward ? from.transient_forward : from.transient_backward;
    Block block = *subject.tasks;
    if (subject.begins) {
      std::vector<Task> tasks;
      if ((action.takes & plan::kKept) != 0 && from.saved > 0_B)
        tasks.push_back(memory_task(
            "keep", Allocate{kind + ".activations", MemoryKind::kActivations, from.saved}));
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
      if ((action.gives_back & plan::kWhole) != 0) free("release", kind + ".parameters");
      if ((action.gives_back & plan::kKept) != 0 && from.saved > 0_B)
        free("forget", kind + ".activations");
    }
    return block;
  }

  // Whether tasks of the block outlast its use of activations.
  static bool reduces_inside(const Block& block) {
    return std::ranges::find(block.tasks, stream(kDataStream), &Task::stream) != block.tasks.end();
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
  Block reduction(const Action& action, std::int32_t of) const {
    const plan::Bucket& summed = bucket(action);
    const bool alone = of_one_unit(action);
    Block block{.name = alone ? block_name(of) + ".reduce"
                              : fmt::format("gradients.reduce.{}", summed.elements)};
    if (summed.over != std::vector{data_})
      for (const Axis axis : summed.over)
        block.name += "." + mesh_[static_cast<std::size_t>(axis)].name;
    append_reduction(block, "gradients", summed.elements, summed.over, mesh_, strategy_, {});
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
    put_before(gather, std::move(first));
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
    const bool twice =
        action.direction == Direction::kBackward && lowered(of).recompute == Recompute::kFull;
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
    const std::int64_t copied = from_->copied_elements;
    const std::int64_t count =
        from_->elements - copied + (states_.cuts_optimizer ? states_.shard_of(copied) : copied);
    // Data-parallel ranks hold equal gradients unless each has a shard of the optimizer's states.
    std::vector<Axis> spread;
    for (Axis axis = 0; axis < static_cast<Axis>(mesh_.size()); ++axis) {
      if (axis == data_ ? states_.cuts_optimizer : blocks_.split_over.contains(axis))
        spread.push_back(axis);
    }
    return optimizer_block(fmt::format("optimizer.{}", count), strategy_, mesh_, spread, count);
  }

  Program& program_;
  const StepPlan& plan_;
  const Strategy& strategy_;
  const Framework& framework_;
  const StateSharding& states_;
  const std::vector<MeshAxis>& mesh_;
  const PlannedBlocks& blocks_;
  Axis pipeline_;
  Axis data_;
  Branches branches_;
  std::map<Subject, BlockId> block_of_;
  const plan::Role* from_ = nullptr;
  Role* to_ = nullptr;
  std::vector<std::int32_t> call_of_;  // by action: its last call
  std::vector<ActionId> awaited_;      // by the next call of the pass
  std::int32_t before_ = -1;           // the call that what it makes comes from
  // By chunk and micro-batch: the last call of its passes, until all of them are written.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> last_call_;
};

}  // namespace

Program program_of(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
                   Seconds launch_time) {
  Program program{.name = plan.parts.name, .mesh = plan.parts.mesh, .streams = streams()};
  program.launch_time = launch_time + strategy.framework->host_time;
  Writer writer(program, plan, strategy, blocks);
  const Axis pipeline = axis_of(program.mesh, "pipeline");
  for (const plan::Role& role : plan.roles) {
    program.roles.push_back({.name = role.name});
    writer.write(role, program.roles.back());
  }
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const auto stage = program::coordinate_of(program, rank, pipeline);
    program.roles[static_cast<std::size_t>(stage)].ranks.push_back(rank);
  }
  if (strategy.framework->blocking_launches) block_launches(program);
  return program;
}

}  // namespace foreshard::lower
