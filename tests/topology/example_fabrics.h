/// \file
/// A legal configuration of every fabric, for any number of nodes: for tests that must hold on all
/// of them. Each has several switches, and several paths where its kind has any.
#pragma once

#include <algorithm>
#include <string>

#include "topology/fabric_config.h"

namespace foreshard {

/// Two dimensions, as square as `points` allows.
inline std::vector<std::int64_t> squarest(std::int64_t points) {
  std::int64_t side = 1;
  for (std::int64_t i = 1; i * i <= points; ++i)
    if (points % i == 0) side = i;
  return {side, points / side};
}

/// Nodes in pairs under a leaf, leaves joined to two spines by cables as fast as a NIC.
inline CustomFabricConfig custom_leaves_and_spines(std::int64_t nodes) {
  CustomFabricConfig custom;
  custom.switches = {"top0", "top1"};
  for (std::int64_t leaf = 0; 2 * leaf < nodes; ++leaf) {
    const std::string name = "leaf" + std::to_string(leaf);
    custom.switches.push_back(name);
    for (std::int64_t node = 2 * leaf; node < std::min(nodes, 2 * leaf + 2); ++node)
      custom.cables.push_back(
          {.a = "node" + std::to_string(node) + "/nic*", .b = name, .bandwidth = {}});
    custom.cables.push_back({.a = name, .b = "top*", .bandwidth = {}});
  }
  return custom;
}

/// \param nics  of the whole cluster
inline FabricConfig example_fabric(const std::string& kind, std::int64_t nodes, std::int64_t nics) {
  FabricConfig config{.kind = kind};
  const auto gateways_needed = [&](std::int64_t per_group) {
    const std::int64_t groups = (nics + per_group - 1) / per_group;
    return std::max<std::int64_t>(1, groups / 2);  // of two gateways: at least groups - 1 in all
  };
  if (kind == "fat-tree" || kind == "rail-fat-tree" || kind == "dual-plane")
    config.nodes_per_pod = 2;
  if (kind == "rail-only") {
    config.levels = 2;
    config.nodes_per_pod = 2;
  }
  if (kind == "dragonfly")
    config.dragonfly = DragonflyConfig{.nics_per_router = 2,
                                       .routers_per_group = 2,
                                       .global_cables_per_router = gateways_needed(4)};
  if (kind == "dragonfly-plus")
    config.dragonfly_plus = DragonflyPlusConfig{.nics_per_leaf = 2,
                                                .leaves_per_group = 2,
                                                .spines_per_group = 2,
                                                .global_cables_per_spine = gateways_needed(4)};
  if (kind == "mesh" || kind == "torus") config.grid = GridConfig{.dims = squarest(nodes)};
  if (kind == "custom") config.custom = custom_leaves_and_spines(nodes);
  return config;
}

}  // namespace foreshard
