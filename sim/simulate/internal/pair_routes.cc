#include "sim/simulate/internal/pair_routes.h"

namespace foreshard::sim::internal {

PairRoutes::PairRoutes(const ClusterView& cluster, const Congruence& congruence)
    : cluster_(cluster), congruence_(congruence) {
  if (congruence.fault().empty()) list_.emplace(congruence);
}

const PairRoutes::Pair& PairRoutes::pair_of(std::int32_t from, std::int32_t to) {
  const std::uint64_t both =
      static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  const auto [place, is_new] = pairs_.try_emplace(both);
  if (!is_new) return place->second;
  list_->start();
  list_->add(
      {list_->meet(congruence_.part_of_node(from)), list_->meet(congruence_.part_of_node(to))});
  list_->close();
  const auto next = static_cast<std::int32_t>(kinds_.size());
  place->second = {kinds_.try_emplace(list_->key(), next).first->second, list_->parts()};
  return place->second;
}

Result<Route> PairRoutes::route(DeviceId from, DeviceId to, std::uint64_t flow) {
  if (!list_) return cluster_.route(from, to, flow);
  const auto node = [&](DeviceId device) { return cluster_.devices()[device.index()].node; };
  const Pair& pair = pair_of(node(from), node(to));
  const auto [place, is_new] = routes_.try_emplace(
      {pair.kind, congruence_.number_in_node(from), congruence_.number_in_node(to)});
  PlacedRoute& placed = place->second;
  if (is_new) {
    auto route = cluster_.route(from, to, flow);
    if (!route) {
      routes_.erase(place);
      return route.error();
    }
    placed.latency = route->latency;
    placed.widest_kind = route->widest_kind;
    for (const RoutedLink& routed : route->links) {
      auto at = congruence_.place_of(routed.link);
      for (std::size_t p = 0; p < pair.parts.size(); ++p) {
        if (pair.parts[p] != at.part) continue;
        at.part = static_cast<std::int32_t>(p);
        break;
      }
      placed.links.push_back({at, routed.share});
    }
    return route;
  }
  Route route{.links = {}, .latency = placed.latency, .widest_kind = placed.widest_kind};
  route.links.reserve(placed.links.size());
  for (const PlacedLink& link : placed.links) {
    const std::int32_t part = pair.parts[static_cast<std::size_t>(link.place.part)];
    route.links.push_back({congruence_.link_at({part, link.place.index}), link.share});
  }
  return route;
}

}  // namespace foreshard::sim::internal
