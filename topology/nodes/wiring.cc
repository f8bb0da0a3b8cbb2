#include <map>

#include "topology/nodes/node_builder.h"

namespace foreshard {
namespace {

VertexKind vertex_kind(WiringPartKind kind) {
  switch (kind) {
    case WiringPartKind::kNvSwitch:
      return VertexKind::kNvSwitch;
    case WiringPartKind::kPcieSwitch:
      return VertexKind::kPcieSwitch;
    case WiringPartKind::kSocket:
      return VertexKind::kSocket;
    case WiringPartKind::kNic:
      break;
  }
  return VertexKind::kNic;
}

DuplexLink duplex(const WiringConfig& config, const WiringLink& link) {
  switch (link.kind) {
    case WiringLinkKind::kNvLink:
      return {LinkKind::kNvLink, link.bandwidth * *config.nvlink_efficiency, *config.nvlink_latency,
              *config.nvlink_efficiency};
    case WiringLinkKind::kPcie:
      return {LinkKind::kPcie, link.bandwidth * *config.pcie_efficiency, *config.pcie_latency,
              *config.pcie_efficiency};
    case WiringLinkKind::kSocket:
      break;
  }
  return {LinkKind::kSocket, link.bandwidth, *config.socket_latency};
}

}  // namespace

std::vector<BuiltNic> add_wiring(ClusterView::Builder& builder, const WiringConfig& config,
                                 const BuiltNode& node, const std::string& prefix) {
  std::map<std::string, VertexId> vertices;
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    vertices["gpu" + std::to_string(i)] = builder.vertex_of(node.gpus[i]);
  std::vector<BuiltNic> nics;
  for (const auto& part : config.parts) {
    const auto vertex = builder.add_vertex(vertex_kind(part.kind), prefix + part.name, node.node);
    vertices[part.name] = vertex;
    if (part.kind == WiringPartKind::kNic)
      nics.push_back({vertex, *part.bandwidth * *config.nic_efficiency, *config.nic_latency,
                      *config.nic_efficiency});
  }
  for (const auto& link : config.links)
    builder.connect(vertices.at(link.a), vertices.at(link.b), duplex(config, link));
  return nics;
}

}  // namespace foreshard
