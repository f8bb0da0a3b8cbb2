#include "topology/fabrics/fabric.h"

namespace foreshard {

std::optional<FabricFault> fault_in_single_switch(const FabricPlan&) {
  return std::nullopt;
}

void build_single_switch(ClusterView::Builder& builder, const FabricPlan& plan) {
  const auto hub = builder.add_vertex(VertexKind::kSwitch, "switch");
  for (const auto& port : plan.ports)
    builder.connect(
        port.nic, hub,
        {LinkKind::kNetwork, port.bandwidth, port.latency + 0.5 * *plan.config.latency});
}

}  // namespace foreshard
