#include "strategies/comm/internal/traffic.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

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
    case LinkKind::kMemory:  // on no way between devices
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
  for (const RoutedLink& routed : route.links)
    loads_.push_back({routed.link, routed.share * bytes_per_byte});
  if (loads_.size() >= merge_at_) {
    merge();
    merge_at_ = std::max(merge_at_, 2 * loads_.size());
  }
}

void LoadSum::add(const std::vector<LinkLoad>& loads) {
  loads_.insert(loads_.end(), loads.begin(), loads.end());
}

void LoadSum::merge() {
  std::stable_sort(loads_.begin(), loads_.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    if (kept > 0 && loads_[kept - 1].link == loads_[i].link)
      loads_[kept - 1].bytes_per_byte += loads_[i].bytes_per_byte;
    else
      loads_[kept++] = loads_[i];
  }
  loads_.resize(kept);
}

std::vector<LinkLoad> LoadSum::take() {
  merge();
  return std::move(loads_);
}

void Traffic::add(std::int32_t from, std::int32_t to, double bytes_per_byte) {
  const auto [place, is_new] = index_.try_emplace(key_of(from, to), pairs_.size());
  if (is_new)
    pairs_.push_back({from, to, bytes_per_byte, {}});
  else
    pairs_[place->second].bytes_per_byte += bytes_per_byte;
}

Status Traffic::route() {
  for (Pair& pair : pairs_) {
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

Result<Route> route_between(const Participants& group, std::int32_t from, std::int32_t to) {
  const auto device = [&](std::int32_t member) {
    return group.devices[static_cast<std::size_t>(member)];
  };
  return group.cluster->route(device(from), device(to), group.flow);
}

}  // namespace foreshard::comm::internal
