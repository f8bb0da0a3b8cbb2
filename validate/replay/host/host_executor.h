/// \file
/// A rank on CPU cores: BLAS for products, own loops for the rest, messages over MPI. One process
/// is one rank and, bound by its launcher or else by itself, one core.
///
/// **Time.** One thread runs the rank's streams as an event loop (streams.h): a core does one
/// thing at a time, so communication and computation take turns. To a simulator this is a device
/// of one multiprocessor whose collectives hold it. A step begins at one instant for all ranks of
/// a host (mpi_wire.h); across hosts, with the skew of an MPI barrier. The clock is
/// std::chrono::steady_clock (CLOCK_MONOTONIC).
///
/// **Operands** come from rotating regions of ordinary numbers (memory.h), each twice the core's
/// share of the last-level cache (at least 32 MiB, at most 128 MiB, or what the largest kernel
/// needs): every kernel meets cold operands, as in a step whose tensors do not fit the cache, and
/// takes the same time wherever it stands in a step. All memory is touched before the first step,
/// subnormal numbers are flushed, BLAS runs one thread.
///
/// **Communication** sends from and receives into a region of zeros, likewise rotating: adding
/// zeros takes as long as adding anything, and in-place sums do not grow with repeats. `verify`
/// gives each operation buffers of its own.
///
/// **Memory.** The Program's buffers live on a heap of touched pages (program_memory.h). Before
/// anything is touched, the needs of all ranks of the host are compared with what the machine, its
/// control groups and limits leave; what does not fit is named, with its task and bytes.
///
/// **Quiet.** Where Linux groups processes by session (/proc/sys/kernel/sched_autogroup_enabled),
/// each session gets an equal share of a core, whatever `nice` says of its processes: builds at
/// nice 19 in other sessions made a step of 0.49 s take 2.6 s. A session can be favoured as a
/// whole; then steps repeat within 2 % beside the same builds:
///
///     setsid -w sh -c 'echo -20 > /proc/self/autogroup; exec mpirun -n 2 foreshard-replay ...'
///
/// Not modelled: precisions below fp32 in arithmetic (kernels.h); operands that one kernel leaves
/// in the cache for the next; the host thread of a GPU, which launches ahead (`launch_time` is that
/// of this loop itself).
#pragma once

#include <memory>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/executor.h"

namespace foreshard::replay::host {

class MpiWire;

/// Bounds of the regions of operands.
struct RegionBounds {
  Bytes least = 32_MiB;
  Bytes most = 128_MiB;
};

/// With a wire of the caller's; null for kOneRank.
std::unique_ptr<Executor> make_executor_on(std::unique_ptr<MpiWire> wire,
                                           const ExecutorOptions& options,
                                           const RegionBounds& bounds = {});

}  // namespace foreshard::replay::host
