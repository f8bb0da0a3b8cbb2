/// \file
/// Attention whose keys go round a ring of ranks: kernels and transfers take turns.
///
/// By the sharding rules, attention needs two conversions: one brings it the keys of all ranks, the
/// other sums the gradients of these keys and brings them back. A ring moves the same data rank by
/// rank, so the operator carries out both conversions itself. With p ranks (T: a transfer to the
/// next rank; A: attention to the keys that have arrived; S: a sum of gradients, of which the first
/// is a copy; C: a copy of the keys to the buffer that they are sent from; <: waits for):
///
///     forward   T1 keys                    A0 own tokens (causal)
///               T2 keys          < T1      A1 < T1
///               ...                        A(p-1) < T(p-1), then results are merged
///     backward  T0 keys          < C       A0                             S0 < T0
///               T1 keys, sum     < S0      A1 < T0                        S1 < T1
///               T2 keys, sum     < S1      A2 < T1                        S2 < T2
///               T(p-1) sum       < S(p-2)  A(p-1) < T(p-2), own tokens    S(p-1) < T(p-1)
///
/// A transfer is complete when the next step begins, so a step takes as long as its kernels or its
/// transfer, whichever takes longer. Keys and sums are sent p-1 times each, in one transfer where
/// they go together.
/// Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/attention/dot_product_attention/
/// context_parallel.py (AttnFuncWithCPAndKVP2P).
/// Not modelled: with fp8 attention, that sums go by one all-to-all at the end.
#pragma once

#include <optional>
#include <vector>

#include "strategies/graph/distribute.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// The data that an operator's ring carries, for one rank.
struct Ring {
  std::vector<Axis> axes{};  ///< Axes along which the ring goes. Ascending.
  std::int32_t keys = -1;    ///< Conversion that brings keys and values to all ranks.
  std::optional<std::int32_t> gradients{};  ///< Conversion of their gradients; backward only.
  Bytes key_bytes{};
  Bytes gradient_bytes{};
};

/// \return nothing if operator `op` has no ring (its setting), or if a ring cannot carry its
///     conversions: another reader needs all keys, too, or they have another layout.
std::optional<Ring> ring_of(const ShardedGraph& sharded, std::size_t op);

/// Appends the operator's kernels and their transfers to `block`. The first kernel waits for
/// `before_kernels`, the first transfer for `before_transfers` (if that is empty, the transfer runs
/// on the compute stream).
/// \return the index of the last kernel.
std::int32_t append_ring(program::Block& block, const ShardedGraph& sharded, std::size_t op,
                         const Ring& ring, const std::vector<Kernel>& kernels,
                         std::vector<std::int32_t> before_kernels,
                         std::vector<std::int32_t> before_transfers);

}  // namespace foreshard::lower
