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
  Attribute lies{};
  Attribute sent{};          ///< How it lies while it is sent.
  bool has_gradient = true;  ///< Its gradient is handed back.
  bool operator==(const Boundary&) const = default;
};

/// What the Program runs for the blocks of a plan.
struct PlannedBlocks {
  std::vector<const LoweredBlock*> blocks{};  ///< In the order of plan::Parts::blocks.
  /// By crossing, in the order of plan::StepPlan::crossings. One entry: for all of them.
  std::vector<std::vector<Boundary>> boundaries{};
  std::set<Axis> split_over{};  ///< Axes over which parameters are split.
  std::uint64_t seed = 1;       ///< Of the branches that conditions draw.
};

/// The Program of `plan`, without totals and without what a role holds during the whole step.
/// Consecutive units that a pass takes become one call that repeats their block, where they have
/// the same one and the passes through it are no more than that (Pieces). A call waits for the
/// conversion with which the call before it, of the same chunk and micro-batch, ends.
/// \param launch_time  as in LowerOptions.
program::Program program_of(const plan::StepPlan& plan, const Strategy& strategy,
                            const PlannedBlocks& blocks, Seconds launch_time);

}  // namespace foreshard::lower
