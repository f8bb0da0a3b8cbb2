// The plan under construction (planner.h), which planners extend. Indices count from 0, -1 is none;
// finish() numbers the actions in the order of issue.
#include <algorithm>

#include "base/check.h"

#include "strategies/plan/planner.h"

namespace foreshard::plan {

ActionRef DraftRole::make(Action action) {
  std::erase(action.after, kNone);
  action.after.reserve(4);  // few actions wait for more
  actions_.push_back(std::move(action));
  return static_cast<ActionRef>(actions_.size()) - 1;
}

void DraftRole::wait(ActionRef ref, ActionRef earlier) {
  if (earlier != kNone) (*this)[ref].after.push_back(earlier);
}

void DraftRole::split_passes(Section& section) {
  std::vector<ActionRef> divided;
  for (const ActionRef ref : section.actions) {
    const Action whole = (*this)[ref];
    const bool is_forward = whole.direction == Direction::kForward;
    for (std::int32_t i = 0; is_pass(ref) && i + 1 < whole.units.count; ++i) {
      Action one = whole;
      one.units = {
          is_forward ? whole.units.first + i : whole.units.first + whole.units.count - 1 - i, 1};
      if (i > 0) one.after.clear();
      divided.push_back(make(std::move(one)));
    }
    divided.push_back(ref);
    if (!is_pass(ref) || whole.units.count <= 1) continue;
    Action& last = (*this)[ref];
    last.after.clear();
    last.units = {is_forward ? whole.units.first + whole.units.count - 1 : whole.units.first, 1};
  }
  section.actions = std::move(divided);
}

ActionRef DraftRole::last_pass(const Section& section) const {
  const auto it = std::find_if(section.actions.rbegin(), section.actions.rend(),
                               [&](ActionRef ref) { return is_pass(ref); });
  return it == section.actions.rend() ? kNone : *it;
}

ActionRef DraftRole::first_pass(const Section& section) const {
  const auto it =
      std::ranges::find_if(section.actions, [&](ActionRef ref) { return is_pass(ref); });
  return it == section.actions.end() ? kNone : *it;
}

ActionRef DraftRole::last_pass() const {
  for (auto section = slots.rbegin(); section != slots.rend(); ++section)
    if (const ActionRef ref = last_pass(*section); ref != kNone) return ref;
  return kNone;
}

ActionRef DraftRole::optimizer() const {
  const auto is_optimizer = [&](ActionRef ref) {
    return (*this)[ref].kind == ActionKind::kOptimizer;
  };
  const auto it = std::ranges::find_if(end.actions, is_optimizer);
  return it == end.actions.end() ? kNone : *it;
}

std::vector<UnitRange> DraftRole::all_units() const {
  std::vector<UnitRange> all;
  for (const Chunk& chunk : role.chunks) all.push_back(chunk.units);
  return all;
}

Role DraftRole::finish() && {
  std::vector<ActionId> id_of(actions_.size(), kNone);
  ActionId next = 0;
  const auto number = [&](const Section& section) {
    const ActionId first = next;
    for (const ActionRef ref : section.actions) id_of[static_cast<std::size_t>(ref)] = next++;
    return first;
  };
  number(start);
  for (Section& section : slots) {
    section.slot->first = number(section);
    role.slots.push_back(*section.slot);
  }
  role.end = number(end);
  role.actions.reserve(static_cast<std::size_t>(next));
  const auto write = [&](const Section& section) {
    for (const ActionRef ref : section.actions) {
      Action action = std::move((*this)[ref]);
      for (ActionId& earlier : action.after) {
        earlier = id_of[static_cast<std::size_t>(earlier)];
        FORESHARD_CHECK(earlier != kNone);
      }
      std::ranges::sort(action.after);
      action.after.erase(std::unique(action.after.begin(), action.after.end()), action.after.end());
      role.actions.push_back(std::move(action));
    }
  };
  write(start);
  for (const Section& section : slots) write(section);
  write(end);
  return std::move(role);
}

}  // namespace foreshard::plan
