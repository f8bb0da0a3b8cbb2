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
/// silu and product, nanotron's sharded cross-entropy (through fp32); the recomputed loss is
/// flash-attention's csrc/xentropy; the choice of experts is Megatron-LM's (core_v0.12.0,
/// megatron/core/transformer/moe: router.py, moe_utils.py, token_dispatcher.py): the weights and
/// the map of the chosen, the loss that balances experts, and the counts of tokens that ranks send
/// each other.
/// Not modelled: that a recomputed loss keeps 16-bit logits in place of fp32 exponentials;
/// LayerNorm and GELU, which are one kernel in PyTorch too, in more than one; what a compiler fuses
/// of an eager operator and what it does not.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/program/ir/kernel.h"

namespace foreshard {

enum class Implementation : std::uint8_t {
  kFused,           ///< One kernel.
  kRecomputedFp32,  ///< One, on a copy in fp32, which the backward pass makes again.
  kRecomputed,      ///< One, whose backward pass works on its input again.
  kEager,           ///< One for each operator of PyTorch.
};

/// What there is of each operator; the same enumerators as above.
enum class NormKernels : std::uint8_t {
  kFused = static_cast<std::uint8_t>(Implementation::kFused),
  kRecomputedFp32 = static_cast<std::uint8_t>(Implementation::kRecomputedFp32),
  kEager = static_cast<std::uint8_t>(Implementation::kEager),
};
enum class LossKernels : std::uint8_t {
  kFused = static_cast<std::uint8_t>(Implementation::kFused),
  kRecomputed = static_cast<std::uint8_t>(Implementation::kRecomputed),
  kEager = static_cast<std::uint8_t>(Implementation::kEager),
};
enum class OtherKernels : std::uint8_t {
  kFused = static_cast<std::uint8_t>(Implementation::kFused),
  kEager = static_cast<std::uint8_t>(Implementation::kEager),
};
template <class E>
Implementation implementation_of(E kernels) {
  return static_cast<Implementation>(kernels);
}

/// How the pointwise operators of a transformer are implemented.
struct Pointwise {
  NormKernels norm = NormKernels::kFused;
  OtherKernels rope = OtherKernels::kFused;
  OtherKernels activation = OtherKernels::kFused;
  LossKernels cross_entropy = LossKernels::kFused;
  OtherKernels routing = OtherKernels::kFused;  ///< The choice of experts, from scores to counts.
  OtherKernels permutation =
      OtherKernels::kFused;  ///< Of tokens to the order of experts, and back.
  OtherKernels expert_bias = OtherKernels::kFused;  ///< Of what experts give; else by the product.
  OtherKernels clamp = OtherKernels::kFused;        ///< Of what a SwiGLU reads.
  bool operator==(const Pointwise&) const = default;
};

/// The kernels of an operator that is `pass` where it is fused, in order. Operators that the
/// implementation does not change stay one kernel.
std::vector<Kernel> kernels_of(const Pass& pass, Implementation how);

}  // namespace foreshard
