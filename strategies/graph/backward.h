/// \file
/// The backward graph of a forward graph. Data gradients and weight gradients are separate
/// operators, each with its own rule, so that the same propagation finds their communication.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "strategies/graph/distribute.h"

namespace foreshard {

struct BackwardOptions {
  /// The matmul itself adds weight gradients to an fp32 buffer; else a separate pass adds them.
  bool fused_accumulation = true;
  /// Type of the buffer that the separate pass adds to.
  DType accumulator = DType::kFp32;
  /// If `accumulator` differs from the gradient's dtype: cast first, then add; else one pass does
  /// both.
  bool casts = false;
  /// Whether something that precedes the graph is trained, so that gradients of its inputs are
  /// needed.
  bool trained_before = true;
};

/// Gradients at the ends of a graph: tensor of the forward graph -> its gradient.
struct GradientsOfEnds {
  std::map<TensorId, TensorId> outputs{};
  std::map<TensorId, TensorId> inputs{};
};

/// Makes the backward graph. Tensor ids of the forward graph stay valid in it: its tensors come
/// first, pinned as the forward graph leaves them. `inputs` are the gradients of the forward
/// outputs (a loss has none), `outputs` the gradients of the forward inputs (token ids have none).
///
/// If a parameter is frozen, or nothing before the graph is trained, only those gradients are
/// computed through which a trained parameter is reached.
///
/// An operator's data gradient precedes its weight gradient, so that the reduction of the data
/// gradient over the tensor-parallel ranks can overlap the weight gradient.
/// Not modelled: summing the key and value gradients of grouped heads where attention is unfused.
/// \param ends  if not null, receives the gradients at the inputs and outputs.
Graph backward_graph(const ShardedGraph& forward, const BackwardOptions& options,
                     GradientsOfEnds* ends = nullptr);

/// The forward graph and its backward graph in one. Only tensors that the forward graph pins are
/// pinned, so that distribute() (distribute.h) propagates through both at once. Its inputs are the
/// inputs of the forward graph, then the gradients of its outputs (integers have none); its outputs
/// are the outputs of the forward graph, then the gradients of its inputs.
Graph training_graph(const Graph& forward, const BackwardOptions& options);

/// The activations that depend on something trained: on a trained parameter, or on one of `inputs`
/// (the result includes `inputs`).
std::set<TensorId> trained(const Graph& graph, const std::vector<TensorId>& inputs = {});

/// Removes operators from which no output of the graph, no gradient of a parameter and no update of
/// a parameter follows. Operators with bodies always stay.
void prune(Graph& graph);

/// Forward activations that the backward graph reads and that therefore stay in memory until then.
/// A view counts as the tensor that it views; parameters are left out.
std::vector<TensorId> saved_tensors(const Graph& forward, const Graph& backward);

/// Operator of the backward graph (by index) -> whether it computes gradients of weights alone: no
/// gradient of an input depends on it, so nothing waits for it before the end of the step.
std::vector<bool> weight_gradient_operators(const Graph& backward);

/// Whether a backward pass can run in two parts: some of its operators compute gradients of weights
/// alone, others do not.
/// Not modelled: splitting passes with loops or conditions, which run whole.
bool can_split(const Graph& backward);

/// Tensor -> the tensor that holds its bytes (for a view: its source; else itself).
std::vector<TensorId> storages_of(const Graph& graph);

}  // namespace foreshard
