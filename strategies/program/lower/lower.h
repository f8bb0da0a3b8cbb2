/// \file
/// model + strategy -> Program: the blocks of block.h called as the step plan says, which has
/// transfers between stages, gradients and parameters over the data-parallel ranks, and the
/// optimizer step.
#pragma once

#include "base/result.h"

#include "strategies/program/lower/calls.h"

namespace foreshard::lower {

struct LowerOptions {
  Seconds launch_time{};  ///< Of the host, to launch a kernel; the framework adds to it.
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

/// The step plan that `lower` follows. Preconditions and errors are those of `lower`; also
/// kInvalidInput for unequal batch_shares, whose ranks follow one for each number of micro-batches.
Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy);

/// The model as the planners take it, and what the Program runs for its blocks: the embedding, a
/// layer and the head, in this order.
plan::Parts parts_of(const Model& model, const Strategy& strategy, const LoweredModel& blocks);
PlannedBlocks planned_blocks(const LoweredModel& blocks, const Strategy& strategy);

/// Both from blocks that are there already (the search lowers blocks once for many strategies).
Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks, const LowerOptions& options);
Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks);

/// What an element of the parameters, and one of the optimizer's state, takes under `strategy`:
/// shards in fp32 are the master copy themselves.
struct ElementBytes {
  Bytes parameter;
  Bytes optimizer;
  Bytes matrix;  ///< The same of a weight of a layer, where optimizers tell them apart.
};
ElementBytes element_bytes(const Strategy& strategy);

}  // namespace foreshard::lower
