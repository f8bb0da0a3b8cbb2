/// \file
/// Checks of the results of the GPU's kernels, on small arrays: passes against the host's loops,
/// which share their mathematics; products and attention against plain loops in double precision.
/// They run under ctest's label `gpu`, with emulation.h where there is no GPU, and by
/// `foreshard-gpu-check` on machines without a test framework.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

struct Check {
  std::string name{};
  /// \return the fault, or nothing.
  std::function<std::optional<std::string>()> run{};
};

/// Describes where the kernel of `pass` and the host differ by more than rounding, on random
/// inputs; nothing if they agree.
std::optional<std::string> disagreement(const Pass& pass, std::uint64_t seed);

/// Checks of every kind of pass, in fp32 and the tensor cores' floating-point dtypes, with even and
/// odd shapes.
std::vector<Check> pass_checks();
/// Checks of attention in both directions: masks, shared heads, incomplete tiles, both sizes of
/// heads.
std::vector<Check> attention_checks();
/// Checks of cuBLASLt's products: every dtype, batched, accumulating. They need that library.
std::vector<Check> gemm_checks();

/// Computes attention in place, by plain loops. `operands` are in the order of operands_of; unused
/// scratch operands keep their values.
void compute(const Attention& attention, std::vector<std::vector<double>>& operands);

}  // namespace foreshard::replay::gpu
