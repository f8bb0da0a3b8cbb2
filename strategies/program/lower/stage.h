/// \file
/// The calls of one pipeline stage: private to lower.cc.
#pragma once

#include "base/result.h"

#include "strategies/program/lower/block.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {

/// Appends the stage's role, and the blocks that it needs and `program` has not, to `program`.
Result<program::Role> stage_role(program::Program& program, const Model& model,
                                 const Strategy& strategy, const LoweredModel& blocks,
                                 std::int64_t stage);

}  // namespace foreshard::lower
