#include <fmt/format.h>

#include "strategies/parallelism/pipeline.h"
#include "strategies/plan/internal/planners.h"

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
      const Run units = pieces[static_cast<std::size_t>(piece)];
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

}  // namespace foreshard::plan
