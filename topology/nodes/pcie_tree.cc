#include <algorithm>

#include "topology/nodes/node_builder.h"

namespace foreshard {

std::vector<BuiltNic> add_pcie_tree(ClusterView::Builder& builder, const NodeConfig& config,
                                    const BuiltNode& node, const std::string& prefix) {
  const auto& pcie = config.pcie;
  const DuplexLink lane{LinkKind::kPcie, pcie_bandwidth(pcie_generation(config)) * *pcie.efficiency,
                        *pcie.latency, *pcie.efficiency};
  const DuplexLink bridge{LinkKind::kSocket, *pcie.socket_bandwidth, *pcie.socket_latency};
  const auto switch_count = static_cast<std::size_t>(pcie_switches(config));
  const auto socket_count = std::min(static_cast<std::size_t>(pcie.sockets), switch_count);

  std::vector<VertexId> sockets;
  for (std::size_t i = 0; i < socket_count; ++i) {
    sockets.push_back(
        builder.add_vertex(VertexKind::kSocket, prefix + "socket" + std::to_string(i), node.node));
    for (std::size_t other = 0; other < i; ++other)
      builder.connect(sockets[other], sockets[i], bridge);
  }
  std::vector<VertexId> switches;
  for (std::size_t i = 0; i < switch_count; ++i) {
    switches.push_back(builder.add_vertex(VertexKind::kPcieSwitch,
                                          prefix + "pcie" + std::to_string(i), node.node));
    if (socket_count > 0)
      builder.connect(switches[i], sockets[i * socket_count / switch_count], lane);
  }
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    builder.connect(builder.vertex_of(node.gpus[i]), switches[i * switch_count / node.gpus.size()],
                    lane);
  std::vector<BuiltNic> nics;
  const auto nic_count = config.nics ? static_cast<std::size_t>(config.nics->count) : 0;
  for (std::size_t i = 0; i < nic_count; ++i) {
    const auto vertex =
        builder.add_vertex(VertexKind::kNic, prefix + "nic" + std::to_string(i), node.node);
    nics.push_back({vertex, *config.nics->bandwidth * *config.nics->efficiency,
                    *config.nics->latency, *config.nics->efficiency});
    builder.connect(vertex, switches[i * switch_count / nic_count], lane);
  }
  return nics;
}

}  // namespace foreshard
