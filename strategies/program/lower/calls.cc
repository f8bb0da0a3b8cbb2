#include "strategies/program/lower/calls.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/index.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/lower/exchanges.h"
#include "strategies/program/lower/legacy_behavior.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::StepPlan;
using plan::Target;
using plan::UnitRange;
using program::Block;
using program::BlockId;
using program::Call;
using program::Program;
using program::Role;

// One call of a pass.
struct PassCall {
  std::int32_t of = 0;                    // Block of the plan.
  const program::Block* tasks = nullptr;  // Tasks: a piece of the pass through that block.
  bool begins = true;                     // The pass through a unit begins with it.
  bool ends = true;                       // The pass through a unit ends with it.
  std::int32_t repeat = 1;                // program::Call::repeat.
  std::int32_t first_layer = 0;           // program::Call::first_layer.
  std::int32_t layer_step = 1;            // program::Call::layer_step.
  std::int32_t part = 0;                  // Index of the part, if the block is cut.
  std::vector<EarlierTask> after{};       // BlockPart::after.
};

// The branches that conditions take: drawn in the forward pass, taken again in the backward pass.
class BranchDraws {
 public:
  // (micro-batch, unit, path of the condition in loops and conditions, iteration of these loops).
  using ConditionKey = std::tuple<std::int32_t, std::int32_t, std::string, std::int64_t>;

  explicit BranchDraws(std::uint64_t seed) : random_(seed) {}

  // Draws a branch: 0 with `probability`, else 1. `is_taken_again`: a backward pass will take it.
  std::size_t draw(ConditionKey place, double probability, bool is_taken_again);
  // The branch that the forward pass drew, for its backward pass.
  std::size_t take(const ConditionKey& place) const;

 private:
  std::mt19937_64 random_;
  std::map<ConditionKey, std::size_t> taken_;
};

std::size_t BranchDraws::draw(ConditionKey place, double probability, bool is_taken_again) {
  const double draw = static_cast<double>(random_() >> 11U) * 0x1.0p-53;
  const std::size_t taken = draw < probability ? 0 : 1;
  if (is_taken_again) taken_.insert_or_assign(std::move(place), taken);
  return taken;
}

std::size_t BranchDraws::take(const ConditionKey& place) const {
  const auto known = taken_.find(place);
  FORESHARD_CHECK(known != taken_.end());
  return known->second;
}

// Lists the calls of one pass.
class PassCallBuilder {
 public:
  PassCallBuilder(const plan::Action& pass, const plan::PlannedModel& parts,
                  const PlannedBlocks& blocks, bool trains, BranchDraws& branches)
      : pass_(pass),
        is_forward_(pass.direction == Direction::kForward),
        parts_(parts),
        blocks_(blocks),
        trains_(trains),
        branches_(branches) {}

  std::vector<PassCall> run() && {
    const plan::UnitRange& units = pass_.units;
    const auto nth = [&](std::int32_t i) {
      return is_forward_ ? units.first + i : units.first + units.count - 1 - i;
    };
    for (std::int32_t i = 0; i < units.count;) {
      unit_ = nth(i);
      const plan::Unit& unit = parts_.units[at(unit_)];
      const Pieces& pieces = pieces_of(*blocks_.blocks[at(unit.block)]);
      std::int32_t alike = 1;
      if (is_one_block(pieces)) {
        // Iterations of one call do not wait for each other's conversions.
        const bool has_open_conversion = open_conversion(pieces.front().block) >= 0;
        while (!has_open_conversion && i + alike < units.count &&
               parts_.units[at(nth(i + alike))].block == unit.block)
          ++alike;
        calls_.push_back({.of = unit.block,
                          .tasks = &pieces.front().block,
                          .repeat = alike,
                          .first_layer = unit.layer,
                          .layer_step = alike > 1 ? step() : 1});
      } else {
        add(pieces, unit.layer, {});
      }
      i += alike;
    }
    return std::move(calls_);
  }

 private:
  std::int32_t step() const { return is_forward_ ? 1 : -1; }

  const Pieces& pieces_of(const LoweredBlock& block) const {
    if (is_forward_) return block.forward;
    if (pass_.part != plan::PassPart::kWhole)
      return pass_.part == plan::PassPart::kInput ? block.split->input : block.split->weight;
    return pass_.reduces ? block.reducing : block.backward;
  }

  // Adds the calls of `pieces`. `path`: the loops and conditions around them, by their names in the
  // forward pass; `layer`: the iteration of these loops.
  void add(const Pieces& pieces, std::int64_t layer, const std::string& path) {
    const Piece* first = first_block(pieces);
    const Piece* last = last_block(pieces);
    for (const Piece& piece : pieces) {
      const std::string inner = path + '/' + piece.key;
      switch (piece.kind) {
        case Piece::Kind::kBlock:
          calls_.push_back({.of = parts_.units[at(unit_)].block,
                            .tasks = &piece.block,
                            .begins = path.empty() && &piece == first,
                            .ends = path.empty() && &piece == last,
                            .first_layer = static_cast<std::int32_t>(layer)});
          break;
        case Piece::Kind::kLoop:
          add_loop(piece, layer, inner);
          break;
        case Piece::Kind::kChoice:
          add(piece.bodies[branch(piece, layer, inner)], layer, inner);
          break;
      }
    }
  }

  void add_loop(const Piece& loop, std::int64_t layer, const std::string& path) {
    const Pieces& body = loop.bodies[0];
    const std::int64_t first = layer * loop.count + (is_forward_ ? 0 : loop.count - 1);
    if (loop.count > 0 && is_one_block(body) && open_conversion(body.front().block) < 0) {
      calls_.push_back({.of = parts_.units[at(unit_)].block,
                        .tasks = &body.front().block,
                        .begins = false,
                        .ends = false,
                        .repeat = static_cast<std::int32_t>(loop.count),
                        .first_layer = static_cast<std::int32_t>(first),
                        .layer_step = step()});
      return;
    }
    for (std::int64_t i = 0; i < loop.count; ++i) add(body, first + i * step(), path);
  }

  std::size_t branch(const Piece& choice, std::int64_t layer, const std::string& path) {
    const BranchDraws::ConditionKey place{pass_.micro_batch, unit_, path, layer};
    return is_forward_ ? branches_.draw(place, choice.probability, trains_) : branches_.take(place);
  }

  const plan::Action& pass_;
  bool is_forward_;
  const plan::PlannedModel& parts_;
  const PlannedBlocks& blocks_;
  bool trains_;
  BranchDraws& branches_;
  std::int32_t unit_ = 0;  // the unit whose pieces are listed
  std::vector<PassCall> calls_;
};

// The calls of `pass`, in order. Consecutive units that share a block are one call that repeats
// it, if the pass through it is a single block of the Program.
// \pre forward passes come before backward passes of the same units and micro-batch.
std::vector<PassCall> calls_of(const plan::Action& pass, const plan::PlannedModel& parts,
                               const PlannedBlocks& blocks, bool trains, BranchDraws& branches) {
  return PassCallBuilder(pass, parts, blocks, trains, branches).run();
}

// block -> its parts, for blocks that were cut.
using BlockCuts = std::map<const program::Block*, std::vector<BlockPart>>;

// The same calls, with blocks that exchange tokens cut into parts (cut_at_exchanges), which `cuts`
// receives and holds.
std::vector<PassCall> cut(const std::vector<PassCall>& calls, BlockCuts& cuts) {
  std::vector<PassCall> all;
  for (const PassCall& call : calls) {
    const auto [known, is_new] = cuts.try_emplace(call.tasks);
    if (is_new) known->second = cut_at_exchanges(*call.tasks);
    const std::vector<BlockPart>& parts = known->second;
    if (parts.size() == 1) {
      all.push_back(call);
      continue;
    }
    for (std::int32_t i = 0; i < call.repeat; ++i) {
      for (std::size_t part = 0; part < parts.size(); ++part)
        all.push_back({.of = call.of,
                       .tasks = &parts[part].block,
                       .begins = call.begins && part == 0,
                       .ends = call.ends && part + 1 == parts.size(),
                       .first_layer = call.first_layer + i * call.layer_step,
                       .part = static_cast<std::int32_t>(part),
                       .after = parts[part].after});
    }
  }
  return all;
}

// Writes the calls of all roles.
class Writer {
 public:
  Writer(Program& program, const StepPlan& plan, const Strategy& strategy,
         const PlannedBlocks& blocks)
      : program_(program),
        plan_(plan),
        strategy_(strategy),
        blocks_(blocks),
        trains_(strategy.mode == Mode::kTrain),
        branches_(blocks.seed) {}

  void write(const plan::Role& from, Role& to) {
    from_ = &from;
    to_ = &to;
    call_of_.assign(from.actions.size(), -1);
    awaited_.clear();
    last_call_.clear();
    const auto end_of = [&](std::size_t slot) {
      return slot + 1 < from.slots.size() ? from.slots[slot + 1].first : from.end;
    };
    write_all(0, from.slots.empty() ? from.end : from.slots.front().first);
    for (std::size_t slot = 0; slot < from.slots.size(); ++slot) {
      const ActionId first = from.slots[slot].first;
      if (slot + 1 < from.slots.size() && from.slots[slot + 1].beside) {
        const ActionId middle = end_of(slot);
        write_both(first, middle, end_of(++slot));
      } else {
        write_all(first, end_of(slot));
      }
    }
    write_all(from.end, static_cast<ActionId>(from.actions.size()));
  }

 private:
  // --- the plan ------------------------------------------------------------------------------
  const plan::Unit& unit(std::int32_t index) const {
    return plan_.parts.units[static_cast<std::size_t>(index)];
  }
  const plan::Bucket& bucket(const Action& action) const {
    return plan_.buckets[static_cast<std::size_t>(action.what)];
  }

  bool holds_parameters() const {
    return std::ranges::any_of(plan_.roles,
                               [](const plan::Role& role) { return !role.parameters.empty(); });
  }

  // Whether the action belongs to the step rather than to a micro-batch.
  bool between_units(const Action& action) const {
    const Target target = target_of(action.kind);
    return (target == Target::kBucket && !of_one_unit(plan_.states, action)) ||
           target == Target::kCopies || target == Target::kRole || target == Target::kNone;
  }
  std::int32_t subject_of(const Action& action) const {
    const Target target = target_of(action.kind);
    if (target == Target::kRole) return static_cast<std::int32_t>(from_ - plan_.roles.data());
    if (target == Target::kUnits) return unit(action.units.first).block;
    return of_one_unit(plan_.states, action) ? unit(bucket(action).units.front().first).block
                                             : action.what;
  }
  // Whether the action is a sync that waits only for the receive right before it. Such a sync is a
  // task of the receive's block.
  bool is_sync_of_receive(std::size_t id) const {
    const Action& action = from_->actions[id];
    return action.kind == ActionKind::kSync && id > 0 &&
           from_->actions[id - 1].kind == ActionKind::kReceive &&
           action.after == std::vector<ActionId>{static_cast<ActionId>(id) - 1};
  }

  // --- actions -------------------------------------------------------------------------------
  // Writes the actions [begin, end), one after another.
  void write_all(ActionId begin, ActionId end) {
    for (RemainingActions turns{.next = begin, .end = end}; turns.next < turns.end;)
      take_turn(turns, false);
  }

  // Writes the actions of two slots that run side by side, in turns: each until it waits for
  // tokens. The second slot's receives are issued ahead of both slots, unless they wait for the
  // first slot: otherwise a host that waits for the first slot's tokens would hold up the stage
  // that sends to the second slot.
  void write_both(ActionId begin, ActionId middle, ActionId end) {
    RemainingActions one{.next = begin, .end = middle};
    RemainingActions other{.next = middle, .end = end};
    const auto receives = [&](ActionId id) {
      const Action& action = from_->actions[static_cast<std::size_t>(id)];
      return (action.kind == ActionKind::kReceive &&
              std::ranges::all_of(action.after, [&](ActionId it) { return it < begin; })) ||
             is_sync_of_receive(static_cast<std::size_t>(id));
    };
    for (; other.next < other.end && receives(other.next); ++other.next)
      write_other(static_cast<std::size_t>(other.next));
    while (one.next < one.end || other.next < other.end) {
      take_turn(one, true);
      take_turn(other, true);
    }
  }

  // A part of a cut block that has been written.
  struct WrittenPart {
    std::int32_t call = 0;
    std::int32_t first_task = 0;  // index of the part's first task in the block of the call
  };
  // A pass that still has calls to write.
  struct OpenPass {
    std::vector<PassCall> calls{};
    std::size_t next = 0;
    std::int32_t before = -1;          // the call before the next one
    std::vector<WrittenPart> parts{};  // written parts of the current block
  };
  // The actions of a slot that are still to be written.
  struct RemainingActions {
    ActionId next = 0;
    ActionId end = 0;
    std::optional<OpenPass> pass{};  // pass of the action `next`, once it has begun
  };

  void take_turn(RemainingActions& turns, bool cuts) {
    for (; turns.next < turns.end; ++turns.next) {
      const auto id = static_cast<std::size_t>(turns.next);
      if (from_->actions[id].kind != ActionKind::kPass) {
        write_other(id);
        continue;
      }
      if (!turns.pass) turns.pass = begin_pass(id, cuts);
      OpenPass& pass = *turns.pass;
      while (pass.next < pass.calls.size()) {
        write_call_of(id, pass);
        if (pass.next < pass.calls.size() && pass.calls[pass.next].part > 0) return;
      }
      end_pass(id, pass);
      turns.pass.reset();
    }
  }

  void write_other(std::size_t id) {
    const Action& action = from_->actions[id];
    if (is_sync_of_receive(id)) {
      call_of_[id] = call_of_[id - 1];
      return;
    }
    if (action.kind == ActionKind::kOptimizer && !holds_parameters()) return;
    const bool syncs = id + 1 < from_->actions.size() && is_sync_of_receive(id + 1);
    Call one = between_units(action) ? Call{} : at(action);
    if (of_one_unit(plan_.states, action))
      one.first_layer = unit(bucket(action).units.front().first).layer;
    if (target_of(action.kind) == Target::kUnits) one.first_layer = unit(action.units.first).layer;
    write_call(id,
               BlockKey{.kind = action.kind,
                        .direction = action.direction,
                        .part = action.part,
                        .of = subject_of(action),
                        .takes = action.takes,
                        .gives_back = action.gives_back,
                        .syncs = syncs,
                        .over = target_of(action.kind) == Target::kBucket ? bucket(action).over
                                                                          : std::vector<Axis>{}},
               std::move(one), action.after);
  }

  // --- calls ---------------------------------------------------------------------------------
  static Call at(const Action& action) {
    return Call{.chunk = action.chunk, .micro_batch = action.micro_batch};
  }

  void write_call(std::size_t id, const BlockKey& key, Call call,
                  const std::vector<ActionId>& after) {
    const auto [found, is_new] = block_of_.emplace(key, BlockId{});
    if (is_new)
      found->second = add(block_for(plan_, strategy_, blocks_, *from_, from_->actions[id], key));
    call.block = found->second;
    for (const ActionId earlier : after) {
      const std::int32_t awaited = call_of_[static_cast<std::size_t>(earlier)];
      if (awaited >= 0) call.after.push_back({.call = awaited});
    }
    std::ranges::sort(call.after);
    call.after.erase(std::unique(call.after.begin(), call.after.end()), call.after.end());
    to_->calls.push_back(std::move(call));
    call_of_[id] = static_cast<std::int32_t>(to_->calls.size()) - 1;
  }

  OpenPass begin_pass(std::size_t id, bool cuts) {
    const Action& pass = from_->actions[id];
    awaited_.insert(awaited_.end(), pass.after.begin(), pass.after.end());
    const auto earlier = last_call_.extract({pass.chunk, pass.micro_batch});
    OpenPass open{.calls = calls_of(pass, plan_.parts, blocks_, trains_, branches_),
                  .before = earlier.empty() ? -1 : earlier.mapped()};
    if (cuts) open.calls = cut(open.calls, cuts_);
    return open;
  }

  void write_call_of(std::size_t id, OpenPass& open) {
    const Action& pass = from_->actions[id];
    const PassCall& next = open.calls[open.next++];
    Call call = at(pass);
    call.repeat = next.repeat;
    call.first_layer = next.first_layer;
    call.layer_step = next.layer_step;
    wait_for_conversion(open.before, call);
    if (next.part == 0) open.parts.clear();
    for (const EarlierTask& earlier : next.after) {
      const WrittenPart& part = open.parts[static_cast<std::size_t>(earlier.part)];
      call.after.push_back({.call = part.call, .task = part.first_task + earlier.task});
    }
    write_call(id,
               BlockKey{.kind = ActionKind::kPass,
                        .direction = pass.direction,
                        .part = pass.part,
                        .of = next.of,
                        .takes = pass.takes,
                        .gives_back = pass.gives_back,
                        .tasks = next.tasks,
                        .begins = next.begins,
                        .ends = next.ends},
               std::move(call), std::exchange(awaited_, {}));
    open.before = call_of_[id];
    // Allocations may stand before the part's own tasks. Only the last part has tasks (frees) after
    // them.
    const Block& written = program_.blocks[to_->calls.back().block.index()];
    open.parts.push_back(
        {.call = open.before,
         .first_task = static_cast<std::int32_t>(written.tasks.size() - next.tasks->tasks.size())});
  }

  void end_pass(std::size_t id, const OpenPass& open) {
    const Action& pass = from_->actions[id];
    // A pass that took branches without tasks has no call; what waits for it waits for the last
    // call.
    if (call_of_[id] < 0) call_of_[id] = static_cast<std::int32_t>(to_->calls.size()) - 1;
    const bool is_forward = pass.direction == Direction::kForward;
    const UnitRange& chunk = from_->chunks[static_cast<std::size_t>(pass.chunk)].units;
    const bool is_last = is_forward != trains_ &&
                         pass.units.contains(trains_ ? chunk.first : chunk.first + chunk.count - 1);
    if (!is_last) last_call_[{pass.chunk, pass.micro_batch}] = open.before;
  }

  // Makes the call wait for the conversion that ends the call before it: no lane orders the two.
  void wait_for_conversion(std::int32_t before, Call& call) const {
    if (before < 0) return;
    const Call& earlier = to_->calls[static_cast<std::size_t>(before)];
    const std::int32_t conversion = open_conversion(program_.blocks[earlier.block.index()]);
    if (conversion >= 0) call.after.push_back({.call = before, .task = conversion});
  }

  // An equal block of that name, or a new one. Passes of one unit may differ in what they free (the
  // last unit stays whole where its backward pass follows); their further blocks get a number.
  BlockId add(Block wanted) {
    const std::string name = wanted.name;
    for (int variant = 2;; ++variant) {
      const auto it = std::ranges::find(program_.blocks, wanted.name, &Block::name);
      if (it == program_.blocks.end()) break;
      if (*it == wanted) return BlockId{it - program_.blocks.begin()};
      wanted.name = fmt::format("{}.{}", name, variant);
    }
    program_.blocks.push_back(std::move(wanted));
    return BlockId{static_cast<std::int64_t>(program_.blocks.size()) - 1};
  }

  Program& program_;
  const StepPlan& plan_;
  const Strategy& strategy_;
  const PlannedBlocks& blocks_;
  bool trains_;
  BranchDraws branches_;
  std::map<BlockKey, BlockId> block_of_;
  const plan::Role* from_ = nullptr;
  Role* to_ = nullptr;
  std::vector<std::int32_t> call_of_;  // action -> its last call
  std::vector<ActionId> awaited_;      // actions that the next call of a pass waits for
  // (chunk, micro-batch) -> the last call of its passes, until all of them are written.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> last_call_;
  BlockCuts cuts_;
};

}  // namespace

Program program_of(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
                   Seconds launch_time) {
  Program program{.name = plan.parts.name, .mesh = plan.parts.mesh, .streams = streams()};
  if (!strategy.offloads())
    program.streams.resize(std::ranges::any_of(plan.crossings, &plan::Crossing::returns)
                               ? kStreamsWithoutHost
                               : kStreamsWithoutV);
  program.launch_time = launch_time + strategy.host_time();
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
  if (strategy.framework->blocking_launches) make_launches_blocking(program);
  return program;
}

}  // namespace foreshard::lower
