/// \file
/// Clusters for tests, small enough to work out by hand, and what every route must obey.
#pragma once

#include "tests/test.h"

#include "topology/cluster_config.h"

namespace foreshard {

/// `gpus` GPUs on an NVSwitch at 100 GB/s, a NIC of 10 GB/s for each; every efficiency is 1. PCIe
/// is 5.0 (63 GB/s), so that NICs are the narrowest part.
inline NodeConfig small_node(std::int64_t gpus = 2) {
  NodeConfig node;
  node.device.value.name = "test";
  node.gpus = gpus;
  node.nvlink.emplace();
  node.nvlink->bandwidth = {100_GB_s, "", yaml::Evidence::kUser};
  node.nvlink->efficiency = {1, "", yaml::Evidence::kUser};
  node.nvlink->latency = {1_us, "", yaml::Evidence::kUser};
  node.pcie.generation = 5;
  node.pcie.efficiency = {1, "", yaml::Evidence::kUser};
  node.pcie.latency = {2_us, "", yaml::Evidence::kUser};
  node.nics.emplace();
  node.nics->count = gpus;
  node.nics->bandwidth = {10_GB_s, "", yaml::Evidence::kUser};
  node.nics->efficiency = {1, "", yaml::Evidence::kUser};
  node.nics->latency = {3_us, "", yaml::Evidence::kUser};
  return node;
}

inline ClusterConfig small_cluster(std::int64_t nodes, const FabricConfig& fabric,
                                   const NodeConfig& node = small_node()) {
  ClusterConfig config;
  config.name = "small";
  config.nodes = nodes;
  config.node = yaml::Ref<NodeConfig>{node, ""};
  config.fabric = fabric;
  return config;
}

inline ClusterView must_build(const ClusterConfig& config) {
  return value_of(build_cluster(config));
}

inline VertexId vertex(const ClusterView& cluster, const std::string& name) {
  for (std::size_t i = 0; i < cluster.vertices().size(); ++i)
    if (cluster.vertices()[i].name == name) return VertexId(static_cast<std::int64_t>(i));
  ADD_FAILURE() << "no vertex " << name;
  return {};
}
inline DeviceId device(const ClusterView& cluster, const std::string& name) {
  return cluster.vertices()[vertex(cluster, name).index()].device;
}

/// "a>b" -> share, of a route.
inline std::map<std::string, double> shares(const ClusterView& cluster, const Route& route) {
  std::map<std::string, double> result;
  for (const auto& [id, share] : route.links) {
    const Link& link = cluster.links()[id.index()];
    result[cluster.vertices()[link.from.index()].name + ">" +
           cluster.vertices()[link.to.index()].name] += share;
  }
  return result;
}

/// What comes into a vertex leaves it: all of the flow leaves `from` and reaches `to`, so that the
/// shares over any cut between them sum to 1; no device between (with PXN at most one, of the
/// sender's host); only links that are up.
/// \return what is wrong, or "".
inline std::string fault_in(const ClusterView& cluster, DeviceId from, DeviceId to,
                            const Route& route) {
  std::map<VertexId, double> balance;
  Seconds latency;
  for (std::size_t i = 0; i < route.links.size(); ++i) {
    const auto& [id, share] = route.links[i];
    const Link& link = cluster.links()[id.index()];
    if (i > 0 && route.links[i - 1].link >= id) return "links are not in ascending order";
    if (!(share > 0 && share <= 1 + 1e-12)) return "a share is outside of (0, 1]";
    if (!link.up) return "a link is down";
    balance[link.from] += share;
    balance[link.to] -= share;
    latency += share * link.latency;
  }
  int relays = 0;
  for (const auto& [at, surplus] : balance) {
    const Vertex& vertex = cluster.vertices()[at.index()];
    double expected = 0;
    if (vertex.device == from && from.valid()) expected = 1;
    if (vertex.device == to && to.valid()) expected = -1;
    if (std::abs(surplus - expected) > 1e-9) return "flow is not kept at " + vertex.name;
    if (vertex.kind != VertexKind::kDevice || expected != 0) continue;
    const bool senders = vertex.node == cluster.devices()[from.index()].node;
    if (!cluster.pxn() || !senders || ++relays > 1) return "passes " + vertex.name;
  }
  if (balance.size() < 2) return "goes nowhere";
  if (route.latency < latency * (1 - 1e-9)) return "latency is below the mean of its paths";
  return "";
}

}  // namespace foreshard
