/// \file
/// How parameters, gradients and optimizer states are sharded over the ranks that hold copies of
/// them, and when they move. Data parallelism, ZeRO 1 to 3 and FSDP are values of one struct, which
/// lowering, search and memory read; nothing else reads `zero_stage` to run a step.
///
///     DDP       reduce kLastMicroBatch or kEndOfStep, all else default
///     ZeRO 1    optimizer states sharded; gather kStartOfStep or kEndOfStep
///     ZeRO 2    gradients sharded too; reduce kEveryMicroBatch
///     ZeRO 3    parameters sharded too; gather kBeforeUse
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
    /// Parameters that the previous step updated, overlapped with the first forward pass.
    kStartOfStep,
    kBeforeUse,  ///< Gathered for each pass and released after it.
    kEndOfStep,  ///< Gathered after the optimizer's step.
  };
  enum class Reduce : std::uint8_t {
    kNever,            ///< No other rank holds a copy, or nothing is trained.
    kEveryMicroBatch,  ///< Ranks hold only their shard of the gradients.
    kLastMicroBatch,   ///< Unit by unit, overlapped with the last micro-batch's backward pass.
    kEndOfStep,        ///< All at once.
  };
  bool cuts_parameters = false;
  bool cuts_gradients = false;
  bool cuts_optimizer = false;
  Gather gather = Gather::kNever;
  Reduce reduce = Reduce::kNever;
};

/// To run a step, only this function, holds_fp32() and leaves_experts_whole() read
/// `zero_stage`, `gradient_reduction` and `overlap_parameter_gather`.
/// \param copies  ranks that hold a copy of the parameters: the data-parallel ranks; in a general
///     graph also the ranks along its other axes.
StateSharding state_sharding(const Strategy& strategy, std::int64_t copies);
/// State sharding of a transformer: the data-parallel and context-parallel ranks hold copies, and
/// tensor-parallel ranks may hold copies of experts, too.
StateSharding state_sharding(const Strategy& strategy);

/// Whether ranks hold parameters in fp32: as shards (Shards::fp32), on one rank, too, or for
/// autocast (Shards::gathered_fp32), which makes copies in 16 bits.
bool holds_fp32(const Strategy& strategy);

/// Whether ZeRO 3 leaves experts that have ranks of their own unsharded (Shards::experts), whatever
/// the number of ranks that hold copies of them.
bool leaves_experts_whole(const Strategy& strategy);

}  // namespace foreshard
