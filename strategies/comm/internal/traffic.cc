#include "strategies/comm/internal/traffic.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/index.h"

namespace foreshard::comm::internal {
namespace {

std::uint64_t key_of(std::int32_t from, std::int32_t to) {
  return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
}

}  // namespace

void Path::add(const Hop& hop, double times) {
  switch (hop.kind) {
    case LinkKind::kNvLink:
      nvlink += times;
      break;
    case LinkKind::kPcie:
    case LinkKind::kSocket:
      pcie += times;
      break;
    case LinkKind::kNetwork:
      network += times;
      break;
    case LinkKind::kMemory:  // on no route between devices
      break;
  }
  wire += times * hop.wire;
}

void Path::add(const Path& path, double times) {
  nvlink += times * path.nvlink;
  pcie += times * path.pcie;
  network += times * path.network;
  wire += times * path.wire;
}

bool longer(const Path& a, const Path& b) {
  return std::tie(a.network, a.pcie, a.nvlink, a.wire) >
         std::tie(b.network, b.pcie, b.nvlink, b.wire);
}

void LoadSum::add(const Route& route, double bytes_per_byte) {
  for (const RoutedLink& routed : route.minimal.empty() ? route.links : route.minimal)
    loads_.push_back({routed.link, routed.share * bytes_per_byte});
  if (!route.minimal.empty()) {
    for (const RoutedLink& routed : route.minimal)
      changes_.push_back({routed.link, -routed.share * bytes_per_byte});
    for (const RoutedLink& routed : route.links)
      changes_.push_back({routed.link, routed.share * bytes_per_byte});
  }
  if (loads_.size() + changes_.size() >= merge_at_) {
    merge(loads_);
    merge(changes_);
    merge_at_ = std::max(merge_at_, 2 * (loads_.size() + changes_.size()));
  }
}

void LoadSum::add(const std::vector<LinkLoad>& loads) {
  loads_.insert(loads_.end(), loads.begin(), loads.end());
}

void LoadSum::merge(std::vector<LinkLoad>& loads) {
  std::stable_sort(loads.begin(), loads.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (kept > 0 && loads[kept - 1].link == loads[i].link)
      loads[kept - 1].bytes_per_byte += loads[i].bytes_per_byte;
    else
      loads[kept++] = loads[i];
  }
  loads.resize(kept);
}

namespace {

/// Time per byte of one link, as a function of the fraction that takes detours.
struct LinkTime {
  double minimal = 0;
  double slope = 0;
  double at(double detour) const { return minimal + slope * detour; }
};

/// The least detour fraction in [0, 1] that minimizes the largest of `times`, found by a walk along
/// the upper envelope of straight lines, which is convex.
double best_detour(const std::vector<LinkTime>& times) {
  constexpr double kTolerance = 1e-9;
  double detour = 0;
  while (true) {
    const LinkTime* top = nullptr;
    for (const LinkTime& time : times) {
      const double more = top == nullptr ? 1 : time.at(detour) - top->at(detour);
      const double rounding = top == nullptr ? 0 : kTolerance * top->at(detour);
      if (more > rounding || (more >= -rounding && time.slope > top->slope)) top = &time;
    }
    if (top == nullptr || top->slope >= 0) return detour;
    double next = 1;
    for (const LinkTime& time : times)
      if (time.slope > top->slope)
        next = std::min(next, (top->minimal - time.minimal) / (time.slope - top->slope));
    if (next >= 1) return 1;
    if (next <= detour + kTolerance) return detour;
    detour = next;
  }
}

}  // namespace

std::vector<LinkLoad> LoadSum::take() {
  merge(loads_);
  return std::move(loads_);
}

std::vector<LinkLoad> LoadSum::take(const Participants& group, double& detour) {
  merge(loads_);
  merge(changes_);
  detour = 0;
  if (changes_.empty()) return std::move(loads_);

  const ClusterView& cluster = *group.cluster;
  const double groups =
      static_cast<double>(cluster.devices().size()) / static_cast<double>(group.devices.size());
  const auto between_switches = [&](const Link& link) {
    return cluster.vertices()[link.from.index()].node < 0 &&
           cluster.vertices()[link.to.index()].node < 0;
  };
  std::map<LinkId, LinkTime> times;
  for (const LinkLoad& load : loads_) times[load.link].minimal = load.bytes_per_byte;
  for (const LinkLoad& change : changes_) times[change.link].slope = change.bytes_per_byte;
  std::vector<LinkTime> scaled;
  for (const auto& [id, time] : times) {
    const Link& link = cluster.links()[id.index()];
    const double scale = (between_switches(link) ? groups : 1) / link.bandwidth.in_base();
    scaled.push_back({scale * time.minimal, scale * time.slope});
  }
  detour = best_detour(scaled);
  std::vector<LinkLoad> taken;
  for (const auto& [id, time] : times)
    if (time.at(detour) > 0) taken.push_back({id, time.at(detour)});
  return taken;
}

void Traffic::add(std::int32_t from, std::int32_t to, double bytes_per_byte) {
  const auto [place, is_new] = index_.try_emplace(key_of(from, to), pairs_.size());
  if (is_new)
    pairs_.push_back({from, to, bytes_per_byte, {}});
  else
    pairs_[place->second].bytes_per_byte += bytes_per_byte;
}

Status Traffic::route() {
  for (MemberPair& pair : pairs_) {
    FORESHARD_ASSIGN(const auto route, route_between(*group_, pair.from, pair.to));
    pair.hop = {route.widest_kind, route.latency};
    loads_.add(route, pair.bytes_per_byte);
  }
  return {};
}

const Hop& Traffic::hop(std::int32_t from, std::int32_t to) const {
  const auto place = index_.find(key_of(from, to));
  FORESHARD_CHECK(place != index_.end());
  return pairs_[place->second].hop;
}

namespace {

// The route with the latency of its minimal routes.
Result<Route> while_queues_are_even(Result<Route> route) {
  if (!route || route->minimal.empty()) return route;
  Route minimal = *std::move(route);
  minimal.latency = minimal.minimal_latency;
  return minimal;
}

}  // namespace

Result<Route> route_between(const Participants& group, std::int32_t from, std::int32_t to) {
  return while_queues_are_even(
      group.cluster->route(group.devices[at(from)], group.devices[at(to)], group.flow));
}

Result<Route> peer_route_between(const Participants& group, std::int32_t from, std::int32_t to) {
  return while_queues_are_even(
      group.cluster->peer_route(group.devices[at(from)], group.devices[at(to)], group.flow));
}

}  // namespace foreshard::comm::internal
