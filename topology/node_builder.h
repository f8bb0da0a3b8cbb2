/// \file
/// Adds the vertices and links of one host to a cluster, as its NodeConfig describes it. Each part
/// of a host that can be wired in its own way has its own file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/cluster_builder.h"
#include "topology/node_config.h"

namespace foreshard {

/// A network adapter that a fabric can join.
struct BuiltNic {
  VertexId vertex;
  BytesPerSecond bandwidth;  ///< Payload rate of its port.
  Seconds latency;
  double efficiency = 1;  ///< `bandwidth` over the nominal rate.
};

struct BuiltNode {
  std::int32_t node = 0;
  std::vector<DeviceId> gpus;
  std::vector<BuiltNic> nics;  ///< One per rail, in order.
  VertexId first;              ///< The node's vertices are [first, last).
  VertexId last;
};

/// GPUs, PCIe tree with NICs, NVLink where there is one, and links to CPUs where GPUs have their
/// own. Vertices are named "node3/gpu5", "node3/nvswitch", "node3/pcie0", "node3/socket1",
/// "node3/nic7".
BuiltNode build_node(ClusterView::Builder& builder, const NodeConfig& config, DeviceTypeId type);

/// GPU <-> switch, full duplex; the switch itself is non-blocking.
void add_nvlink_switch(ClusterView::Builder& builder, const NvlinkConfig& config,
                       const BuiltNode& node, const std::string& prefix);
/// GPU <-> GPU, the links of one pair as one.
void add_nvlink_mesh(ClusterView::Builder& builder, const NvlinkConfig& config,
                     const BuiltNode& node);
/// Sockets, switches under them in equal parts, GPUs and NICs under the switches.
/// \return the NICs.
std::vector<BuiltNic> add_pcie_tree(ClusterView::Builder& builder, const NodeConfig& config,
                                    const BuiltNode& node, const std::string& prefix);
/// GPU <-> its CPU. These CPUs are numbered after the `sockets` that exist already.
void add_cpu_links(ClusterView::Builder& builder, const CpuLinkConfig& config,
                   const BuiltNode& node, const std::string& prefix, std::size_t sockets);
/// Socket -> its memory: one link for reads and writes, for each socket among the
/// vertices [first, last) of the node. Memories are named "node3/memory1".
void add_cpu_memory(ClusterView::Builder& builder, BytesPerSecond bandwidth, double efficiency,
                    std::int32_t node, VertexId first, VertexId last);
/// Link by link, as in the config.
/// \return the NICs.
std::vector<BuiltNic> add_wiring(ClusterView::Builder& builder, const WiringConfig& config,
                                 const BuiltNode& node, const std::string& prefix);

}  // namespace foreshard
