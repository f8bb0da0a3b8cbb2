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

/// A key that differs between strategies of one search on the devices of a place.
std::string key_of(const Strategy& strategy);

/// earlier place -> keys of its listed strategies.
using Tried = std::vector<std::set<std::string>>;

/// Removes the strategies that an earlier place has on the same devices. `tried` has the earlier
/// places; `listed` is of the place after them.
void forget_known(Enumeration& listed, const std::vector<Place>& places, const Tried& tried);

/// All strategies of a place; where `stop` ends the listing early, those found by then.
Enumeration listed(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
                   const SearchSpace& space, const std::function<bool()>& stop);

}  // namespace foreshard::search
