#include "topology/node_builder.h"

#include <algorithm>
#include <map>
#include <string>

namespace foreshard {

BuiltNode build_node(ClusterView::Builder& builder, const NodeConfig& config, DeviceTypeId type) {
  BuiltNode node;
  Host host{.launch_time = *config.host.launch_time, .transport = {}, .speed = *config.host.speed};
  if (config.nics && config.nics->transport) host.transport = **config.nics->transport;
  node.node = builder.add_node(host);
  const std::string prefix = "node" + std::to_string(node.node) + "/";
  node.first = VertexId{static_cast<std::int64_t>(builder.vertices().size())};
  for (std::int64_t i = 0; i < config.gpus; ++i)
    node.gpus.push_back(builder.add_device(type, prefix + "gpu" + std::to_string(i), node.node));
  const auto close = [&] {
    node.last = VertexId{static_cast<std::int64_t>(builder.vertices().size())};
  };
  if (config.wiring) {
    node.nics = add_wiring(builder, *config.wiring, node, prefix);
    close();
    return node;
  }
  if (config.nvlink && config.nvlink->layout == NvlinkLayout::kSwitch) {
    add_nvlink_switch(builder, *config.nvlink, node, prefix);
  } else if (config.nvlink) {
    add_nvlink_mesh(builder, *config.nvlink, node);
  }
  node.nics = add_pcie_tree(builder, config, node, prefix);
  if (config.cpu.link) {
    const auto sockets = std::min(config.pcie.sockets, pcie_switches(config));
    add_cpu_links(builder, *config.cpu.link, node, prefix, static_cast<std::size_t>(sockets));
  }
  close();
  return node;
}

void add_cpu_links(ClusterView::Builder& builder, const CpuLinkConfig& config,
                   const BuiltNode& node, const std::string& prefix, std::size_t sockets) {
  const DuplexLink link{LinkKind::kNvLink, *config.bandwidth * *config.efficiency, *config.latency,
                        *config.efficiency};
  const auto share = static_cast<std::size_t>(config.gpus);
  VertexId cpu;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (i % share == 0)
      cpu = builder.add_vertex(VertexKind::kSocket,
                               prefix + "socket" + std::to_string(sockets + i / share), node.node);
    builder.connect(builder.vertex_of(node.gpus[i]), cpu, link);
  }
}

void add_cpu_memory(ClusterView::Builder& builder, BytesPerSecond bandwidth, double efficiency,
                    std::int32_t node, VertexId first, VertexId last) {
  std::int64_t number = 0;
  for (std::int64_t v = first.value(); v < last.value(); ++v) {
    const Vertex socket = builder.vertices()[static_cast<std::size_t>(v)];
    if (socket.kind != VertexKind::kSocket) continue;
    const std::string name = "node" + std::to_string(node) + "/memory" + std::to_string(number++);
    const VertexId memory = builder.add_vertex(VertexKind::kMemory, name, node);
    builder.add_link({.from = VertexId{v},
                      .to = memory,
                      .kind = LinkKind::kMemory,
                      .bandwidth = bandwidth * efficiency,
                      .latency = {},
                      .efficiency = efficiency});
  }
}

void add_nvlink_mesh(ClusterView::Builder& builder, const NvlinkConfig& config,
                     const BuiltNode& node) {
  builder.allow_nvlink_relays();
  const auto join = [&](std::size_t a, std::size_t b, std::int64_t links) {
    builder.connect(
        builder.vertex_of(node.gpus[a]), builder.vertex_of(node.gpus[b]),
        {LinkKind::kNvLink, static_cast<double>(links) * (*config.bandwidth * *config.efficiency),
         *config.latency, *config.efficiency});
  };
  for (const auto& pair : config.pairs)
    join(static_cast<std::size_t>(pair.a), static_cast<std::size_t>(pair.b), pair.links);
  if (!config.pairs.empty()) return;
  for (std::size_t a = 0; a < node.gpus.size(); ++a)
    for (std::size_t b = a + 1; b < node.gpus.size(); ++b) join(a, b, config.links_per_pair);
}

void add_nvlink_switch(ClusterView::Builder& builder, const NvlinkConfig& config,
                       const BuiltNode& node, const std::string& prefix) {
  const auto count = static_cast<std::size_t>(config.switches);
  DuplexLink link{LinkKind::kNvLink, *config.bandwidth * *config.efficiency, *config.latency,
                  *config.efficiency};
  std::vector<VertexId> hubs;
  for (std::size_t i = 0; i < count; ++i)
    hubs.push_back(builder.add_vertex(VertexKind::kNvSwitch,
                                      prefix + "nvswitch" + (count == 1 ? "" : std::to_string(i)),
                                      node.node));
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    builder.connect(builder.vertex_of(node.gpus[i]), hubs[i * count / node.gpus.size()], link);
  const std::size_t gpus_per_hub = node.gpus.size() / count;
  link.bandwidth = static_cast<double>(gpus_per_hub) * link.bandwidth;
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) builder.connect(hubs[a], hubs[b], link);
}

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
