/// \file
/// How much memory a simulation will take, before anything is expanded.
///
///     task instances of one rank of each class x 256 B (320 B with a time line)
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
  double tasks = 0;     ///< Instances of all classes.
  double messages = 0;  ///< Of stepwise collectives; 0 if they are flat.
  Bytes bytes;
};

/// Cost: O(classes x calls); stepwise also O(members of communicators).
MemoryEstimate estimate_memory(const ClusterView& cluster, const program::Program& program,
                               const Communicators& communicators, const Folding& folding,
                               const SimulateOptions& options);

/// \return kInvalidInput, with what could be done, if the estimate exceeds options.max_memory.
Status beyond_memory(const ClusterView& cluster, const program::Program& program,
                     const Communicators& communicators, const Folding& folding,
                     const SimulateOptions& options);

/// What the machine has free: MemAvailable of /proc/meminfo. Nothing where that is unknown.
std::optional<Bytes> free_memory();

}  // namespace foreshard::sim
