#include "strategies/program/lower/calls.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/lower/action_blocks.h"
#include "strategies/program/lower/era.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::Run;
using plan::StepPlan;
using program::Block;
using program::BlockId;
using program::Call;
using program::Program;
using program::Role;

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
  std::size_t take(const Place& place) const {
    const auto known = taken_.find(place);
    FORESHARD_CHECK(known != taken_.end());
    return known->second;
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
        blocks_(blocks),
        trains_(strategy.mode == Mode::kTrain),
        branches_(blocks.seed) {}

  void write(const plan::Role& from, Role& to) {
    from_ = &from;
    to_ = &to;
    call_of_.assign(from.actions.size(), -1);
    awaited_.clear();
    last_call_.clear();
    for (std::size_t id = 0; id < from.actions.size(); ++id) {
      const Action& action = from.actions[id];
      if (action.kind == ActionKind::kPass) {
        write_pass(id);
      } else if (is_sync_of_receive(id)) {
        call_of_[id] = call_of_[id - 1];
      } else if (action.kind != ActionKind::kOptimizer || holds_parameters()) {
        const bool syncs = id + 1 < from.actions.size() && is_sync_of_receive(id + 1);
        Call one = between_units(action) ? Call{} : at(action);
        if (of_one_unit(plan_.states, action))
          one.first_layer = unit(bucket(action).units.front().first).layer;
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

  bool holds_parameters() const {
    return std::ranges::any_of(plan_.roles,
                               [](const plan::Role& role) { return role.elements > 0; });
  }

  // Whether the action belongs to the step rather than to a micro-batch.
  bool between_units(const Action& action) const {
    const bool moves = action.kind == ActionKind::kGather || action.kind == ActionKind::kReduce;
    return (moves && !of_one_unit(plan_.states, action)) ||
           action.kind == ActionKind::kReduceCopies || action.kind == ActionKind::kOptimizer ||
           action.kind == ActionKind::kSync;
  }
  std::int32_t subject_of(const Action& action) const {
    if (action.kind == ActionKind::kOptimizer)
      return static_cast<std::int32_t>(from_ - plan_.roles.data());
    return of_one_unit(plan_.states, action) ? unit(bucket(action).units.front().first).block
                                             : action.what;
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
    if (is_new)
      found->second =
          add(block_for(plan_, strategy_, blocks_, *from_, from_->actions[id], subject));
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

  // One call for each run of units of one block or, where a unit has several, one for each of them.
  void write_pass(std::size_t id) {
    const Action& pass = from_->actions[id];
    const bool is_forward = pass.direction == Direction::kForward;
    const auto nth = [&](std::int32_t i) {
      return is_forward ? pass.units.first + i : pass.units.first + pass.units.count - 1 - i;
    };
    awaited_.insert(awaited_.end(), pass.after.begin(), pass.after.end());
    const std::pair slot{pass.chunk, pass.micro_batch};
    const auto before = last_call_.extract(slot);
    before_ = before.empty() ? -1 : before.mapped();
    for (std::int32_t i = 0; i < pass.units.count;) {
      const std::int32_t first = nth(i);
      const LoweredBlock& block = *blocks_.blocks[static_cast<std::size_t>(unit(first).block)];
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
    // A pass that took branches without tasks has no call: who waits for it waits for all before.
    if (call_of_[id] < 0) call_of_[id] = static_cast<std::int32_t>(to_->calls.size()) - 1;
    const Run& chunk = from_->chunks[static_cast<std::size_t>(pass.chunk)].units;
    const bool is_last = is_forward != trains_ &&
                         pass.units.contains(trains_ ? chunk.first : chunk.first + chunk.count - 1);
    if (!is_last) last_call_[slot] = before_;
  }

  // `path`: the loops and conditions around the pieces, by their names in the forward pass;
  // `layer`: the iteration of these loops.
  void write_pieces(std::size_t id, std::int32_t of_unit, const Pieces& pieces, std::int64_t layer,
                    const std::string& path) {
    const Piece* first = first_block(pieces);
    const Piece* last = last_block(pieces);
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::kBlock) {
        Call call = at(from_->actions[id]);
        call.first_layer = static_cast<std::int32_t>(layer);
        write_piece(id, piece, unit(of_unit).block, std::move(call),
                    path.empty() && &piece == first, path.empty() && &piece == last);
        continue;
      }
      const std::string inner = path + '/' + piece.key;
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
    // Iterations of one call do not wait for each other's conversions.
    const bool repeats = is_one_block(body) && open_conversion(body.front().block) < 0;
    if (repeats && piece.count > 0) {
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
    return branches_.draw(place, piece.probability, trains_);
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

  Program& program_;
  const StepPlan& plan_;
  const Strategy& strategy_;
  const PlannedBlocks& blocks_;
  bool trains_;
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
