/// \file
/// What a rank holds of a block's tensors while a pass runs, tensor by tensor: each from the
/// operator that makes it to its last reader.
///
/// Activations that stay from forward to backward are booked apart (`bytes_held`), for the whole of
/// both passes; what the functions here return comes on top of them, so that both together are the
/// peak. A backward pass gives kept tensors back as it goes, and its work may take their place.
///
/// Counted: inputs of the block (the incoming gradients of a backward pass), results and their
/// conversions, activations that are computed again, and gradients of parameters that something
/// else has yet to take: a gradient that autograd hands on in the type of its parameter, one
/// parameter at a time (see Framework::keeps_gradient_placeholders). Accumulated gradients and
/// parameters are booked elsewhere.
/// Not modelled: scratch space inside a kernel (of attention's backward pass, of normalisation),
/// and the rounding of each tensor to 512 B by PyTorch's allocator.
#pragma once

#include <set>
#include <vector>

#include "base/units.h"

#include "strategies/graph/sharding.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

/// Elements and bytes of the slice that one rank holds of a tensor that lies so.
std::int64_t local_elements(const Tensor& tensor, const Attribute& attribute,
                            const std::vector<MeshAxis>& mesh);
Bytes local_bytes(const Tensor& tensor, const Attribute& attribute,
                  const std::vector<MeshAxis>& mesh);

/// What a rank holds of `tensors`, each as its producer left it.
Bytes bytes_held(const std::set<TensorId>& tensors, const ShardedGraph& sharded);

/// Peak of a forward pass beside all of `kept`.
Bytes forward_work(const ShardedGraph& forward, const std::set<TensorId>& kept);

struct BackwardWork {
  Recomputation recomputation{};
  /// Products that add up weight gradients need no room for what autograd wants in their place: it
  /// is there all the time.
  bool placeholders_kept = false;
};

/// Peak of a backward pass beside all of `kept`. What selective recomputation makes is made when
/// the pass first reads it; full recomputation comes first.
Bytes backward_work(const ShardedGraph& forward, const ShardedGraph& backward,
                    const std::set<TensorId>& kept, const BackwardWork& how);

/// What a backward pass in two parts holds: gradients of inputs, then of weights.
struct SplitWork {
  Bytes kept_for_weight{};  ///< Of `kept`, what the second part reads.
  Bytes held{};             ///< What the second part reads that the first has made or been given.
  Bytes input{};            ///< Peak of the first part beside `kept` and `held`.
  Bytes weight{};           ///< Peak of the second one beside `kept_for_weight` and `held`.
};

/// `weights`: weight_gradient_operators(). A conversion that both parts need is made once and held.
/// Not modelled: that in the first part `held` takes the place of what it gives back of `kept`.
SplitWork split_work(const ShardedGraph& forward, const ShardedGraph& backward,
                     const std::set<TensorId>& kept, const std::vector<bool>& weights,
                     const BackwardWork& how);

}  // namespace foreshard::lower
