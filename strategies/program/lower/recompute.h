/// \file
/// What stays in memory between the passes of a block, and what its backward pass computes again.
///
///     none        nothing again; all that gradients read stays
///     selective   the operators of some parts (part.h); what they read stays, and of what
///     gradients
///                 read all that they do not make
///     full        all of them; the inputs of the block stay
///
/// Parts without the sums of the stream (residual) are modules that are made again as a whole, as
/// in Megatron-LM. With them a layer is checkpointed by operator, and what is made again stops at
/// the last value that a gradient reads. What stays of a partial sum is what its readers have of
/// it: reduced and scattered. Source: pytorch/pytorch, torch/utils/checkpoint.py (early_stop, on by
/// default); pytorch/torchtitan, torchtitan/models/llama3/infra/parallelize.py
/// (_op_sac_save_list has reduce_scatter_tensor).
///
/// Not modelled: with full, kernels that a framework leaves out, since no gradient reads what they
/// make; results that PyTorch's selective checkpointing stores although nobody reads them.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

/// Operators of the forward graph (indices, ascending) that are computed again; views of what they
/// make are among them.
std::vector<std::size_t> recomputed_operators(const Graph& forward, const Graph& backward,
                                              const Recomputation& recomputation);

/// Activations of `forward` (views as what they view) that stay in memory until `backward` runs.
std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward,
                                const Recomputation& recomputation);

}  // namespace foreshard::lower
