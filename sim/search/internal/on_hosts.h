/// \file
/// The search among strategies that offload to hosts, where nothing fits on the devices alone.
#pragma once

#include <vector>

#include "sim/search/internal/race.h"
#include "sim/search/place.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// Does nothing if `result` has an answer. Else it lists the strategies of each place anew (of
/// level 2 at most), offloads as little as possible of the best ones that need too much memory
/// (offload.h), and simulates those into `result`. Where simulations need more memory than their
/// estimates, it offloads more, by the largest error of the estimates.
/// \param unlisted  strategies that `result` has not simulated, though they might fit without
///     offloading.
void race_on_hosts(const study::LoadedStudy& study, const ClusterView& cluster,
                   const std::vector<Place>& places, const SearchOptions& options,
                   const Unlisted& unlisted, const Deadline& deadline, Simulations& simulations,
                   SearchResult& result);

}  // namespace foreshard::search
