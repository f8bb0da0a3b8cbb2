/// \file
/// model + strategy -> Program: the blocks of block.h called in the order of a pipeline schedule,
/// with transfers between stages, gradients and parameters over the data-parallel ranks, and the
/// optimizer step.
#pragma once

#include "base/result.h"

#include "strategies/program/lower/block.h"

namespace foreshard::lower {

struct LowerOptions {
  Seconds launch_time;  ///< Host time per kernel or communication.
};

/// The Program of one step: of training, or (`mode: forward`) the forward pass of its micro-batches
/// with the loss, parameters as the strategy lays them, and nothing else in memory but what a block
/// needs while it runs. Rank r of the mesh runs on device r.
///
/// Not modelled: the forward pass of the loss scaler, learning-rate and logging work of the host,
/// reading of training data; in forward mode, the generation of text token by token (no cache of
/// keys and values).
/// \pre faults_in(strategy, model, ...) is empty.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants, or the schedule does
///     not do this number of micro-batches.
Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LowerOptions& options);

/// The same from blocks that are there already (the search lowers blocks once for many strategies).
Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks, const LowerOptions& options);

/// Bytes per element of what training keeps beside the parameters: fp32 master copy and two fp32
/// moments of Adam (Rajbhandari et al., "ZeRO", SC 2020: K = 12); fp32 training needs no copy.
Bytes optimizer_bytes(DType precision);

}  // namespace foreshard::lower
