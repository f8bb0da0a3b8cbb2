/// \file
/// Checks that the GPU's kernels compute what they are named after, on small arrays: passes against
/// the host's loops, which share their mathematics, products and attention against plain loops in
/// double precision. They run under ctest's label `gpu`, under emulation.h where
/// there is no GPU, and by `foreshard-gpu-check` on machines that have no test framework.
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
  /// What is wrong, or nothing.
  std::function<std::optional<std::string>()> run{};
};

/// Where the kernel of `pass` and the host differ by more than rounding, on random inputs; or
/// nothing.
std::optional<std::string> disagreement(const Pass& pass, std::uint64_t seed);

/// All passes: every kind, in dtypes that the tensor cores know and fp32, even and odd shapes.
std::vector<Check> pass_checks();
/// Attention in both directions: masks, shared heads, incomplete tiles, both sizes of heads.
std::vector<Check> attention_checks();
/// Products of cuBLASLt, every dtype, batched, accumulating. Only where that library is.
std::vector<Check> gemm_checks();

/// What attention computes, in place: `operands` as operands_of orders them, element by element.
/// Unused scratch operands stay as they are.
void compute(const Attention& attention, std::vector<std::vector<double>>& operands);

}  // namespace foreshard::replay::gpu
