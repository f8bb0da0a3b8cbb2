/// \file
/// How many micro-batches the stages of a graph's pipeline take at a time, where they are on
/// devices of several kinds (R4.6). Micro-batches are a quarter to four times as large as in the
/// graph's shapes, and all stages on one kind take 1, 2, 4 or 8 of them per pass. Kinds with large
/// fixed costs (launches, small kernels) do better with more, and kinds that others wait for with
/// fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/graph/meshes.h"
#include "strategies/graph/graph.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// stage -> devices of its ranks, in the order of the mesh without the pipeline.
std::vector<std::vector<std::int32_t>> devices_of_stages(const Grouping& grouping);

/// The grouping itself first. Where its stages are on devices of several kinds, groupings with
/// other micro_batch and granularity follow, as far as the graph can be rebatched to those numbers
/// of samples (rebatch.h).
/// \param batch  samples in the graph's shapes.
std::vector<Grouping> granularities_of(const Grouping& grouping, const Graph& graph,
                                       std::int64_t batch, const ClusterView& cluster);

}  // namespace foreshard::search
