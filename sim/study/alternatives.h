/// \file
/// What else could be done with a strategy that does not fit in memory: neighbours of it, each with
/// one knob changed, which were lowered and simulated, not guessed.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

#include "sim/study/run.h"

namespace foreshard::study {

struct Alternative {
  std::string change;  ///< Keys of the strategy: "recompute=full".
  Bytes peak;          ///< Of the device with the least room.
  Bytes capacity;      ///< Of that device,
  Bytes reserve;       ///< less what is kept of it: as Prediction::memory_reserve.
  bool fits = false;
  Seconds step;  ///< Zero unless it fits.
};

/// Most bytes that a role of `program` holds at once if its tasks run in the order of issue: the
/// memory that a simulation finds, except for the overlap of streams. Cost: O(tasks of the roles).
Bytes peak_in_issue_order(const program::Program& program, const program::Role& role);

/// The neighbours of the study's strategy on the same cluster: more recomputation, a higher ZeRO
/// stage, twice the tensor or pipeline parallelism, half the micro-batch, sequence parallelism, and
/// full recomputation with the highest ZeRO stage; and, where devices that work are idle, more of
/// them: 2, 4, ... times the tensor or pipeline ranks, and as many replicas as there is room for
/// and the batch divides over, which share their state. Those that this model cannot be split into
/// are left out. In order: those that fit by step time, then the others by peak. Only those that
/// fit in the order of issue are simulated.
std::vector<Alternative> alternatives_to(const LoadedStudy& study, const ClusterView& cluster);

}  // namespace foreshard::study
