/// \file
/// Runs a rank on CPU cores: BLAS for matrix products, own loops for everything else, messages over
/// MPI. Each process is one rank and uses one core, bound by its launcher or else by itself.
///
/// **Time.** One thread runs the rank's streams as an event loop (streams.h): a core does one thing
/// at a time, so communication and computation take turns. For the simulator this is a device with
/// one multiprocessor, which collectives occupy. A step begins at the same instant on all ranks of
/// a host (mpi_wire.h), and across hosts with the skew of an MPI barrier. The clock is
/// std::chrono::steady_clock (CLOCK_MONOTONIC).
///
/// **Operands** come from two rotating regions (memory.h): inputs from a region of ordinary
/// numbers, results go to a region that begins as zeros. Each region is twice the core's share of
/// the last-level cache (at least 32 MiB, at most 128 MiB, or what the largest kernel needs). Every
/// kernel thus finds cold operands, as in a step whose tensors do not fit into the cache, and takes
/// the same time wherever it is in a step. All memory is touched before the first step, subnormal
/// numbers are flushed to zero, and BLAS uses one thread.
///
/// **Communication** uses a rotating region of zeros for sending and receiving: adding zeros takes
/// as long as adding other numbers, and in-place sums do not grow with repeats. `verify` gives each
/// operation its own buffers.
///
/// **Memory.** The Program's buffers are on a heap of touched pages (memory.h). Before any
/// memory is touched, the needs of all ranks of the host are compared with what the machine, its
/// control groups and its limits leave. The error names what does not fit, with its task and bytes.
///
/// **Noise.** Where Linux groups processes by session (/proc/sys/kernel/sched_autogroup_enabled),
/// each session gets an equal share of a core, whatever the `nice` values of its processes are:
/// builds at nice 19 in other sessions made a step of 0.49 s take 2.6 s. A session can be favoured
/// as a whole; then steps repeat within 2 % in spite of the same builds:
///
///     setsid -w sh -c 'echo -20 > /proc/self/autogroup; exec mpirun -n 2 foreshard-replay ...'
///
/// Not modelled: arithmetic in precisions below fp32 (kernels.h); operands that one kernel leaves
/// in the cache for the next; the host thread of a GPU, which launches ahead (here `launch_time` is
/// the launch time of this loop).
#pragma once

#include <memory>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/executor.h"

namespace foreshard::replay::host {

class MpiWire;

/// Bounds of the size of a region of operands.
struct RegionBounds {
  Bytes least = 32_MiB;
  Bytes most = 128_MiB;
};

/// Makes a host executor.
/// \param wire  connects the ranks; null for kOneRank.
std::unique_ptr<Executor> make_executor_on(std::unique_ptr<MpiWire> wire,
                                           const ExecutorOptions& options,
                                           const RegionBounds& bounds = {});

}  // namespace foreshard::replay::host
