/// \file
/// What a rank of a pipeline stage holds during the whole step.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// The parameters that one rank of `stage` holds, before data-parallel ranks share them (ZeRO): the
/// groups of all its blocks. Several groups can have the same axes.
std::vector<plan::ParameterGroup> groups_of_stage(const Strategy& strategy, const Model& model,
                                                  const LoweredModel& blocks, std::int64_t stage);

/// Whether the block reads the embedding's table and an earlier block of its stage holds the table.
bool reads_copy_of_table(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                         const LoweredBlock& block);

/// Parameters, gradients and optimizer state as the strategy shares them, and buffers: the
/// framework's workspace, the placeholders of gradients that it keeps, and the last gradient that
/// the stage sent to the stage before it. A pipeline engine holds that gradient until it has the
/// next one (megatron/core/pipeline_parallel/schedules.py: `input_tensor_grad`).
std::vector<program::StaticMemory> resident_memory(const Strategy& strategy, const Model& model,
                                                   const LoweredModel& blocks, std::int64_t stage);

}  // namespace foreshard::lower
