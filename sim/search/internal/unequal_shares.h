/// \file
/// Chooses the strategies that get unequal shares of the batch, on places whose devices have
/// several speeds.
#pragma once

#include <vector>

#include "sim/search/internal/race.h"
#include "sim/search/place.h"
#include "sim/search/search.h"
#include "sim/study/study.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Whether devices of a place differ by more than a hundredth in how fast they train the model.
bool has_several_rates(const study::LoadedStudy& study, const ClusterView& cluster,
                       const Place& place);

/// Simulates the best strategies of such a place with unequal shares of the batch (shares.h), and
/// adds them to `result.simulated`. Each kind of strategies (those that divide the devices alike)
/// has a few. The best are those with the least estimate with equal shares, times the factor by
/// which the division shortens the slowest rank.
/// \param bases  estimated strategies of the place, whose own shares do not matter.
void simulate_unequal_shares(const study::LoadedStudy& study, const ClusterView& cluster,
                             const Place& place, const SearchOptions& options,
                             const Deadline& deadline, const std::vector<Candidate>& bases,
                             SearchResult& result);

}  // namespace foreshard::search
