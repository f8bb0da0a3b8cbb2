/// \file
/// Makes a Running from the result of a simulation or a search; the time of an exchange.
#pragma once

#include "sim/elastic/replan.h"
#include "sim/simulate/prediction.h"

namespace foreshard::elastic::internal {

/// The study's own strategy. `prediction` is the one of its step.
Running running_of(const study::LoadedStudy& study, const sim::Prediction& prediction);
Running running_of(const search::Simulated& found);

/// The simulated time, or the time on idle links if the exchange is too large for that; zero if
/// nothing moves.
Seconds time_of(const conversion::Explanation& move);

}  // namespace foreshard::elastic::internal
