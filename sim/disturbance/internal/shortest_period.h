/// \file
/// How often something may come again.
#pragma once

#include "base/units.h"

namespace foreshard::disturbance::internal {

/// Every period is an event or more of the simulation: at this one a step of 10 s has millions, at
/// some nanoseconds it would not end. What changes faster than this is a mean bandwidth to flows
/// that take longer.
inline constexpr Seconds kShortestPeriod = Seconds::from_base(1e-6);

}  // namespace foreshard::disturbance::internal
