/// \file
/// What one action of a step plan is in the Program: a block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/calls.h"

namespace foreshard::lower {

/// What a block of the Program is made for. Actions that agree in it share a block.
struct Subject {
  plan::ActionKind kind = plan::ActionKind::kPass;
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  std::int32_t of = 0;  ///< A block of the plan, a role, or an index as in Action::what.
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  bool syncs = false;                     ///< Of a receive: the host waits for it.
  std::vector<Axis> over{};               ///< Of a gather or reduction: as in plan::Bucket.
  const program::Block* tasks = nullptr;  ///< Of a pass: the piece.
  bool begins = true;                     ///< The pass through a unit begins with it.
  bool ends = true;                       ///< The pass through a unit ends with it.
  auto operator<=>(const Subject&) const = default;
};

/// The block of one action of `role`.
program::Block block_for(const plan::StepPlan& plan, const Strategy& strategy,
                         const PlannedBlocks& blocks, const plan::Role& role,
                         const plan::Action& action, const Subject& subject);

/// Whether a gather or reduction moves the bucket of one unit beside its passes, rather than all of
/// a role's at once.
bool of_one_unit(const StateSharding& states, const plan::Action& action);

}  // namespace foreshard::lower
