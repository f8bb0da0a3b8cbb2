/// \file
/// What the schedule of a strategy says of its pipeline.
#pragma once

#include "base/result.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/schedule/schedule.h"

namespace foreshard {

/// The passes of every stage; of one with a granularity, slots have the numbers of the first
/// micro-batches that they take.
/// \return as schedule::table_of.
Result<schedule::Table> table_of(const Strategy& strategy);

/// Which pieces of the model the stages hold (schedule::piece_of).
schedule::Placement placement_of(const Strategy& strategy);

/// Whether some backward pass runs in two parts.
bool splits_backward(const Strategy& strategy);

/// Whether passes wait for sends between stages: the framework's habit, where the schedule may
/// block. Stages with a granularity are decoupled: their transfers lie ready beside the passes.
bool transfers_block(const Strategy& strategy);

/// Whether hosts wait until a stage has received what its next pass needs: the framework's habit
/// where its transfers are not overlapped. No host waits within a CUDA graph of the whole step, nor
/// for stages with a granularity, which could then wait for each other for ever.
bool hosts_wait_for_transfers(const Strategy& strategy);

/// The stage with the last piece of the model, and the output projection.
inline std::int64_t last_stage(const Strategy& strategy) {
  return schedule::stage_of(placement_of(strategy), strategy.pipeline_parallel,
                            strategy.stages() - 1);
}

/// Calls `visit(chunk, piece)` for each piece that the stage holds.
template <class Visit>
void for_each_piece(const Strategy& strategy, std::int64_t stage, Visit visit) {
  const schedule::Placement placement = placement_of(strategy);
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    visit(chunk, schedule::piece_of(placement, strategy.pipeline_parallel, stage, chunk));
}

}  // namespace foreshard
