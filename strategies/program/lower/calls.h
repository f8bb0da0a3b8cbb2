/// \file
/// From a step plan to the calls of a Program's roles: private to lower.cc.
#pragma once

#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// The model as the planners take it. Its blocks are the embedding, a layer and the head, in this
/// order.
plan::Parts parts_of(const Model& model, const Strategy& strategy, const LoweredModel& blocks);

/// Appends the roles of `plan`, in its order and without ranks, to `program`, and the blocks that
/// they call. Consecutive units of one block that a pass takes become one call that repeats it.
/// \pre The plan is that of `parts_of(model, strategy, blocks)`.
void append_roles(program::Program& program, const plan::StepPlan& plan, const Model& model,
                  const Strategy& strategy, const LoweredModel& blocks);

}  // namespace foreshard::lower
