/// \file
/// A strategy's pipeline, as its schedule defines it.
#pragma once

#include "base/result.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/schedule/schedule.h"

namespace foreshard {

/// The passes of every stage. With a granularity, a slot has the number of the first micro-batch
/// that it takes.
/// \return as schedule::table_of
Result<schedule::Table> table_of(const Strategy& strategy);

/// The placement of the model's pieces on stages (schedule::piece_of).
schedule::StagePlacement placement_of(const Strategy& strategy);

/// Whether some backward pass runs in two parts (input and weight gradients).
bool splits_backward(const Strategy& strategy);

/// Whether passes wait for sends between stages: as the framework does, where the schedule may
/// block. Stages with a granularity are decoupled: their transfers wait in buffers beside the
/// passes.
bool transfers_block(const Strategy& strategy);

/// Whether hosts wait until a stage has received its next pass's input: as the framework does where
/// its transfers are not overlapped. No host waits within a CUDA graph of the whole step, nor for
/// stages with a granularity, which could then deadlock.
bool hosts_wait_for_transfers(const Strategy& strategy);

/// The stage with the last piece of the model and the output projection.
inline std::int64_t last_stage(const Strategy& strategy) {
  return schedule::stage_of(placement_of(strategy), strategy.pipeline_parallel,
                            strategy.stages() - 1);
}

/// Calls `visit(chunk, piece)` for each piece that the stage holds.
template <class Visit>
void for_each_piece(const Strategy& strategy, std::int64_t stage, Visit visit) {
  const schedule::StagePlacement placement = placement_of(strategy);
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    visit(chunk, schedule::piece_of(placement, strategy.pipeline_parallel, stage, chunk));
}

}  // namespace foreshard
