/// \file
/// The invariants of a step plan that concern a single role.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan::internal {

/// The first of the invariants 2 to 8 and 10 (step_plan.h, verify) that the role breaks, in words;
/// nothing if it breaks none.
std::optional<std::string> fault_in_role(const StepPlan& plan, std::size_t role);

}  // namespace foreshard::plan::internal
