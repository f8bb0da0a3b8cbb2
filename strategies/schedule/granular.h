/// \file
/// Schedules of stages that take several micro-batches in one pass, each as many as suits its kind
/// of device. A slot of such a stage has the number of the first micro-batch that it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// 1F1B of stages that take `taken[s]` micro-batches at a time. Before its first backward pass a
/// stage has been forward with as many micro-batches w as the stage behind it, and one pass more of
/// whichever of the two takes more:
///
///     w(last) = taken(last),   w(s) = w(s+1) + max(taken(s), taken(s+1)), up to whole passes
///
/// With one micro-batch a pass that is 1F1B. Stage s cannot wait for ever: for its pass k backward
/// (micro-batches up to (k+1) taken(s)) stage s+1 has to be forward with fewer than w(s+1) +
/// (k+1) taken(s) of them, and s is with w(s) + k taken(s).
/// \pre each of `taken` divides `micro_batches`, and of neighbours one the other.
Table granular_one_f_one_b(const std::vector<std::int64_t>& taken, std::int32_t micro_batches);

}  // namespace foreshard::schedule
