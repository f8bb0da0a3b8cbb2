/// \file
/// How many micro-batches the stages of a graph's pipeline take at a time, where they are on
/// devices of several kinds (R4.6): micro-batches of a quarter to four times the size of those that
/// the graph's shapes have, of which the stages on one kind take 1, 2, 4 or 8 in a pass. Kinds with
/// large fixed costs (launches, small kernels) want more of them, those that others wait for fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/graph/meshes.h"
#include "strategies/graph/graph.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// By stage: the devices of the ranks, in the order of the mesh without the pipeline.
std::vector<std::vector<std::int32_t>> devices_of_stages(const Grouping& grouping);

/// The grouping itself first; others where its stages are on devices of several kinds, as far as
/// the graph can be taken for so many samples (rebatch.h). Their micro_batch and granularity
/// differ.
/// \param batch  samples in the graph's shapes.
std::vector<Grouping> granularities_of(const Grouping& grouping, const Graph& graph,
                                       std::int64_t batch, const ClusterView& cluster);

}  // namespace foreshard::search
