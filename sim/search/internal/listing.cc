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
  const auto parts = parts_of(place, cluster);
  const auto of = [&](const SearchSpace& one, const std::function<bool()>& until) {
    return enumerate(one, study.strategy, study.model, place.pool.size(), parts, until);
  };
  Enumeration found = of(space, stop);
  if (found.is_whole || space.level == 0) return found;
  SearchSpace little = space;
  little.level = 0;
  Enumeration few = of(little, {});
  found.most_devices = std::max(found.most_devices, few.most_devices);
  for (Strategy& one : few.candidates) {
    const auto is_same = [&](const Strategy& other) {
      return other.tensor_parallel == one.tensor_parallel &&
             other.pipeline_parallel == one.pipeline_parallel &&
             other.data_parallel == one.data_parallel && other.micro_batch == one.micro_batch &&
             knobs_of(other) == knobs_of(one);
    };
    if (std::ranges::any_of(found.candidates, is_same)) continue;
    ++found.considered;
    found.candidates.push_back(std::move(one));
  }
  return found;
}

}  // namespace foreshard::search
