/// \file
/// Weight gradients in the gaps of a pipeline schedule, where stages would otherwise wait.
#pragma once

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// Adds weight gradients to `table`, which has forward passes and input gradients; each stage keeps
/// their order. A stage runs its oldest pending weight gradients
///
///  - when `in_flight_limit` micro-batches (times chunks) are in flight and a forward pass is next;
///  - when its next pass cannot begin before they would be done; or, if it can, when waiting for it
///    would make this stage the one that has waited longest;
///  - when no other pass is left.
///
/// A micro-batch is in flight from its forward pass to its weight gradients. The order results from
/// a simulation of all stages, pass by pass, with `shape.times`.
///
/// Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 3.1.
/// \pre `table` does not deadlock, and `in_flight_limit` suffices for its forward passes
Table with_weight_gradients(const Table& table, const PipelineShape& shape,
                            StagePlacement placement, std::int32_t in_flight_limit);

}  // namespace foreshard::schedule
