// The fabric "rail-fat-tree": a Clos network with one leaf per pod and rail (clos.h). Its faults
// are those of "fat-tree".
#include "topology/fabrics/clos.h"

namespace foreshard {

void build_rail_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan) {
  const auto& config = plan.config;
  internal::build_clos(
      builder, config,
      {.ports = plan.ports,
       .nodes = plan.nodes,
       .levels = config.levels.value_or(internal::kDefaultLevels),
       .nodes_per_pod = config.nodes_per_pod.value_or(internal::kDefaultNodesPerPod),
       .leaf_per = internal::LeafPer::kRail,
       .merged = plan.merged});
}

}  // namespace foreshard
