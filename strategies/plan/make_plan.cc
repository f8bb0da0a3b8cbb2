// The table of planners, and make_plan, which runs them one after another; lowering and the forms
// of the search call it. To add a way to run a step, write its planner and a row here.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"

#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

constexpr std::array kPlanners{
    Planner{"places", plan_places},         Planner{"passes", plan_passes},
    Planner{"reductions", plan_reductions}, Planner{"step end", plan_step_end},
    Planner{"gathers", plan_gathers},       Planner{"offloads", plan_offloads},
    Planner{"transfers", plan_transfers},
};

// The largest number of ranks that reduce the gradient of one parameter.
std::int64_t copies_of(const PlannedModel& parts) {
  std::int64_t most = 1;
  for (const Block& block : parts.blocks)
    for (const ParameterGroup& group : block.groups)
      most = std::max(most, ways(group.over, parts.mesh));
  return most;
}

}  // namespace

std::span<const Planner> planners() {
  return kPlanners;
}

Result<StepPlan> make_plan(PlannedModel parts, const Strategy& strategy) {
  return make_plan(std::move(parts), strategy, planners());
}

Result<StepPlan> make_plan(PlannedModel parts, const Strategy& strategy,
                           std::span<const Planner> planners) {
  FORESHARD_CHECK(static_cast<std::int64_t>(parts.pieces.size()) == strategy.stages());
  const StateSharding states = state_sharding(strategy, copies_of(parts));
  Draft draft{.strategy = strategy, .plan = {.parts = std::move(parts), .states = states}};
  for (const Planner& planner : planners) FORESHARD_TRY(planner.add(draft));
  for (DraftRole& role : draft.roles) draft.plan.roles.push_back(std::move(role).finish());
  return std::move(draft.plan);
}

}  // namespace foreshard::plan
