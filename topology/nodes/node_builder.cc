#include "topology/nodes/node_builder.h"

#include <algorithm>

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

}  // namespace foreshard
