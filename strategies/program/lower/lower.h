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

/// The step plan that `lower` follows. Preconditions and errors are those of `lower`.
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

/// Bytes per element of what training keeps beside the parameters: fp32 master copy and two fp32
/// moments of Adam (Rajbhandari et al., "ZeRO", SC 2020: K = 12); fp32 training needs no copy.
Bytes optimizer_bytes(DType precision);

/// What an element of the parameters, and one of the optimizer's state, takes under `strategy`:
/// shards in fp32 are the master copy themselves.
struct ElementBytes {
  Bytes parameter;
  Bytes optimizer;
};
ElementBytes element_bytes(const Strategy& strategy);

/// The kernels of an optimizer step over `count` elements, in order: Adam on fp32 copies with a
/// working copy in `precision`. In a loop:
///
///     exp_avg *= beta1; exp_avg += (1 - beta1) g; exp_avg_sq *= beta2; exp_avg_sq += ... g g;
///     root = sqrt(exp_avg_sq); root /= correction; root += eps; p -= rate exp_avg / root
///
/// 80 bytes an element where the fused kernel moves 28 (mosaicml/composer,
/// composer/optim/decoupled_weight_decay.py: adamw).
/// Not modelled: one launch of each for every parameter tensor.
std::vector<Pass> optimizer_kernels(OptimizerKernels how, std::int64_t count, DType precision);
/// Appends them as tasks.
void append_optimizer(program::Block& step, OptimizerKernels how, std::int64_t count,
                      DType precision);

}  // namespace foreshard::lower
