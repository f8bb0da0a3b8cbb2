#include <string>

#include "topology/nodes/node_builder.h"

namespace foreshard {

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

}  // namespace foreshard
