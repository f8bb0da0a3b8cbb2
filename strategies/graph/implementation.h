/// \file
/// How many kernels a pointwise operator of a transformer is. A fused operator is one kernel
/// (strategies/program/ir/kernel.h has its traffic). Frameworks that compose it of PyTorch's
/// operators launch one kernel for each of them, and each reads and writes memory again:
///
///     root mean square norm, bf16, bytes an element       fused   eager
///     forward                                                 4      36
///     backward                                                6      84
///
/// Source: the PyTorch operators that each Python implementation calls, one pass each as ATen runs
/// them: RMSNorm and rotary embedding (through fp32) of torchtitan and Transformers; a SwiGLU of
/// silu and product; nanotron's sharded cross-entropy (through fp32). The recomputed loss is
/// flash-attention's csrc/xentropy, and what torch.compile makes of a cross-entropy on logits in 16
/// bits: only these and two numbers a token are saved. The loss by log-softmax is
/// aten/src/ATen/native/LossNLL.cpp (log_softmax, then nll_loss). The choice of experts is
/// Megatron-LM's (core_v0.12.0, megatron/core/transformer/moe: router.py, moe_utils.py,
/// token_dispatcher.py): weights and map of the chosen experts, the loss that balances experts, and
/// the counts of tokens that ranks send each other. Memory between and beside these kernels:
/// strategies/program/lower/eager.h. Not modelled: LayerNorm and GELU in more than one kernel (they
/// are one kernel in PyTorch, too); which parts of an eager operator a compiler fuses.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/names.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard {

enum class Implementation : std::uint8_t {
  kFused,           ///< One kernel.
  kRecomputedFp32,  ///< One kernel, on an fp32 copy, which the backward pass makes again.
  kRecomputed,      ///< One kernel, whose backward pass reads the input again.
  kEager,           ///< One kernel for each of PyTorch's operators.
  kAutocast,        ///< One kernel in fp32, and a cast of its result (PyTorch's autocast).
  kLogSoftmax,      ///< Those of PyTorch's cross_entropy on logits.float().
};

/// The implementations that exist for each operator; enumerators as above.
enum class NormKernels : std::uint8_t {
  kFused = static_cast<std::uint8_t>(Implementation::kFused),
  kRecomputedFp32 = static_cast<std::uint8_t>(Implementation::kRecomputedFp32),
  kEager = static_cast<std::uint8_t>(Implementation::kEager),
  kAutocast = static_cast<std::uint8_t>(Implementation::kAutocast),
};
enum class LossKernels : std::uint8_t {
  kFused = static_cast<std::uint8_t>(Implementation::kFused),
  kRecomputed = static_cast<std::uint8_t>(Implementation::kRecomputed),
  kEager = static_cast<std::uint8_t>(Implementation::kEager),
  kLogSoftmax = static_cast<std::uint8_t>(Implementation::kLogSoftmax),
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
  /// Choice of experts: from scores to counts of tokens.
  OtherKernels routing = OtherKernels::kFused;
  /// Permutation of tokens to the order of experts, and back.
  OtherKernels permutation = OtherKernels::kFused;
  /// Bias on the experts' results. kFused: the product adds it.
  OtherKernels expert_bias = OtherKernels::kFused;
  OtherKernels clamp = OtherKernels::kFused;  ///< Clamp on the inputs of a SwiGLU.
  bool operator==(const Pointwise&) const = default;
};

/// The kernels, in order, of an operator whose fused form is `pass`. An operator for which `how`
/// makes no difference stays one kernel.
std::vector<Kernel> kernels_of(const Pass& pass, Implementation how);

/// How context-parallel ranks, each of which holds a part of the same sequences, let their queries
/// attend to the keys of all tokens.
enum class ContextExchange : std::uint8_t {
  kAllGather,  ///< Keys and values of all tokens are gathered before attention.
  /// Keys and values are gathered while queries attend to the keys of their own rank. One kernel
  /// for the tokens of each other rank follows, and the results are merged.
  kOverlappedAllGather,
  /// Keys and values go round a ring: the attention of each step overlaps the transfer of the next
  /// step's keys.
  kRing,
  kAllToAll,  ///< Ranks exchange tokens for heads: each has all tokens of some heads.
};

const yaml::Names<ContextExchange>& yaml_names(const ContextExchange*);

}  // namespace foreshard
