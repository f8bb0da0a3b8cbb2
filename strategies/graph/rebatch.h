/// \file
/// The same graph for another number of samples. The shapes of a graph are for one micro-batch;
/// pipeline stages may take several at once (Strategy::granularity).
#pragma once

#include <cstdint>

#include "base/result.h"

#include "strategies/graph/graph.h"

namespace foreshard {

/// Returns `graph` for `samples` samples in place of `batch`. Inputs whose first dimension is
/// `batch` get `samples`, and all shapes are inferred again. If an operator has a setting with a
/// shape (reshape, expand), its first extent scales with the samples if both this extent and the
/// first extent of the operator's input are multiples of `batch`.
/// Not modelled: samples along other dimensions than the first; operators that no longer fit refuse
/// them.
/// \return kInvalidInput, naming the operator, if the batch's size occurs elsewhere in it; also for
///     annotated slices of unequal size.
Result<Graph> rebatched(const Graph& graph, std::int64_t batch, std::int64_t samples);

}  // namespace foreshard
