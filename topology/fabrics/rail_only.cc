// The fabric "rail-only": a network of its own for each rail (the NICs of one index), called
// through the table in fabric.cc. By default one switch per rail; with more levels a Clos network.
// Source: Wang, Ghobadi et al., "Rail-only: a low-cost high-performance network for training LLMs
// with trillions of parameters", 2023 (arXiv:2307.12169): the spines that join rails are left out.
#include <map>

#include "topology/fabrics/clos.h"

namespace foreshard {
namespace {

std::int64_t levels_of(const FabricConfig& config) {
  return config.levels.value_or(1);
}
std::int64_t nodes_per_pod_of(const FabricPlan& plan) {
  return plan.config.nodes_per_pod.value_or(
      levels_of(plan.config) == 1 ? plan.nodes : internal::kDefaultNodesPerPod);
}

}  // namespace

std::optional<FabricFault> fault_in_rail_only(const FabricPlan& plan) {
  std::map<std::int64_t, std::int64_t> nics_of_node;
  for (const auto& port : plan.ports) ++nics_of_node[port.node];
  for (const auto& [node, count] : nics_of_node)
    if (count != nics_of_node.begin()->second)
      return FabricFault{
          "kind",
          "rails are not equal: node " + std::to_string(nics_of_node.begin()->first) + " has " +
              std::to_string(nics_of_node.begin()->second) + " NICs, node " + std::to_string(node) +
              " has " + std::to_string(count),
          "rail-only needs as many NICs in every node; rail-fat-tree does not need this"};
  return internal::fault_in_clos(plan.config, plan.nodes, levels_of(plan.config),
                                 nodes_per_pod_of(plan));
}

void build_rail_only(ClusterView::Builder& builder, const FabricPlan& plan) {
  std::map<std::int64_t, std::vector<FabricPort>> rails;
  for (const auto& port : plan.ports) rails[port.rail].push_back(port);
  for (const auto& [rail, ports] : rails) {
    const std::string prefix = "rail" + std::to_string(rail) + "/";
    if (levels_of(plan.config) == 1) {
      internal::build_switch(builder, plan.config, ports, prefix + "switch");
      continue;
    }
    internal::build_clos(builder, plan.config,
                         {.ports = ports,
                          .nodes = plan.nodes,
                          .levels = levels_of(plan.config),
                          .nodes_per_pod = nodes_per_pod_of(plan),
                          .leaf_per = internal::LeafPer::kPod,
                          .merged = plan.merged,
                          .prefix = prefix});
  }
}

}  // namespace foreshard
