#include "topology/nodes/node_builder.h"

namespace foreshard {

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

}  // namespace foreshard
