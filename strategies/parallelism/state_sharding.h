/// \file
/// How parameters, gradients and optimizer state lie over the ranks that hold copies of them, and
/// when they move. Data parallelism, ZeRO 1 to 3 and FSDP are values of one struct, which lowering,
/// search and memory read; nothing else reads `zero_stage` to run a step.
///
///     DDP       reduce kLastMicroBatch or kEndOfStep, all else as it begins
///     ZeRO 1    the optimizer cut; gather kStartOfStep or kEndOfStep
///     ZeRO 2    gradients cut too; reduce kEveryMicroBatch
///     ZeRO 3    parameters cut too; gather kBeforeUse
///
/// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models", SC 2020; Zhao et al., "PyTorch FSDP", VLDB 2023.
#pragma once

#include <cstdint>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

struct StateSharding {
  enum class Gather : std::uint8_t {
    kNever,
    kStartOfStep,  ///< Beside the first forward pass, what the step before has updated.
    kBeforeUse,    ///< Whole for each pass alone.
    kEndOfStep,    ///< Behind the optimizer.
  };
  enum class Reduce : std::uint8_t {
    kNever,            ///< No rank holds a copy, or nothing is trained.
    kEveryMicroBatch,  ///< Ranks hold but a part of the gradients.
    kLastMicroBatch,   ///< Unit by unit beside its backward pass.
    kEndOfStep,        ///< In one go.
  };
  bool cuts_parameters = false;
  bool cuts_gradients = false;
  bool cuts_optimizer = false;
  Gather gather = Gather::kNever;
  Reduce reduce = Reduce::kNever;
};

/// With leaves_experts_whole() the only function that reads `zero_stage`, `gradient_reduction` and
/// `overlap_parameter_gather`.
/// \param copies  ranks that hold a copy of the parameters: the data-parallel ones, and in a
///     general graph those along its other axes too.
StateSharding state_sharding(const Strategy& strategy, std::int64_t copies);
/// Of a transformer: the data-parallel and context-parallel ranks hold the copies, and of experts
/// tensor-parallel ones, too.
StateSharding state_sharding(const Strategy& strategy);

/// Whether ZeRO 3 leaves experts uncut that have ranks of their own (Shards::experts), however many
/// ranks hold copies of them.
bool leaves_experts_whole(const Strategy& strategy);

}  // namespace foreshard
