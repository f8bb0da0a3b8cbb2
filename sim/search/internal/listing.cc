#include "sim/search/internal/listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace foreshard::search {
namespace {

bool same_devices(const study::Pool& a, const study::Pool& b, std::int64_t ranks) {
  return ranks <= a.size() && ranks <= b.size() &&
         std::equal(a.devices.begin(), a.devices.begin() + ranks, b.devices.begin());
}

// Whether an earlier place puts the strategy's ranks on the same devices.
bool is_known(const Strategy& strategy, const std::vector<Place>& places, const Tried& tried) {
  const study::Pool& own = places[tried.size()].pool;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (same_devices(places[i].pool, own, strategy.devices()) &&
        tried[i].contains(key_of(strategy)))
      return true;
  return false;
}

}  // namespace

std::string key_of(const Strategy& strategy) {
  return knobs_of(strategy).dump();
}

void forget_known(Enumeration& listed, const std::vector<Place>& places, const Tried& tried) {
  std::erase_if(listed.candidates,
                [&](const Strategy& one) { return is_known(one, places, tried); });
}

Enumeration listed(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
                   const SearchSpace& space, const std::function<bool()>& stop) {
  return enumerate(space, study.strategy, study.model, place.pool.size(), parts_of(place, cluster),
                   stop);
}

}  // namespace foreshard::search
