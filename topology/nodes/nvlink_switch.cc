#include "topology/nodes/node_builder.h"

namespace foreshard {

void add_nvlink_switch(ClusterView::Builder& builder, const NvlinkConfig& config,
                       const BuiltNode& node, const std::string& prefix) {
  const auto hub = builder.add_vertex(VertexKind::kNvSwitch, prefix + "nvswitch", node.node);
  const DuplexLink link{LinkKind::kNvLink, *config.bandwidth * *config.efficiency, *config.latency,
                        *config.efficiency};
  for (const auto gpu : node.gpus) builder.connect(builder.vertex_of(gpu), hub, link);
}

}  // namespace foreshard
