// The planner of the end of a step, a row of planners() (planner.h, plan_step_end): copies of
// gradients are added up, then the optimizer steps. Without training it adds nothing.
#include <map>

#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

// The last reduction of the role; kNone without one.
ActionRef last_reduction(const DraftRole& role) {
  ActionRef last = kNone;
  const auto look = [&](const Section& section) {
    for (const ActionRef ref : section.actions)
      if (role[ref].kind == ActionKind::kReduce) last = ref;
  };
  for (const Section& section : role.slots) look(section);
  look(role.end);
  return last;
}

// Copies of the role's parameters whose gradients are partial, because each rank saw only its part
// of the sequence.
std::vector<GradientCopies> replicated(const Draft& draft, std::int32_t role) {
  std::map<std::vector<Axis>, std::int64_t> elements;
  for (const Chunk& chunk : draft.roles[static_cast<std::size_t>(role)].role.chunks) {
    for (std::int32_t i = 0; i < chunk.units.count; ++i) {
      for (const ParameterGroup& group : draft.plan.parts.block_of(chunk.units.first + i).groups)
        if (!group.also_partial.empty()) elements[group.also_partial] += group.elements;
    }
  }
  std::vector<GradientCopies> copies;
  copies.reserve(elements.size());
  for (const auto& [axes, count] : elements)
    copies.push_back({.roles = {role}, .axes = axes, .elements = count});
  return copies;
}

// The entry for a tie whose copies lie on two roles, if `role` is one of them.
std::optional<GradientCopies> tied(const Draft& draft, std::int32_t role) {
  const auto& tie = draft.plan.parts.tie;
  const auto last = static_cast<std::int32_t>(draft.roles.size()) - 1;
  if (!tie || tie->is_frozen || tie->on_one_role || (role != 0 && role != last))
    return std::nullopt;
  return GradientCopies{.roles = {0, last}, .elements = tie->elements};
}

}  // namespace

Status plan_step_end(Draft& draft) {
  if (!draft.trains()) return {};
  std::int32_t tie = -1;  // index of the one entry that both roles share
  for (std::size_t i = 0; i < draft.roles.size(); ++i) {
    DraftRole& role = draft.roles[i];
    const ActionRef reduced = last_reduction(role);
    std::vector<ActionRef> finished{role.last_pass(), reduced};
    const auto add = [&](std::int32_t copies) {
      const ActionRef ref = role.make({.kind = ActionKind::kReduceCopies,
                                       .direction = Direction::kBackward,
                                       .what = copies,
                                       .after = {role.last_pass(), reduced}});
      role.end.actions.push_back(ref);
      return ref;
    };
    ActionRef last_copies = kNone;
    for (GradientCopies& copies : replicated(draft, static_cast<std::int32_t>(i)))
      last_copies = add(draft.add(std::move(copies)));
    finished.push_back(last_copies);
    if (auto copies = tied(draft, static_cast<std::int32_t>(i))) {
      if (tie < 0) tie = draft.add(*std::move(copies));
      finished.push_back(add(tie));
    }
    role.end.actions.push_back(role.make({.kind = ActionKind::kOptimizer,
                                          .direction = Direction::kBackward,
                                          .after = std::move(finished)}));
  }
  return {};
}

}  // namespace foreshard::plan
