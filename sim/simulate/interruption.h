/// \file
/// A step that never ended: what failed, and which tasks wait for which.
#pragma once

#include "sim/simulate/build.h"
#include "sim/simulate/prediction.h"

namespace foreshard::sim {

/// \pre !times.complete
Interruption interruption_of(const program::Program& program, const BuiltWorkload& built,
                             const engine::Timeline& times);

/// The time line until nothing happened any more: what was going on then ends then, what had not
/// begun begins and ends then.
engine::Timeline cut_off(const engine::Timeline& times);

}  // namespace foreshard::sim
