/// \file
/// model + strategy -> Program. The step plan says how the blocks of block.h are called; it also
/// has the transfers between stages, the gathers and reductions over data-parallel ranks, and the
/// optimizer step.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"

#include "strategies/program/lower/block.h"
#include "strategies/program/lower/calls.h"

namespace foreshard::lower {

struct LowerOptions {
  Seconds launch_time{};  ///< Host time to launch a kernel; the framework adds to it.
};

/// The Program of one step of training. With `mode: forward` it is the forward pass of the step's
/// micro-batches with the loss; memory then holds the parameters, as the strategy lays them out,
/// and what a block needs while it runs. Rank r of the mesh runs on device r.
///
/// Not modelled: the forward pass of the loss scaler, learning-rate and logging work of the host,
/// reading of training data; in forward mode, the generation of text token by token (no cache of
/// keys and values).
/// \pre faults_in(strategy, model, ...) is empty.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants, or the schedule does
///     not do this number of micro-batches.
Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LowerOptions& options);

/// The step plan that `lower` follows, with the preconditions and errors of `lower`. Also
/// kInvalidInput for unequal batch_shares: there is then one plan for each number of micro-batches.
Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy);

/// The model as the planners take it, and what the Program runs for its blocks: the embedding, the
/// variants of layers, the prediction modules and the head, in this order.
plan::PlannedModel parts_of(const Model& model, const Strategy& strategy,
                            const LoweredModel& blocks);
PlannedBlocks planned_blocks(const LoweredModel& blocks, const Strategy& strategy);

/// `lower` and `plan_of` with given blocks (the search lowers blocks once for many strategies).
Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks, const LowerOptions& options);
Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks);

/// Bytes that a rank stores under `strategy` for each element of the parameters. Shards in fp32 are
/// the master copy at the same time, which the optimizer's state then does without.
struct ElementBytes {
  Bytes parameter;
  Bytes optimizer;  ///< Optimizer state.
  Bytes matrix;  ///< Optimizer state for a weight of a layer, where the optimizer treats it apart.
};
ElementBytes element_bytes(const Strategy& strategy);

/// The parameters that one rank of `stage` holds, before data-parallel ranks share them (ZeRO): the
/// groups of all its blocks. Several groups can have the same axes.
std::vector<plan::ParameterGroup> groups_of_stage(const Strategy& strategy, const Model& model,
                                                  const LoweredModel& blocks, std::int64_t stage);

/// plan::PlannedModel::own_groups() of the units of a block; `block`: its place in
/// LoweredModel::all().
std::vector<plan::ParameterGroup> own_groups(const Strategy& strategy, const Model& model,
                                             const LoweredModel& blocks, std::size_t block);

/// The axes over which a transformer's parameters are split.
std::set<Axis> split_over(const std::vector<MeshAxis>& mesh);

/// What resident memory follows from.
struct HeldParts {
  std::vector<MeshAxis> mesh{};
  std::vector<plan::ParameterGroup> groups{};  ///< plan::by_shards() of the parameters.
  std::optional<Bytes> whole{};  ///< Parameters that ZeRO does not cut; nothing: as in `groups`.
  bool pads_shards = false;      ///< Shards count as plan::shard_of(); else as equal parts.
  Bytes row_states{};            ///< Optimizer states of tables that are updated by rows.
  Bytes buffers{};               ///< Buffers beside the framework's workspace.
};

/// What a rank holds during the whole step: parameters, gradients and optimizer state as the
/// strategy shares them, and buffers.
std::vector<program::StaticMemory> resident_memory(const Strategy& strategy,
                                                   const StateSharding& sharding,
                                                   const HeldParts& held);

/// The same of a stage of a transformer. Its buffers are the placeholders of gradients that the
/// framework keeps, and the last gradient that the stage sent to the stage before it. A pipeline
/// engine holds that gradient until it has the next one
/// (megatron/core/pipeline_parallel/schedules.py: `input_tensor_grad`).
std::vector<program::StaticMemory> resident_memory(const Strategy& strategy, const Model& model,
                                                   const LoweredModel& blocks, std::int64_t stage);

}  // namespace foreshard::lower
