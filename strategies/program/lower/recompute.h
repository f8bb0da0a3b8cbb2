/// \file
/// What stays in memory between the passes of a block, and what its backward pass computes again.
///
///     none        nothing again; all that gradients read stays
///     selective   the operators of some parts (part.h); what they read stays, and of what
///     gradients
///                 read all that they do not make
///     full        all of them; the inputs of the block stay
///
/// Not modelled: kernels that a framework leaves out, since no gradient reads what they make.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::lower {

/// Operators of the forward graph (indices, ascending) that are computed again; views of what they
/// make are among them.
std::vector<std::size_t> recomputed_operators(const Graph& forward,
                                              const Recomputation& recomputation);

/// Activations of `forward` (views as what they view) that stay in memory until `backward` runs.
std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward,
                                const Recomputation& recomputation);

}  // namespace foreshard::lower
