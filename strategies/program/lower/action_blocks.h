/// \file
/// The block of the Program that an action of a step plan becomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/calls.h"

namespace foreshard::lower {

/// Key of a block of the Program: actions with equal subjects share a block.
struct Subject {
  plan::ActionKind kind = plan::ActionKind::kPass;
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  std::int32_t of = 0;  ///< A block of the plan, a role, or an index as Action::what.
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  bool syncs = false;                     ///< The host waits for this receive.
  std::vector<Axis> over{};               ///< Axes of a gather or reduction: plan::Bucket::over.
  const program::Block* tasks = nullptr;  ///< Tasks of a pass: the piece of it.
  bool begins = true;                     ///< The pass through a unit begins with it.
  bool ends = true;                       ///< The pass through a unit ends with it.
  auto operator<=>(const Subject&) const = default;
};

/// The block of one action of `role`.
program::Block block_for(const plan::StepPlan& plan, const Strategy& strategy,
                         const PlannedBlocks& blocks, const plan::Role& role,
                         const plan::Action& action, const Subject& subject);

/// Whether a gather or reduction moves the bucket of one unit beside the unit's passes, rather than
/// all units of a role at once.
bool of_one_unit(const StateSharding& states, const plan::Action& action);

}  // namespace foreshard::lower
