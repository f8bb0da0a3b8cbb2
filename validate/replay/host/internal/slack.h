// How long the results of communications had been there when a rank needed them.
#pragma once

#include <vector>

#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host::internal {

// By instance: need - arrival; 0 for what is not a communication. A communication is needed when an
// instance that waits for it, on any way through other communications, had nothing else to wait
// for; at the end of the step if none does.
std::vector<Seconds> slack_of(const RankPlan& plan, const StepTimes& times,
                              const std::vector<Seconds>& arrivals);

}  // namespace foreshard::replay::host::internal
