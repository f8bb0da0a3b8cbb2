#include "sim/search/internal/hosts.h"

#include <algorithm>

namespace foreshard::search {

Hosts::Hosts(const ClusterView& cluster, const std::vector<std::int32_t>& devices) {
  for (std::int64_t place = 0; place < std::ssize(devices); ++place) {
    const DeviceId id{devices[static_cast<std::size_t>(place)]};
    const Host& host = cluster.host(cluster.devices()[id.index()].node);
    const auto is_alike = [&](const First& known) {
      return known.host.launch_time == host.launch_time && known.host.speed == host.speed;
    };
    if (std::ranges::none_of(unlike_, is_alike)) unlike_.push_back({host, place});
  }
}

Seconds Hosts::launching(const Strategy& strategy) const {
  Seconds slowest;
  for (const First& one : unlike_) {
    if (one.device >= strategy.devices()) continue;
    slowest = std::max(slowest, one.host.launching(strategy.host_time()));
  }
  return slowest;
}

}  // namespace foreshard::search
