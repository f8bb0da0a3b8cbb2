// How long the results of communications had been there when a rank needed them.
#pragma once

#include <vector>

#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host::internal {

// One per instance: time of need - arrival; 0 for other instances than communications. The result
// of a communication is needed when an instance that waits for it, directly or through other
// communications, has nothing else left to wait for; at the end of the step if no instance does.
std::vector<Seconds> slack_of(const RankPlan& plan, const StepTimes& times,
                              const std::vector<Seconds>& arrivals);

}  // namespace foreshard::replay::host::internal
