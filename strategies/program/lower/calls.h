/// \file
/// From a step plan to a Program: the calls of its roles, and the blocks that they call.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// A tensor that one piece of the model hands to the next.
struct Boundary {
  std::vector<std::int64_t> shape{};
  DType dtype = DType::kBf16;
  Attribute lies{};          ///< Layout over the ranks.
  Attribute sent{};          ///< Layout while it is sent.
  bool has_gradient = true;  ///< The piece that reads it hands its gradient back.
  bool operator==(const Boundary&) const = default;
};

/// What the Program runs for the blocks of a plan.
struct PlannedBlocks {
  std::vector<const LoweredBlock*> blocks{};  ///< Blocks, in the order of plan::Parts::blocks.
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

}  // namespace foreshard::lower
