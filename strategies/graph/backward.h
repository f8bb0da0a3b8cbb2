/// \file
/// The backward graph of a forward graph: data gradients and weight gradients as operators of their
/// own, each with its own rule, so that the same propagation finds their communication.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "strategies/graph/sharding.h"

namespace foreshard {

struct BackwardOptions {
  /// Weight gradients are added to an fp32 buffer by the matmul itself; else by a pass of its own.
  bool fused_accumulation = true;
  /// Of the buffer that a pass of its own adds to.
  DType accumulator = DType::kFp32;
  /// Where it differs from the gradient's dtype: a cast before the addition, not one pass for both.
  bool casts = false;
  /// Whether something before the graph is trained: gradients of its inputs are wanted.
  bool trained_before = true;
};

/// By tensor of the forward graph: its gradient.
struct GradientsOfEnds {
  std::map<TensorId, TensorId> outputs{};
  std::map<TensorId, TensorId> inputs{};
};

/// Tensor ids of the forward graph stay valid: its tensors come first, pinned as the forward graph
/// leaves them. `inputs` are the gradients of the forward outputs (none of a loss), `outputs` those
/// of the forward inputs (none of token ids).
///
/// Where a parameter is frozen, or nothing before the graph is trained, there are no gradients but
/// those through which one reaches a parameter that is trained.
///
/// An operator's data gradient precedes its weight gradient, so that reducing the first over the
/// tensor-parallel ranks can overlap the second.
/// Not modelled: summing the key and value gradients of grouped heads where attention is unfused.
/// \param ends  if not null, receives the gradients that `inputs` and `outputs` are.
Graph backward_graph(const ShardedGraph& forward, const BackwardOptions& options,
                     GradientsOfEnds* ends = nullptr);

/// The forward graph and its backward in one, no tensor pinned but those that the forward graph
/// pins: for distribute() (distribute.h) to propagate through both at once. Its inputs are those of
/// the forward graph, then gradients of the outputs (none of integers); its outputs likewise.
Graph training_graph(const Graph& forward, const BackwardOptions& options);

/// The activations that something which is trained goes into: a parameter, or one of `inputs`
/// (which are among them).
std::set<TensorId> trained(const Graph& graph, const std::vector<TensorId>& inputs = {});

/// Leaves out operators whose results nobody reads: no output of the graph, no gradient of a
/// parameter and no update of one follows from them.
void prune(Graph& graph);

/// Forward tensors that the backward graph reads and that therefore stay in memory between the two:
/// views counted as what they view, parameters left out.
std::vector<TensorId> saved_tensors(const Graph& forward, const Graph& backward);

/// The operators of a backward graph from which no gradient of an input can be reached, by index:
/// they compute gradients of weights alone, and nobody waits for them before the end of the step.
std::vector<bool> weight_gradient_operators(const Graph& backward);

/// Whether a backward pass can run in two parts: some of its operators compute gradients of weights
/// alone, and others do not.
/// Not modelled: parts of passes with loops or conditions, which run whole.
bool can_split(const Graph& backward);

/// Of every tensor, the one whose bytes it really is (views followed to their source).
std::vector<TensorId> storages_of(const Graph& graph);

}  // namespace foreshard
