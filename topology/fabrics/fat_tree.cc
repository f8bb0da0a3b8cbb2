// The fabric "fat-tree": a Clos network with one leaf per pod of nodes (clos.h).
#include "topology/fabrics/clos.h"

namespace foreshard {

std::optional<FabricFault> fault_in_fat_tree(const FabricPlan& plan) {
  const auto& config = plan.config;
  return internal::fault_in_clos(config, plan.nodes,
                                 config.levels.value_or(internal::kDefaultLevels),
                                 config.nodes_per_pod.value_or(internal::kDefaultNodesPerPod));
}

void build_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan) {
  const auto& config = plan.config;
  internal::build_clos(
      builder, config,
      {.ports = plan.ports,
       .nodes = plan.nodes,
       .levels = config.levels.value_or(internal::kDefaultLevels),
       .nodes_per_pod = config.nodes_per_pod.value_or(internal::kDefaultNodesPerPod),
       .leaf_per = internal::LeafPer::kPod,
       .merged = plan.merged});
}

}  // namespace foreshard
