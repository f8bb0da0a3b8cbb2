/// \file
/// The same graph for another number of samples: a graph's shapes are those of one micro-batch, and
/// stages of a pipeline may take several at once (Strategy::granularity).
#pragma once

#include <cstdint>

#include "base/result.h"

#include "strategies/graph/graph.h"

namespace foreshard {

/// `graph`, whose inputs that begin with `batch` begin with `samples` instead, and all that follows
/// from them. Where an operator says a shape (reshape, expand), its first extent grows with the
/// samples if it is a multiple of `batch` and so is that of what the operator reads.
/// Not modelled: samples along other dimensions than the first; they are refused by the operators
/// that no longer fit.
/// \return kInvalidInput, naming the operator, where something else has the size of the batch in
///     it, and for annotated slices of unequal size.
Result<Graph> rebatched(const Graph& graph, std::int64_t batch, std::int64_t samples);

}  // namespace foreshard
