#include "tests/strategies/comm/clusters.h"

#include <string>
#include <utility>
#include <vector>

#include "topology/cluster_builder.h"

namespace foreshard::comm {
namespace {

DeviceType plain_device() {
  DeviceType type;
  type.name = "plain";
  type.multiprocessors.value = 100;
  return type;
}

std::string numbered(const char* name, std::int32_t i) {
  return name + std::to_string(i);
}

constexpr DuplexLink kNvlink{.kind = LinkKind::kNvLink, .bandwidth = 100_GB_s, .latency = 1_us};

}  // namespace

ClusterView star(std::int32_t devices) {
  ClusterView::Builder builder("star");
  const auto type = builder.add_device_type(plain_device());
  const auto node = builder.add_node();
  const auto hub = builder.add_vertex(VertexKind::kNvSwitch, "hub", node);
  for (std::int32_t i = 0; i < devices; ++i) {
    const auto device = builder.add_device(type, numbered("gpu", i), node);
    builder.connect(builder.vertex_of(device), hub, kNvlink);
  }
  return std::move(builder).build();
}

ClusterView mesh_of_four() {
  ClusterView::Builder builder("mesh");
  const auto type = builder.add_device_type(plain_device());
  const auto node = builder.add_node();
  std::vector<DeviceId> devices;
  for (std::int32_t i = 0; i < 4; ++i) {
    devices.push_back(builder.add_device(type, numbered("gpu", i), node));
    for (std::size_t other = 0; other + 1 < devices.size(); ++other)
      builder.connect(builder.vertex_of(devices[other]), builder.vertex_of(devices.back()),
                      kNvlink);
  }
  return std::move(builder).build();
}

ClusterView rails(std::int32_t nodes, std::int32_t per_node, bool sharp) {
  ClusterView::Builder builder("rails");
  builder.set_reduces_in_network(sharp);
  const auto type = builder.add_device_type(plain_device());
  const auto spine = builder.add_vertex(VertexKind::kSwitch, "spine");
  std::vector<VertexId> leaves;
  for (std::int32_t rail = 0; rail < per_node; ++rail) {
    leaves.push_back(builder.add_vertex(VertexKind::kSwitch, numbered("leaf", rail)));
    builder.connect(leaves.back(), spine, {LinkKind::kNetwork, 100_GB_s, 1_us});
  }
  for (std::int32_t i = 0; i < nodes; ++i) {
    const auto node = builder.add_node();
    const auto hub = builder.add_vertex(VertexKind::kNvSwitch, numbered("hub", i), node);
    for (std::int32_t rail = 0; rail < per_node; ++rail) {
      const std::string place = numbered("", i) + "." + std::to_string(rail);
      const auto device = builder.add_device(type, "gpu" + place, node);
      const auto nic = builder.add_vertex(VertexKind::kNic, "nic" + place, node);
      builder.connect(builder.vertex_of(device), hub, {LinkKind::kNvLink, 200_GB_s, 1_us});
      builder.connect(builder.vertex_of(device), nic, {LinkKind::kPcie, 50_GB_s, 0.5_us});
      builder.connect(nic, leaves[static_cast<std::size_t>(rail)],
                      {LinkKind::kNetwork, 25_GB_s, 1_us});
    }
  }
  return std::move(builder).build();
}

ClusterView pcie_nodes(std::int32_t nodes, std::int32_t per_node) {
  ClusterView::Builder builder("pcie nodes");
  builder.set_reduces_in_network(true);
  const auto type = builder.add_device_type(plain_device());
  const DuplexLink lanes{LinkKind::kPcie, 50_GB_s, 0.5_us};
  const auto spine = builder.add_vertex(VertexKind::kSwitch, "spine");
  for (std::int32_t i = 0; i < nodes; ++i) {
    const auto node = builder.add_node();
    const auto hub = builder.add_vertex(VertexKind::kPcieSwitch, numbered("hub", i), node);
    const auto nic = builder.add_vertex(VertexKind::kNic, numbered("nic", i), node);
    builder.connect(hub, nic, lanes);
    builder.connect(nic, spine, {LinkKind::kNetwork, 25_GB_s, 1_us});
    for (std::int32_t j = 0; j < per_node; ++j) {
      const auto device = builder.add_device(type, numbered("gpu", per_node * i + j), node);
      builder.connect(builder.vertex_of(device), hub, lanes);
    }
  }
  return std::move(builder).build();
}

ClusterView two_leaves() {
  ClusterView::Builder builder("two leaves");
  const auto type = builder.add_device_type(plain_device());
  const DuplexLink cable{LinkKind::kNetwork, 10_GB_s, 1_us};
  const auto spine = builder.add_vertex(VertexKind::kSwitch, "spine");
  for (std::int32_t leaf = 0; leaf < 2; ++leaf) {
    const auto rack = builder.add_vertex(VertexKind::kSwitch, numbered("leaf", leaf));
    builder.connect(rack, spine, cable);
    for (std::int32_t i = 0; i < 2; ++i) {
      const auto node = builder.add_node();
      const auto device = builder.add_device(type, numbered("gpu", 2 * leaf + i), node);
      const auto nic = builder.add_vertex(VertexKind::kNic, numbered("nic", 2 * leaf + i), node);
      builder.connect(builder.vertex_of(device), nic, {LinkKind::kPcie, 20_GB_s, 0_s});
      builder.connect(nic, rack, cable);
    }
  }
  return std::move(builder).build();
}

Participants first(const ClusterView& cluster, std::int32_t count) {
  Participants group{.cluster = &cluster, .devices = {}, .flow = 0};
  for (std::int32_t i = 0; i < count; ++i) group.devices.emplace_back(i);
  return group;
}

Participants everyone(const ClusterView& cluster) {
  return first(cluster, static_cast<std::int32_t>(cluster.devices().size()));
}

double load_between(const ClusterView& cluster, const FlatCollective& flat, const char* from,
                    const char* to) {
  for (const LinkLoad& load : flat.loads) {
    const Link& link = cluster.links()[load.link.index()];
    if (cluster.vertices()[link.from.index()].name == from &&
        cluster.vertices()[link.to.index()].name == to)
      return load.bytes_per_byte;
  }
  return 0;
}

}  // namespace foreshard::comm
