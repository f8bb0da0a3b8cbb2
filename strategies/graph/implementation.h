/// \file
/// Into which kernels a pointwise operator of a transformer goes. A fused operator is one kernel
/// (strategies/program/ir/kernel.h has its traffic); frameworks that leave it to PyTorch's
/// operators launch one for each of them, and each reads and writes memory again:
///
///     root mean square norm, bf16, bytes an element       fused   eager
///     forward                                                 4      36
///     backward                                                6      84
///
/// Source: the operators that the Python code of each names, one pass each as PyTorch's ATen runs
/// them: torchtitan's and Transformers' RMSNorm and rotary embedding (through fp32), a SwiGLU of
/// silu and product, nanotron's sharded cross-entropy (through fp32).
/// Not modelled: LayerNorm and GELU, which are one kernel in PyTorch too, in more than one; what
/// a compiler fuses of an eager operator and what it does not.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/program/ir/kernel.h"

namespace foreshard {

enum class Implementation : std::uint8_t {
  kFused,           ///< One kernel.
  kRecomputedFp32,  ///< One, on a copy in fp32, which the backward pass makes again.
  kEager,           ///< One for each operator of PyTorch.
};

/// How the pointwise operators of a transformer are implemented.
struct Pointwise {
  Implementation norm = Implementation::kFused;
  Implementation rope = Implementation::kFused;
  Implementation activation = Implementation::kFused;
  Implementation cross_entropy = Implementation::kFused;
  bool operator==(const Pointwise&) const = default;
};

/// The kernels of an operator that is `pass` where it is fused, in order. Operators that the
/// implementation does not change stay one kernel.
std::vector<Kernel> kernels_of(const Pass& pass, Implementation how);

}  // namespace foreshard
