/// \file
/// Folded-Clos networks ("fat trees") of any number of levels.
///
///     level 1   leaves, in pods of nodes
///     level 2   per block of pods: spines; each leaf of the block has one cable to each of them
///     level l   per block of blocks: every switch of a block below has its own set of switches
///               above (its plane), one cable to each, where it meets the switches that stand in
///               the same place of the other blocks
///
/// A leaf has  ceil(down / (oversubscription x cable))  uplinks, `down` being the bandwidth of the
/// fullest leaf's ports; a cable's bandwidth is then set so that the uplinks together have exactly
/// down / oversubscription. Higher levels are sized in the same way, with `down` as the bandwidth
/// below their fullest switch.
/// Source: Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", IEEE
/// Trans. Computers 34(10), 1985; Petrini and Vanneschi, "k-ary n-trees", IPPS 1997.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "topology/fabrics/fabric.h"

namespace foreshard::internal {

inline constexpr std::int64_t kDefaultLevels = 2;
inline constexpr std::int64_t kDefaultNodesPerPod = 32;

enum class LeafPer : std::uint8_t { kPod, kRail };

struct ClosPlan {
  std::span<const FabricPort> ports;
  std::int64_t nodes = 0;
  std::int64_t levels = kDefaultLevels;
  std::int64_t nodes_per_pod = kDefaultNodesPerPod;
  LeafPer leaf_per = LeafPer::kPod;
  bool merged = false;   ///< See FabricPlan::merged.
  std::string prefix{};  ///< Start of its switches' names.
};

/// Cables the ports to leaves (one per pod, or one per rail and pod), and adds the levels above.
/// Nothing is added above a level at which all nodes have met.
/// \pre !fault_in_clos(config, ...)
void build_clos(ClusterView::Builder& builder, const FabricConfig& config, const ClosPlan& plan);

/// All ports on one switch.
void build_switch(ClusterView::Builder& builder, const FabricConfig& config,
                  std::span<const FabricPort> ports, const std::string& name);

std::optional<FabricFault> fault_in_clos(const FabricConfig& config, std::int64_t nodes,
                                         std::int64_t levels, std::int64_t nodes_per_pod);

}  // namespace foreshard::internal
