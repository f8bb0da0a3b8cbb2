/// \file
/// Unequal shares of the batch on places with devices of several speeds: which strategies get them.
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

/// Simulates the best of the strategies of such a place with unequal shares of the batch
/// (shares.h), and adds them to `result.simulated`. Each kind of strategies, which divide the
/// devices alike, has a few: the estimate of a strategy with equal shares, times what the division
/// shortens the longest rank by, says which.
/// \param bases  estimated strategies of the place, whose own shares do not matter.
void simulate_unequal_shares(const study::LoadedStudy& study, const ClusterView& cluster,
                             const Place& place, const SearchOptions& options,
                             const Deadline& deadline, const std::vector<Candidate>& bases,
                             SearchResult& result);

}  // namespace foreshard::search
