/// \file
/// The arrays on a GPU that a kernel reads and writes, in the order in which its launcher takes
/// them. The executor (gpu_executor.h) allocates them before it launches the kernel; the self-tests
/// (checks.cc, check_gemm.cc) fill and compare them.
///
/// Gemm: a, b, d out (+= with accumulate).
/// Attention forward: q, k, v, o out, logarithms of the row sums out; backward: q, k, v, o, do,
/// logarithms, sums of do o (out), dq (fp32, out), dq out, dk out, dv out.
/// Pass (a memory-bound kernel): pass/operands.h.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/pass/operands.h"

namespace foreshard::replay::gpu {

struct Operand {
  std::size_t bytes = 0;
  Access access = Access::kRead;
};

/// An extent of 0 gives arrays of 0 bytes. There is no error here: GpuExecutor refuses kernels that
/// it cannot launch.
std::vector<Operand> operands_of(const Kernel& kernel);

}  // namespace foreshard::replay::gpu
