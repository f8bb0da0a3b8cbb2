/// \file
/// Weight gradients put where stages would wait.
#pragma once

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// `table` has forward passes and input gradients; each stage keeps their order. Beside it, a stage
/// runs the oldest weight gradients that are still to come
///
///  - when as many micro-batches (in chunks) are in flight as `most`, and a forward pass is next;
///  - when what comes next cannot begin before they would be done; or, if it can, when waiting
///    would make this stage the one that has waited longest;
///  - when nothing else is left.
///
/// A micro-batch is in flight from its forward pass to its weight gradients. The order follows from
/// `shape.times`, pass by pass on all stages.
///
/// Source: Qi et al., ICLR 2024 (arXiv 2401.10241), section 3.1.
/// \pre `table` does not deadlock, and `most` suffices for its forward passes.
Table with_weight_gradients(const Table& table, const Shape& shape, Placement placement,
                            std::int32_t most);

}  // namespace foreshard::schedule
