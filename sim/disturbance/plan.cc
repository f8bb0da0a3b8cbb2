#include "sim/disturbance/plan.h"

#include <utility>

#include "sim/disturbance/internal/keys.h"
#include "topology/cluster_builder.h"

namespace foreshard::disturbance {

std::optional<ClusterView> slowed(const ClusterView& cluster, const Plan& plan) {
  if (plan.slow.empty()) return std::nullopt;
  auto copy = ClusterView::Builder::copy_of(cluster);
  for (const Slow& slow : plan.slow)
    copy.set_speed(slow.device, cluster.devices()[slow.device.index()].speed * slow.speed);
  return std::move(copy).build();
}

double kernel_factor(const Plan* plan, std::int32_t rank, std::size_t instance) {
  if (plan == nullptr || !plan->jitter) return 1;
  return sample(*plan->jitter,
                key_of(plan->seed, internal::kJitter, static_cast<std::uint64_t>(rank), instance));
}

}  // namespace foreshard::disturbance
