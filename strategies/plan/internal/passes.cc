#include "strategies/plan/internal/planners.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::plan {

Status plan_passes(Draft& draft) {
  const Strategy& strategy = draft.strategy;
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    DraftRole& role = draft.roles[stage];
    FORESHARD_ASSIGN(
        const auto order,
        schedule::order(strategy.schedule,
                        {.stage = static_cast<std::int32_t>(stage),
                         .stages = static_cast<std::int32_t>(strategy.pipeline_parallel),
                         .chunks = static_cast<std::int32_t>(strategy.virtual_stages),
                         .micro_batches = static_cast<std::int32_t>(strategy.micro_batches())}));
    for (const schedule::Slot& slot : order) {
      const bool is_forward = slot.direction == Direction::kForward;
      if (!draft.trains() && !is_forward) continue;
      Section section{.slot = Slot{.direction = slot.direction,
                                   .chunk = slot.chunk,
                                   .micro_batch = slot.micro_batch}};
      const Run units = role.role.chunks[static_cast<std::size_t>(slot.chunk)].units;
      const auto add = [&](Run of, std::uint8_t kept) {
        if (of.count == 0) return;
        Action pass{.kind = ActionKind::kPass,
                    .direction = slot.direction,
                    .chunk = slot.chunk,
                    .micro_batch = slot.micro_batch,
                    .units = of};
        (is_forward ? pass.takes : pass.gives_back) = kept;
        section.actions.push_back(role.make(std::move(pass)));
      };
      const Run both_ways = draft.trains() ? draft.plan.parts.with_backward(units) : Run{};
      if (is_forward) add({units.first, units.count - both_ways.count}, 0);
      add(both_ways, kKept);
      role.slots.push_back(std::move(section));
    }
  }
  return {};
}

}  // namespace foreshard::plan
