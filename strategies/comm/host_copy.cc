#include "strategies/comm/host_copy.h"

#include "base/check.h"

namespace foreshard::comm {
namespace {

HostWay way_of(CollectiveKind kind) {
  if (kind == CollectiveKind::kToHost) return HostWay::kToHost;
  return kind == CollectiveKind::kFromHost ? HostWay::kFromHost : HostWay::kInHost;
}

}  // namespace

Result<FlatCollective> host_copy(CollectiveKind kind, const Participants& group) {
  FORESHARD_CHECK(program::is_with_host(kind) && group.devices.size() == 1);
  FORESHARD_ASSIGN(const auto route,
                   group.cluster->host_route(group.devices.front(), way_of(kind)));
  FlatCollective copy;
  copy.algorithm = "copy";
  copy.latency = route.latency;
  for (const RoutedLink& routed : route.links) copy.loads.push_back({routed.link, routed.share});
  return copy;
}

}  // namespace foreshard::comm
