#include "sim/disturbance/plan.h"

#include <utility>

#include "topology/cluster_builder.h"

namespace foreshard::disturbance {

std::optional<ClusterView> slowed(const ClusterView& cluster, const Plan& plan) {
  if (plan.slow.empty()) return std::nullopt;
  auto copy = ClusterView::Builder::copy_of(cluster);
  for (const Slow& slow : plan.slow)
    copy.set_speed(slow.device, cluster.devices()[slow.device.index()].speed * slow.speed);
  return std::move(copy).build();
}

}  // namespace foreshard::disturbance
