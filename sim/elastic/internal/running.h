/// \file
/// A Running of what a simulation or a search says, and the time of an exchange.
#pragma once

#include "sim/elastic/replan.h"
#include "sim/simulate/prediction.h"

namespace foreshard::elastic::internal {

/// The study's own strategy. `prediction` is of its step.
Running running_of(const study::LoadedStudy& study, const sim::Prediction& prediction);
Running running_of(const search::Simulated& found);

/// Simulated, or of idle links where it is too large for that; zero where nothing moves.
Seconds time_of(const conversion::Explanation& move);

}  // namespace foreshard::elastic::internal
