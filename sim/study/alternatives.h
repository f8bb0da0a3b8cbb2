/// \file
/// Alternatives to a strategy that does not fit in memory: its neighbours, each with one knob
/// changed. They are lowered and simulated, not guessed.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

#include "sim/study/run.h"

namespace foreshard::study {

struct Alternative {
  std::string change;  ///< Changed keys of the strategy: "recompute=full".
  Bytes peak;          ///< Peak on the device with the least room.
  Bytes capacity;      ///< Memory of that device.
  /// Part of `capacity` that is kept for other things; see Prediction::memory_reserve.
  Bytes reserve;
  bool fits = false;
  Seconds step;  ///< Zero unless it was simulated.
};

/// Most bytes that a role of `program` holds at once if its tasks run in the order of issue: what a
/// simulation finds, except for the overlap of streams. Cost: O(tasks of the roles).
Bytes peak_in_issue_order(const program::Program& program, const program::Role& role);

/// Memory of the smallest device among those of the role's ranks.
Bytes capacity_of(const program::Program& program, const program::Role& role,
                  const ClusterView& cluster);

/// The neighbours of the study's strategy on the same cluster: more recomputation, a higher ZeRO
/// stage, twice the tensor or pipeline parallelism, half the micro-batch, sequence parallelism, and
/// full recomputation with the highest ZeRO stage. If devices are idle, also neighbours that use
/// more of them: 2, 4, ... times the tensor or pipeline ranks, and as many data-parallel replicas
/// (with sharded state) as there is room for and the batch divides over. Neighbours into which this
/// model cannot be split are left out. Order: first those that fit, by step time; then the others,
/// by peak. Only neighbours that fit in the order of issue are simulated.
std::vector<Alternative> alternatives_to(const LoadedStudy& study, const ClusterView& cluster);

}  // namespace foreshard::study
