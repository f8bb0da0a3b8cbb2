/// \file
/// Memory that an operator takes beside its operands and results where a framework composes it of
/// PyTorch's operators (Pointwise). Autograd saves what these read in between, until the backward
/// pass of the operator:
///
///     bytes an element of a result in 16 bits            kept   work   work of the gradient
///     RMS norm: x in fp32, in place of x itself, and the   4      4      12
///       result before its scale; backward, three
///       gradients in fp32
///     norm under autocast: x, which is in fp32; the        2      4       8
///       result before it is cast
///     the same of heads: a copy of x in fp32               4      4       8
///     SwiGLU: silu(gate); backward, its gradient           2      0       2
///     rotary embedding: x and the product in fp32          0      8       8
///     loss (log-softmax): logits in fp32; backward,        0      4       6
///       gradients of the target's logarithm and of the
///       logits, both in fp32
///
/// Source: the derivatives of pow, mul, silu, to and log_softmax in pytorch/pytorch
/// (tools/autograd/derivatives.yaml), applied to the modules of implementation.h;
/// aten/src/ATen/native/LossNLL.cpp (cross_entropy_loss: log_softmax, then nll_loss).
/// Not modelled: an eager loss on a vocabulary that is split, which works in place; a scale that is
/// frozen, for which the result before it is not saved; choice and permutation of experts.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/units.h"

#include "strategies/graph/distribute.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

struct BesideOperands {
  Bytes kept;  ///< From the forward pass of the operator to its backward pass.
  Bytes work;  ///< While the operator runs.
};
BesideOperands beside_operands(const ShardedGraph& sharded, std::size_t op);

/// Operator of `forward` -> bytes kept beside its operands for its backward pass. Operators that
/// are recomputed keep nothing before that pass.
std::map<std::string, Bytes> kept_beside(const ShardedGraph& forward, const Graph& backward,
                                         const Recomputation& recomputation);

}  // namespace foreshard::lower
