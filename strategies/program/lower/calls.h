/// \file
/// From a step plan to a Program: the calls of its roles, and the blocks that they call.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/action_blocks.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// What the Program runs for the blocks of a plan.
struct PlannedBlocks {
  std::vector<const LoweredBlock*>
      blocks{};  ///< Blocks, in the order of plan::PlannedModel::blocks.
  /// crossing (index into plan::StepPlan::crossings) -> its tensors. A single entry holds for all
  /// crossings.
  std::vector<std::vector<Boundary>> boundaries{};
  std::set<Axis> split_over{};  ///< Axes over which parameters are split.
  std::uint64_t seed = 1;       ///< Seed of the branches that conditions draw.
};

/// The Program of `plan`, without totals and without what a role holds during the whole step.
/// Consecutive units of a pass become one call that repeats their block, where they share a block
/// and a pass through it is a single block of the Program (Pieces). A call waits for the conversion
/// that ends the previous call of the same chunk and micro-batch.
/// \param launch_time  as in LowerOptions.
program::Program program_of(const plan::StepPlan& plan, const Strategy& strategy,
                            const PlannedBlocks& blocks, Seconds launch_time);

/// Key of a block of the Program: actions with equal keys share a block.
struct BlockKey {
  plan::ActionKind kind = plan::ActionKind::kPass;
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  std::int32_t of = 0;  ///< A block of the plan, a role, or an index as Action::what.
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  bool syncs = false;                     ///< The host waits for this receive.
  std::vector<Axis> over{};               ///< Axes of a gather or reduction: plan::Bucket::over.
  const program::Block* tasks = nullptr;  ///< Tasks of a pass: the piece of it.
  bool begins = true;                     ///< The pass through a unit begins with it.
  bool ends = true;                       ///< The pass through a unit ends with it.
  auto operator<=>(const BlockKey&) const = default;
};

/// The block of one action of `role`.
program::Block block_for(const plan::StepPlan& plan, const Strategy& strategy,
                         const PlannedBlocks& blocks, const plan::Role& role,
                         const plan::Action& action, const BlockKey& key);

}  // namespace foreshard::lower
