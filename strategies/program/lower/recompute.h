/// \file
/// What stays in memory between the passes of a block, and what its backward pass recomputes.
///
///     none        Nothing is recomputed; all that gradients read stays.
///     selective   The operators of some parts (part.h) are recomputed. What they read stays, and
///                 so does what gradients read and these operators do not make.
///     full        All operators are recomputed; the inputs of the block stay.
///
/// If the parts do not include the sums of the residual stream (`residual`), they are modules that
/// are recomputed as a whole, as in Megatron-LM. If they do, a layer is checkpointed operator by
/// operator, and recomputation stops at the last value that a gradient reads. A partial sum is then
/// kept in the form that its readers use: reduced and scattered. Source: pytorch/pytorch,
/// torch/utils/checkpoint.py (early_stop, on by default); pytorch/torchtitan,
/// torchtitan/models/llama3/infra/parallelize.py (_op_sac_save_list has reduce_scatter_tensor).
///
/// Not modelled: with full, kernels that a framework leaves out because no gradient reads what they
/// make; results that PyTorch's selective checkpointing stores although nobody reads them.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

/// Operators of the forward graph (indices, ascending) that are recomputed, including views of what
/// they make.
std::vector<std::size_t> recomputed_operators(const Graph& forward, const Graph& backward,
                                              const Recomputation& recomputation);

/// Activations of `forward` that stay in memory until `backward` runs; a view stands as the tensor
/// that it views.
std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward,
                                const Recomputation& recomputation);

}  // namespace foreshard::lower
