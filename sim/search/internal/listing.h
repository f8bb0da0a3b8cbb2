/// \file
/// The strategies that a search lists for each of its places.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/search/place.h"
#include "sim/search/space.h"
#include "sim/study/study.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// What tells strategies of one search apart on the devices of a place.
std::string key_of(const Strategy& strategy);

/// What was listed for the places before, by key: of each place a set.
using Tried = std::vector<std::set<std::string>>;

/// Takes out what an earlier place, of as many as `tried` has, puts on the same devices as the
/// place behind these does.
void forget_known(Enumeration& listed, const std::vector<Place>& places, const Tried& tried);

/// All strategies of a place or, where it is to `stop` before, those found by then.
Enumeration listed(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
                   const SearchSpace& space, const std::function<bool()>& stop);

}  // namespace foreshard::search
