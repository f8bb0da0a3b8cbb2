/// \file
/// Estimates how much memory of the machine that simulates (not of the simulated devices) a
/// simulation will take, before anything is expanded. simulate() and sensitivity.cc refuse what
/// exceeds --max-memory.
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
  std::int64_t classes = 0;  ///< Classes of equal devices; one representative each is simulated.
  double tasks = 0;          ///< Task instances of all classes.
  double messages = 0;       ///< Messages of stepwise collectives; 0 if collectives are flat.
  Bytes bytes;
};

/// Cost: O(classes x calls); for stepwise collectives also O(members of communicators).
MemoryEstimate estimate_memory(const ClusterView& cluster, const program::Program& program,
                               const Communicators& communicators, const Folding& folding,
                               const SimulateOptions& options);

/// \return OK if the estimate is within options.max_memory (infinite unless it is set: nothing is
///     refused); else kInvalidInput, with remedies.
Status check_memory(const ClusterView& cluster, const program::Program& program,
                    const Communicators& communicators, const Folding& folding,
                    const SimulateOptions& options);

/// Free memory of this machine: MemAvailable of /proc/meminfo, the default of --max-memory.
/// Nothing if the file or the line is missing.
std::optional<Bytes> free_memory();

}  // namespace foreshard::sim
