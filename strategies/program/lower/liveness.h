/// \file
/// Memory that a rank needs for a block's tensors while a pass runs, counted tensor by tensor: each
/// lives from the operator that makes it to its last reader.
///
/// Activations that stay from forward to backward are booked separately (`bytes_held`), for the
/// whole of both passes. What the functions here return comes on top of them, so that the two add
/// up to the peak. A backward pass frees kept tensors as it goes, and its other tensors may take
/// their place.
///
/// Counted: what operators take beside their operands (eager.h), inputs of the block (the incoming
/// gradients of a backward pass), results and their conversions, recomputed activations, and
/// gradients of parameters until they are accumulated: autograd hands on a gradient in the type of
/// its parameter, one parameter at a time (see Framework::keeps_gradient_placeholders). Accumulated
/// gradients and parameters are booked elsewhere. Not modelled: scratch space inside a kernel (of
/// attention's backward pass, of normalisation), and the rounding of each tensor to 512 B by
/// PyTorch's allocator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"

#include "strategies/graph/distribute.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

/// Elements and bytes of the slice that one rank holds of a tensor with this layout.
std::int64_t local_elements(const Tensor& tensor, const Attribute& attribute,
                            const std::vector<MeshAxis>& mesh);
Bytes local_bytes(const Tensor& tensor, const Attribute& attribute,
                  const std::vector<MeshAxis>& mesh);

/// Bytes that a rank holds of `tensors`, each in the layout that its producer left.
Bytes bytes_held(const std::set<TensorId>& tensors, const ShardedGraph& sharded);

/// What stays from a forward pass to its backward pass.
struct Kept {
  std::set<TensorId> tensors{};
  std::map<std::string, Bytes> beside{};  ///< kept_beside().
};
Bytes bytes_held(const Kept& kept, const ShardedGraph& sharded);

/// How passes run: what a sweep over their operators has to know.
struct BackwardWork {
  Recomputation recomputation{};
  /// Placeholders of gradients exist all the time, so that products that add up weight gradients
  /// need no memory for them during the pass.
  bool placeholders_kept = false;
  std::int64_t loss_words = 0;  ///< Framework::loss_words: only their logits are in memory.
};

/// Whether the operator is a transformer's loss, to which Framework::loss_words applies, or the
/// gradient of one. Not modelled: losses of a user's graph on the logits of some words at a time.
bool computes_loss(const Operator& op);

/// Peak of a forward pass, on top of all of `kept`.
Bytes forward_work(const ShardedGraph& forward, const Kept& kept, const BackwardWork& how = {});

/// Peak of a backward pass, on top of all of `kept`. Selective recomputation makes a tensor when
/// the pass first reads it; full recomputation comes before the pass.
Bytes backward_work(const ShardedGraph& forward, const ShardedGraph& backward, const Kept& kept,
                    const BackwardWork& how);

/// What a rank holds in a backward pass in two parts: gradients of inputs, then of weights.
struct SplitWork {
  Bytes kept_for_weight{};  ///< The part of `kept` that the second part reads.
  Bytes held{};    ///< Tensors that the second part reads and the first part made or was given.
  Bytes input{};   ///< Peak of the first part, on top of `kept` and `held`.
  Bytes weight{};  ///< Peak of the second part, on top of `kept_for_weight` and `held`.
};

/// `weights`: weight_gradient_operators(). A conversion that both parts need is made once and held.
/// Not modelled: that in the first part, `held` takes the place of tensors of `kept` that it frees.
/// What operators keep beside their operands, the first part frees.
SplitWork split_work(const ShardedGraph& forward, const ShardedGraph& backward, const Kept& kept,
                     const std::vector<bool>& weights, const BackwardWork& how);

}  // namespace foreshard::lower
