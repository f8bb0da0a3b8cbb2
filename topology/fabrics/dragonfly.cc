// Source: Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA
// 2008; their p, a, h and g are the keys of DragonflyConfig. Balanced at a = 2p = 2h.
#include "topology/fabrics/groups.h"

namespace foreshard {
namespace {

internal::GroupSizes sizes_of(const DragonflyConfig& config) {
  return {.key = "dragonfly",
          .nics_per_switch = config.nics_per_router,
          .switches = config.routers_per_group,
          .gateways = config.routers_per_group,
          .cables = config.global_cables_per_router,
          .groups = config.groups};
}

}  // namespace

std::optional<FabricFault> fault_in_dragonfly(const FabricPlan& plan) {
  if (!plan.config.dragonfly)
    return FabricFault{"kind", "a dragonfly needs its sizes",
                       "add dragonfly: {nics_per_router: ..., routers_per_group: ..., "
                       "global_cables_per_router: ...}"};
  return internal::fault_in_groups(sizes_of(*plan.config.dragonfly), plan);
}

void build_dragonfly(ClusterView::Builder& builder, const FabricPlan& plan) {
  const DragonflyConfig& config = *plan.config.dragonfly;
  const internal::GroupSizes sizes = sizes_of(config);
  const BytesPerSecond port = plan.fastest_port();
  const DuplexLink local{LinkKind::kNetwork, config.local_bandwidth.value_or(port),
                         *plan.config.latency};
  SwitchGroups shape;
  for (std::int64_t group = 0; group < internal::group_count(sizes, plan); ++group) {
    auto& routers = shape.groups.emplace_back();
    const std::string prefix = "group" + std::to_string(group) + "/router";
    for (std::int64_t i = 0; i < sizes.switches; ++i) {
      const auto router = builder.add_vertex(VertexKind::kSwitch, prefix + std::to_string(i));
      for (const auto other : routers) builder.connect(other, router, local);
      routers.push_back(router);
    }
  }
  internal::fill_groups(builder, plan, shape.groups, sizes.nics_per_switch);
  internal::join_groups(
      builder, shape.groups, sizes.cables,
      {LinkKind::kNetwork, config.global_bandwidth.value_or(port), *plan.config.latency});
  builder.set_shape(std::move(shape));
}

}  // namespace foreshard
