/// \file
/// The shortest period of anything that repeats.
#pragma once

#include "base/units.h"

namespace foreshard::disturbance::internal {

/// Every period costs the simulation one event or more: with this period a step of 10 s has
/// millions of events; with some nanoseconds it would not end. To flows that take longer, a faster
/// change is just a mean bandwidth.
inline constexpr Seconds kShortestPeriod = Seconds::from_base(1e-6);

}  // namespace foreshard::disturbance::internal
