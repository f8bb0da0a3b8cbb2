/// \file
/// Describes a step that never ended: what failed, and which tasks wait for which.
#pragma once

#include "sim/simulate/build.h"
#include "sim/simulate/prediction.h"

namespace foreshard::sim {

/// \pre !times.complete
Interruption interruption_of(const program::Program& program, const BuiltWorkload& built,
                             const engine::Timeline& times);

/// The timeline up to the instant after which nothing happened. Tasks that were running end then;
/// tasks that had not begun begin and end then.
engine::Timeline cut_off(const engine::Timeline& times);

}  // namespace foreshard::sim
