/// \file
/// Estimates the memory of a simulation before anything is expanded.
///
///     task instances of one rank of each class x 256 B (320 B with a timeline)
///     + messages of stepwise collectives x 512 B
///
/// Source of the bytes: peak memory of bench/scale_bench.cc from 16 to 6,288 classes, rounded up.
#pragma once

#include <optional>

#include "base/result.h"

#include "sim/simulate/fold.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

struct MemoryEstimate {
  std::int64_t classes = 0;
  double tasks = 0;     ///< Task instances of all classes.
  double messages = 0;  ///< Messages of stepwise collectives; 0 if collectives are flat.
  Bytes bytes;
};

/// Cost: O(classes x calls); for stepwise collectives also O(members of communicators).
MemoryEstimate estimate_memory(const ClusterView& cluster, const program::Program& program,
                               const Communicators& communicators, const Folding& folding,
                               const SimulateOptions& options);

/// \return kInvalidInput, with a remedy, if the estimate exceeds options.max_memory.
Status beyond_memory(const ClusterView& cluster, const program::Program& program,
                     const Communicators& communicators, const Folding& folding,
                     const SimulateOptions& options);

/// Free memory of this machine: MemAvailable of /proc/meminfo. Nothing if it is unknown.
std::optional<Bytes> free_memory();

}  // namespace foreshard::sim
