/// \file
/// The arrays that a kernel reads and writes, in the order in which its launcher takes them.
///
/// Passes: pass/operands.h.
/// Attention forward: q, k, v, o out, logarithms of the row sums out; backward: q, k, v, o, do,
/// logarithms, sums of do o (out), dq (fp32, out), dq out, dk out, dv out.
/// Gemm: a, b, d out (+= with accumulate).
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

std::vector<Operand> operands_of(const Kernel& kernel);

}  // namespace foreshard::replay::gpu
