#include "topology/nodes/node_builder.h"

namespace foreshard {

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

}  // namespace foreshard
