/// \file
/// The backward graph of a forward graph: data gradients and weight gradients as operators of their
/// own, each with its own sharding equation, so that the same propagation finds their
/// communication.
#pragma once

#include "strategies/graph/sharding.h"

namespace foreshard {

struct BackwardOptions {
  /// Weight gradients are added to an fp32 buffer by the matmul itself; else by a pass of its own.
  bool fused_accumulation = true;
};

/// Tensor ids of the forward graph stay valid: its tensors come first, pinned as the forward graph
/// leaves them. `inputs` are the gradients of the forward outputs (none of a loss), `outputs` those
/// of the forward inputs (none of token ids).
///
/// An operator's data gradient precedes its weight gradient, so that reducing the first over the
/// tensor-parallel ranks can overlap the second.
/// Not modelled: summing the key and value gradients of grouped heads where attention is unfused.
Graph backward_graph(const ShardedGraph& forward, const BackwardOptions& options);

/// Forward tensors that the backward graph reads and that therefore stay in memory between the two:
/// views counted as what they view, parameters left out.
std::vector<TensorId> saved_tensors(const Graph& forward, const Graph& backward);

/// The tensor whose bytes `id` really is (views followed to their source).
TensorId storage_of(const Graph& graph, TensorId id);

}  // namespace foreshard
