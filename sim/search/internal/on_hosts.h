/// \file
/// Where nothing fits on the devices: what fits with the least on their hosts.
#pragma once

#include <vector>

#include "sim/search/internal/race.h"
#include "sim/search/place.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// Where `result` has no answer: lists the strategies of each place anew (those of level 2 at
/// most), takes of the best that need too much memory the least to the hosts (offload.h), simulates
/// those, and says so in `result`. Where simulations needed more memory than estimates that fit, it
/// takes as much more as estimates are wrong by.
/// \param unlisted  what `result` has not simulated, though it might fit as it is.
void race_on_hosts(const study::LoadedStudy& study, const ClusterView& cluster,
                   const std::vector<Place>& places, const SearchOptions& options,
                   const Unlisted& unlisted, const Deadline& deadline, Simulations& simulations,
                   SearchResult& result);

}  // namespace foreshard::search
