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

/// A network adapter that the fabric gives its cable.
struct FabricPort {
  VertexId nic;
  std::string name{};        ///< Name of the NIC.
  std::int64_t node = 0;     ///< Index in the whole cluster.
  std::int64_t rail = 0;     ///< Index of the NIC in its node.
  BytesPerSecond bandwidth;  ///< Payload rate.
  Seconds latency;           ///< Latency of the adapter.
  double efficiency = 1;     ///< `bandwidth` / the adapter's nominal rate.
};

struct FabricPlan {
  FabricConfig config;
  std::vector<FabricPort> ports;  ///< Ascending (node, rail).
  std::int64_t nodes = 0;

  BytesPerSecond fastest_port() const;

  /// Merges switches that every flow uses in equal parts into one, with the bandwidth of all their
  /// links: the same loads with far fewer links. Only right while all cables are up and equal-cost
  /// paths share every flow (not for kEcmpHash).
  bool merged = false;
};

/// Cables one port to its switch.
void connect_port(ClusterView::Builder& builder, const FabricPort& port, VertexId to,
                  Seconds switch_latency);

/// What is wrong, and at which key of FabricConfig.
struct FabricFault {
  std::string key;
  std::string message;
  std::string help;
};

struct Fabric {
  std::string_view name;
  std::string_view summary;
  /// The keys of FabricConfig that the fabric uses, besides `kind` and `latency`.
  std::span<const std::string_view> keys;
  std::optional<FabricFault> (*fault)(const FabricPlan& plan);
  /// \pre !fault(plan)
  void (*build)(ClusterView::Builder& builder, const FabricPlan& plan);
};

/// All fabrics, sorted by name.
std::span<const Fabric> fabrics();
/// \return null for an unknown name.
const Fabric* find_fabric(std::string_view name);

/// A key of `config` that is given though its fabric does not use it; names the fabrics that do.
std::optional<FabricFault> fault_in_keys(const FabricConfig& config);

std::optional<FabricFault> fault_in_custom(const FabricPlan& plan);
void build_custom(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_dragonfly(const FabricPlan& plan);
void build_dragonfly(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_dragonfly_plus(const FabricPlan& plan);
void build_dragonfly_plus(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_dual_plane(const FabricPlan& plan);
void build_dual_plane(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_fat_tree(const FabricPlan& plan);
void build_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan);
void build_rail_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_grid(const FabricPlan& plan);
void build_mesh(ClusterView::Builder& builder, const FabricPlan& plan);
void build_torus(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_rail_only(const FabricPlan& plan);
void build_rail_only(ClusterView::Builder& builder, const FabricPlan& plan);
std::optional<FabricFault> fault_in_single_switch(const FabricPlan& plan);
void build_single_switch(ClusterView::Builder& builder, const FabricPlan& plan);

}  // namespace foreshard
