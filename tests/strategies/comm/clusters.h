/// \file
/// Small clusters whose loads can be worked out by hand.
#pragma once

#include <cstdint>

#include "strategies/comm/collective.h"
#include "topology/cluster_view.h"

namespace foreshard::comm {

/// `devices` on one NVLink switch: 1 us and 100 GB/s each way.
ClusterView star(std::int32_t devices);
/// Four devices, each pair joined by its own 100 GB/s NVLink of 1 us.
ClusterView mesh_of_four();
/// Nodes of `per_node` devices on an NVLink switch (200 GB/s, 1 us), each device with its own NIC
/// (PCIe 50 GB/s, 0.5 us; cable 25 GB/s, 1 us) to the leaf switch of its rail; the leaves hang on
/// one spine (100 GB/s, 1 us).
/// \param sharp  the network's switches add up.
ClusterView rails(std::int32_t nodes, std::int32_t per_node, bool sharp = false);
/// Nodes of `per_node` devices on a PCIe switch (50 GB/s, 0.5 us), with one NIC to a switch of the
/// network, which adds up.
ClusterView pcie_nodes(std::int32_t nodes, std::int32_t per_node);
/// One device per node; leaves of two nodes each under one spine, all at 10 GB/s.
ClusterView two_leaves();

/// The first `count` devices.
Participants first(const ClusterView& cluster, std::int32_t count);
Participants everyone(const ClusterView& cluster);

/// Load of the only link from `from` to `to`, by vertex name; 0 if it carries nothing.
double load_between(const ClusterView& cluster, const FlatCollective& flat, const char* from,
                    const char* to);

}  // namespace foreshard::comm
