/// \file
/// How hosts are joined, by name. To add a fabric: its .cc, its declaration below, and one line in
/// the table of fabric.cc; fabric_contract_test.cc then holds it to what all must obey.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster_builder.h"
#include "topology/fabric_config.h"

namespace foreshard {

/// A network adapter that waits for its cable.
struct FabricPort {
  VertexId nic;
  std::int64_t node = 0;     ///< Counted over the whole cluster.
  std::int64_t rail = 0;     ///< Index of the NIC in its node.
  BytesPerSecond bandwidth;  ///< Payload rate.
  Seconds latency;           ///< Of the adapter.
};

struct FabricPlan {
  FabricConfig config;
  std::vector<FabricPort> ports;  ///< Ascending (node, rail).
  std::int64_t nodes = 0;
  /// Switches that every flow uses in equal parts are drawn as one, with all their links'
  /// bandwidth: the same loads with far fewer links. Only right for kSpread with all of them up.
  bool merged = false;
};

/// What is wrong, at which key of FabricConfig.
struct FabricFault {
  std::string key;
  std::string message;
  std::string help;
};

struct Fabric {
  std::string_view name;
  std::string_view summary;
  std::optional<FabricFault> (*fault)(const FabricPlan& plan);
  /// \pre !fault(plan)
  void (*build)(ClusterView::Builder& builder, const FabricPlan& plan);
};

/// All fabrics, sorted by name.
std::span<const Fabric> fabrics();
/// \return null for an unknown name.
const Fabric* find_fabric(std::string_view name);

std::optional<FabricFault> fault_in_fat_tree(const FabricPlan& plan);
void build_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan);
void build_rail_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_single_switch(const FabricPlan& plan);
void build_single_switch(ClusterView::Builder& builder, const FabricPlan& plan);

}  // namespace foreshard
