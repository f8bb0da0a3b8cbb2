#include "topology/fabrics/clos.h"

namespace foreshard {

std::optional<FabricFault> fault_in_fat_tree(const FabricPlan& plan) {
  const auto& config = plan.config;
  const std::int64_t pods = (plan.nodes + config.nodes_per_pod - 1) / config.nodes_per_pod;
  if (config.levels == 1 && pods > 1)
    return FabricFault{"levels",
                       "one level of switches cannot join " + std::to_string(plan.nodes) +
                           " nodes in pods of " + std::to_string(config.nodes_per_pod),
                       "add a level, or set nodes_per_pod: " + std::to_string(plan.nodes)};
  const std::int64_t inner = std::max<std::int64_t>(0, config.levels - 2);
  const auto given = static_cast<std::int64_t>(config.pods_per_block.size());
  if (given != inner)
    return FabricFault{"pods_per_block",
                       std::to_string(config.levels) + " levels need " + std::to_string(inner) +
                           " entries here, found " + std::to_string(given),
                       "one for each level from 2 up, except the top one, which joins all"};
  if (static_cast<std::int64_t>(config.oversubscription.size()) > config.levels - 1)
    return FabricFault{"oversubscription",
                       std::to_string(config.levels) + " levels have only " +
                           std::to_string(config.levels - 1) + " kinds of uplinks, found " +
                           std::to_string(config.oversubscription.size()) + " ratios",
                       ""};
  return std::nullopt;
}

void build_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan) {
  internal::build_clos(builder, plan, internal::LeafPer::kPod);
}

}  // namespace foreshard
