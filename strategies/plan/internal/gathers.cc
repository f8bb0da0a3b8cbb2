// The planner of gathers, a row of planners() (planner.h, plan_gathers): shards of parameters
// become whole at the start of a step, before each use, or after the optimizer. Sizes are elements
// on one rank; where no parameter is sharded it adds nothing.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

using Gather = StateSharding::Gather;

Bucket bucket_of(std::vector<UnitRange> units, const ParameterGroup& group) {
  const std::int32_t first = units.front().first;
  return {.units = std::move(units),
          .over = group.over,
          .elements = group.elements,
          .quantized = group.quantized,
          .opened_by = first};
}

// Gathers every unit before the first slot; the unit's first pass waits for the gather.
void gather_at_start(Draft& draft, DraftRole& role) {
  std::map<std::int32_t, std::vector<ActionRef>> gathers_of;  // by unit
  for (std::size_t chunk = 0; chunk < role.role.chunks.size(); ++chunk) {
    const UnitRange units = role.role.chunks[chunk].units;
    const PlannedModel& parts = draft.plan.parts;
    for (std::int32_t unit = units.first; unit < units.first + units.count; ++unit) {
      for (const ParameterGroup& group : trained_alone(parts.cut_groups(parts.own_groups(unit)))) {
        const ActionRef gather = role.make({.kind = ActionKind::kGather,
                                            .chunk = static_cast<std::int32_t>(chunk),
                                            .what = draft.add(bucket_of({{unit, 1}}, group))});
        gathers_of[unit].push_back(gather);
        role.start.actions.push_back(gather);
      }
    }
  }
  std::set<std::int32_t> begun;  // chunks
  for (Section& section : role.slots) {
    if (section.slot->direction != Direction::kForward || !begun.insert(section.slot->chunk).second)
      continue;
    role.split_passes(section);
    for (const ActionRef ref : section.actions) {
      if (!role.is_pass(ref)) continue;
      for (const ActionRef gather : gathers_of[role[ref].units.first]) role.wait(ref, gather);
    }
  }
}

// Gathers each unit for each of its passes, which frees the whole parameters again.
class BeforeUse {
 public:
  BeforeUse(Draft& draft, DraftRole& role) : draft_(draft), role_(role) {}

  void add() {
    for (Section& section : role_.slots) role_.split_passes(section);
    find_held();
    for (Section& section : role_.slots) {
      const std::vector<ActionRef> actions = std::exchange(section.actions, {});
      for (auto it = actions.begin(); it != actions.end(); ++it) {
        if (!role_.is_pass(*it)) {
          section.actions.push_back(*it);
          continue;
        }
        const auto next =
            std::find_if(it + 1, actions.end(), [&](ActionRef ref) { return role_.is_pass(ref); });
        add_pass(section, *it, next == actions.end() ? kNone : *next);
      }
    }
  }

 private:
  // Finds the forward passes of the model's last unit that are followed at once by the unit's
  // backward pass of the same micro-batch: the unit stays whole between the two.
  void find_held() {
    const auto last = static_cast<std::int32_t>(draft_.plan.parts.units.size()) - 1;
    ActionRef before = kNone;
    for (const Section& section : role_.slots) {
      for (const ActionRef ref : section.actions) {
        if (!role_.is_pass(ref)) continue;
        const Action& pass = role_[ref];
        if (before != kNone && pass.units.first == last && role_[before].units.first == last &&
            pass.direction == Direction::kBackward &&
            role_[before].direction == Direction::kForward &&
            pass.micro_batch == role_[before].micro_batch)
          held_.insert(before);
        before = ref;
      }
    }
  }

  // Adds the pass, its gather unless that was prefetched, and the prefetch for the next pass.
  void add_pass(Section& section, ActionRef pass, ActionRef next) {
    if (gathered_ == kNone && !cut_groups(pass).empty()) gathered_ = gather(section, pass);
    const Prefetch when = prefetch(pass);
    const bool fetches = next != kNone && !cut_groups(next).empty() && when != Prefetch::kNone;
    ActionRef next_gathered = kNone;
    if (fetches && when == Prefetch::kPre) next_gathered = gather(section, next);
    section.actions.push_back(pass);
    const bool holds = gathered_ != kNone && held_.contains(pass);
    if (gathered_ != kNone) {
      role_.wait(pass, gathered_);
      if (holds)
        next_gathered = gathered_;
      else
        role_[pass].gives_back |= kWhole;
    }
    if (fetches && when == Prefetch::kPost) next_gathered = gather(section, next);
    gathered_ = next_gathered;
    if (!holds) pass_before_ = pass;
  }

  std::vector<ParameterGroup> cut_groups(ActionRef pass) const {
    const PlannedModel& parts = draft_.plan.parts;
    return parts.cut_groups(parts.block_of(role_[pass].units.first).groups);
  }

  Prefetch prefetch(ActionRef pass) const {
    const Shards& shards = draft_.strategy.framework->shards;
    return role_[pass].direction == Direction::kForward ? shards.forward_prefetch
                                                        : shards.backward_prefetch;
  }

  // Gathers the unit of `pass`, for which there is room when the pass before the running one has
  // ended.
  // \return the last of the unit's gathers, which run one after another.
  ActionRef gather(Section& section, ActionRef pass) {
    const std::int32_t unit = role_[pass].units.first;
    const auto [buckets, is_new] = buckets_of_.try_emplace(unit);
    if (is_new)
      for (const ParameterGroup& group : cut_groups(pass))
        buckets->second.push_back(draft_.add(bucket_of({{unit, 1}}, group)));
    for (const std::int32_t bucket : buckets->second) {
      Action action = role_[pass];
      action.kind = ActionKind::kGather;
      action.units = {};
      action.what = bucket;
      action.takes = kWhole;
      action.gives_back = 0;
      action.after = {pass_before_};
      section.actions.push_back(role_.make(std::move(action)));
    }
    return section.actions.back();
  }

  Draft& draft_;
  DraftRole& role_;
  std::map<std::int32_t, std::vector<std::int32_t>> buckets_of_;  // by unit
  ActionRef pass_before_ = kNone;  // the last pass whose unit is not held after it
  ActionRef gathered_ = kNone;     // the gather of the next pass, if it is issued
  std::set<ActionRef> held_;       // forward passes whose unit stays whole after them
};

void gather_at_end(Draft& draft, DraftRole& role) {
  if (role.optimizer() == kNone) return;
  const PlannedModel& parts = draft.plan.parts;
  for (const ParameterGroup& group : trained_alone(parts.cut_groups(role.role.parameters)))
    role.end.actions.push_back(role.make({.kind = ActionKind::kGather,
                                          .direction = Direction::kBackward,
                                          .what = draft.add(bucket_of(role.all_units(), group)),
                                          .after = {role.optimizer()}}));
}

}  // namespace

Status plan_gathers(Draft& draft) {
  for (DraftRole& role : draft.roles) {
    switch (draft.plan.states.gather) {
      case Gather::kNever:
        break;
      case Gather::kStartOfStep:
        gather_at_start(draft, role);
        break;
      case Gather::kBeforeUse:
        BeforeUse(draft, role).add();
        break;
      case Gather::kEndOfStep:
        gather_at_end(draft, role);
        break;
    }
  }
  return {};
}

}  // namespace foreshard::plan
