/// \file
/// The step without times: operations of the rank classes are matched and run in any order that the
/// rules of program.h allow. Whether the step ends does not depend on the order: once a task may
/// start, nothing that happens later prevents it.
#pragma once

#include <vector>

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/internal/rank_classes.h"
#include "strategies/program/ir/internal/violation.h"

namespace foreshard::program::internal {

/// Invariants 17 (operations match) and 18 (no deadlock).
/// \param expansions  one per role.
/// \pre invariants 1 to 16.
Status rehearse(const Program& program, const RankClasses& classes,
                const std::vector<Expansion>& expansions);

}  // namespace foreshard::program::internal
