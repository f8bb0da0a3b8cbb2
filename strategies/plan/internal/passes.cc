// The first two planners, rows of planners() (planner.h): plan_places puts the pieces of the model
// on the roles, plan_passes adds the passes in the order of the schedule. Without training there
// are no backward passes.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "strategies/parallelism/pipeline.h"
#include "strategies/plan/planner.h"

namespace foreshard::plan {

Status plan_places(Draft& draft) {
  const auto stages = static_cast<std::int32_t>(draft.strategy.pipeline_parallel);
  const auto& pieces = draft.plan.parts.pieces;
  if (auto& tie = draft.plan.parts.tie) tie->on_one_role = last_stage(draft.strategy) == 0;
  draft.roles.resize(static_cast<std::size_t>(stages));
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    Role& role = draft.roles[static_cast<std::size_t>(stage)].role;
    role.name = fmt::format("stage {}", stage);
    role.together =
        static_cast<std::int32_t>(draft.strategy.granularity_of(static_cast<std::size_t>(stage)));
    std::vector<ParameterGroup> groups;
    for_each_piece(draft.strategy, stage, [&](std::int64_t, std::int64_t piece) {
      const UnitRange units = pieces[static_cast<std::size_t>(piece)];
      role.chunks.push_back({.piece = static_cast<std::int32_t>(piece), .units = units});
      for (std::int32_t i = 0; i < units.count; ++i) {
        const auto own = draft.plan.parts.own_groups(units.first + i);
        groups.insert(groups.end(), own.begin(), own.end());
      }
    });
    role.parameters = by_shards(groups, draft.plan.parts.mesh);
  }
  return {};
}

namespace {

// Adds the passes of one role.
class Passes {
 public:
  Passes(const PlannedModel& parts, DraftRole& role, bool trains)
      : parts_(parts), role_(role), trains_(trains) {}

  void add(const std::vector<schedule::Slot>& slots) {
    for (const schedule::Slot& slot : slots)
      if (slot.part == PassPart::kWeight) apart_.insert({slot.chunk, slot.micro_batch});
    for (const schedule::Slot& slot : slots) {
      if (!trains_ && slot.direction != Direction::kForward) continue;
      Section section{.slot = PassSlot{.direction = slot.direction,
                                       .chunk = slot.chunk,
                                       .micro_batch = slot.micro_batch,
                                       .part = slot.part,
                                       .beside = slot.beside && trains_}};
      for (const UnitRange& run : runs(slot))
        if (const ActionRef pass = made(slot, run); pass != kNone) section.actions.push_back(pass);
      role_.slots.push_back(std::move(section));
    }
  }

 private:
  bool splits(std::int32_t unit) const { return parts_.block_of(unit).splits; }

  // The units of the slot's chunk, in the order of the pass, as runs that each become one pass. In
  // a forward pass, units without a backward pass are a run of their own. Where the backward pass
  // of this micro-batch runs in two parts, units that split and units that do not are in different
  // runs.
  std::vector<UnitRange> runs(const schedule::Slot& slot) const {
    const UnitRange all = role_.role.chunks[static_cast<std::size_t>(slot.chunk)].units;
    if (all.count == 0) return {};
    if (!trains_) return {all};
    const bool is_forward = slot.direction == Direction::kForward;
    const UnitRange units = parts_.with_backward(all);
    std::vector<UnitRange> found;
    if (is_forward && units.count < all.count)
      found.push_back({all.first, all.count - units.count});
    if (units.count == 0) return found;
    const bool apart = apart_.contains({slot.chunk, slot.micro_batch});
    found.push_back({units.first, apart ? 1 : units.count});
    for (std::int32_t unit = units.first + 1; apart && unit < units.first + units.count; ++unit) {
      if (splits(unit) != splits(unit - 1))
        found.push_back({unit, 1});
      else
        ++found.back().count;
    }
    if (!is_forward) std::ranges::reverse(found);
    return found;
  }

  ActionRef made(const schedule::Slot& slot, const UnitRange& run) {
    Action pass{.kind = ActionKind::kPass,
                .direction = slot.direction,
                .chunk = slot.chunk,
                .micro_batch = slot.micro_batch,
                .units = run};
    const bool apart = apart_.contains({slot.chunk, slot.micro_batch}) && splits(run.first);
    if (!trains_) return role_.make(std::move(pass));
    if (slot.direction == Direction::kForward) {
      if (!parts_.block_of(run.first).has_backward) return role_.make(std::move(pass));
      pass.takes = apart ? kKept | kKeptForWeight : kKept;
    } else if (!apart) {
      if (slot.part == PassPart::kWeight) return kNone;  // it ran whole, in the slot of kInput
      pass.gives_back = kKept;
    } else if (slot.part == PassPart::kInput) {
      pass.part = slot.part;
      pass.takes = kHeld;
      pass.gives_back = kKept;
      return inputs_[{run.first, slot.micro_batch}] = role_.make(std::move(pass));
    } else {
      pass.part = slot.part;
      pass.gives_back = kKeptForWeight | kHeld;
      pass.after = {inputs_.at({run.first, slot.micro_batch})};
    }
    return role_.make(std::move(pass));
  }

  const PlannedModel& parts_;
  DraftRole& role_;
  bool trains_;
  // (chunk, micro-batch) whose backward pass is split.
  std::set<std::pair<std::int32_t, std::int32_t>> apart_;
  // (first unit, micro-batch) -> the pass that computes gradients of inputs.
  std::map<std::pair<std::int32_t, std::int32_t>, ActionRef> inputs_;
};

}  // namespace

Status plan_passes(Draft& draft) {
  FORESHARD_ASSIGN(const auto table, table_of(draft.strategy));
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage)
    Passes(draft.plan.parts, draft.roles[stage], draft.trains()).add(table[stage]);
  return {};
}

}  // namespace foreshard::plan
