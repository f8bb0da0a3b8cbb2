/// \file
/// Unequal shares of the batch: on devices of two speeds, the data-parallel ranks on the faster
/// ones take more micro-batches than the others.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/place.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// How fast each data-parallel rank's slowest device multiplies matrices, in the order of the
/// ranks. \pre the place has devices for the strategy's ranks.
std::vector<double> speeds_of_data_ranks(const Strategy& strategy, const Place& place,
                                         const ClusterView& cluster);

/// The strategy with the `most` divisions of its batch between data-parallel ranks of two speeds
/// that end the soonest by these speeds, the soonest first; none where all take as many.
/// Nothing where there are not two speeds, or the strategy forbids it (batch_shares of
/// strategy.h). Not tried: three speeds and more.
std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<double>& speeds, std::int64_t devices,
                                        std::size_t most);

}  // namespace foreshard::search
