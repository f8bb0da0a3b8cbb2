#include "topology/fabrics/clos.h"

namespace foreshard {
namespace {

// The fabric kind "dual-plane": `planes.count` (1 to 64, by default 2) equal networks side by side,
// each a single switch or a folded Clos (clos.h). Both functions are in the table of fabrics
// (fabric.cc), from which clusters are checked and built. The YAML table of PlanesConfig
// (topology/fabric_config.cc) checks the count, and that `planes.fabric` is single-switch, fat-tree
// or rail-fat-tree.

// The size of each plane's Clos network.
struct ClosSize {
  std::int64_t levels = internal::kDefaultLevels;  // levels of switches
  std::int64_t nodes_per_pod = internal::kDefaultNodesPerPod;
};

ClosSize clos_size_of(const FabricConfig& config) {
  return {config.levels.value_or(internal::kDefaultLevels),
          config.nodes_per_pod.value_or(internal::kDefaultNodesPerPod)};
}

}  // namespace

std::optional<FabricFault> fault_in_dual_plane(const FabricPlan& plan) {
  const auto& config = plan.config;
  const PlanesConfig planes = config.planes.value_or(PlanesConfig{});
  if (planes.fabric == "single-switch") {
    for (const auto& [key, given] :
         {std::pair("levels", config.levels.has_value()),
          std::pair("nodes_per_pod", config.nodes_per_pod.has_value()),
          std::pair("pods_per_block", !config.pods_per_block.empty()),
          std::pair("oversubscription", !config.oversubscription.empty()),
          std::pair("uplink_bandwidth", config.uplink_bandwidth.has_value())})
      if (given)
        return FabricFault{key, "a plane of one switch does not use '" + std::string(key) + "'",
                           "leave it out, or set planes.fabric: fat-tree"};
  } else if (auto fault = internal::fault_in_clos(config, plan.nodes, clos_size_of(config).levels,
                                                  clos_size_of(config).nodes_per_pod)) {
    return fault;
  }
  // With a port of every NIC in every plane, any number of NICs will do.
  if (planes.split == PlaneSplit::kPorts) return std::nullopt;
  std::vector<std::int64_t> nics(static_cast<std::size_t>(plan.nodes), 0);  // node -> its NICs
  for (const auto& port : plan.ports) ++nics[static_cast<std::size_t>(port.node)];
  for (std::size_t node = 0; node < nics.size(); ++node)
    if (nics[node] % planes.count != 0)
      return FabricFault{"planes",
                         "the " + std::to_string(nics[node]) + " NICs of node " +
                             std::to_string(node) + " cannot be split evenly over " +
                             std::to_string(planes.count) + " planes",
                         "split: ports gives every NIC a port in every plane"};
  return std::nullopt;
}

void build_dual_plane(ClusterView::Builder& builder, const FabricPlan& plan) {
  const auto& config = plan.config;
  const PlanesConfig planes = config.planes.value_or(PlanesConfig{});
  // The split decides what a plane gets: of each node the NICs whose rail is the plane's index
  // modulo the number of planes (kNics), or a port of every NIC with an equal part of its bandwidth
  // (kPorts).
  const bool by_nics = planes.split == PlaneSplit::kNics;
  for (std::int64_t i = 0; i < planes.count; ++i) {
    std::vector<FabricPort> ports;
    for (FabricPort port : plan.ports) {
      if (by_nics && port.rail % planes.count != i) continue;
      if (!by_nics) port.bandwidth = port.bandwidth / static_cast<double>(planes.count);
      ports.push_back(port);
    }
    const std::string prefix = "plane" + std::to_string(i) + "/";
    if (planes.fabric == "single-switch") {
      internal::build_switch(builder, config, ports, prefix + "switch");
      continue;
    }
    internal::build_clos(builder, config,
                         {.ports = ports,
                          .nodes = plan.nodes,
                          .levels = clos_size_of(config).levels,
                          .nodes_per_pod = clos_size_of(config).nodes_per_pod,
                          .leaf_per = planes.fabric == "fat-tree" ? internal::LeafPer::kPod
                                                                  : internal::LeafPer::kRail,
                          .merged = plan.merged,  // equal switches as one: FabricPlan
                          .prefix = prefix});
  }
}

}  // namespace foreshard
