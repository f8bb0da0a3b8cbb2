/// \file
/// What dragonfly and dragonfly+ share: filling groups with ports, and the global cables between
/// groups.
///
/// Group i's global ports are numbered over its gateways (h at each). In layer t of g-1 ports, port
/// t(g-1) + d-1 leads to group i+d (modulo g), d = 1..g-1, whose port t(g-1) + g-d-1 leads back.
/// Every pair of groups thus has  k = floor(gateways x h / (g-1))  cables, and rotating all groups
/// maps the fabric to itself; ports that do not fill a layer stay free.
/// Source: "relative" or palm-tree arrangement: Camarero, Vallejo and Beivide, "Topological
/// characterization of Hamming and dragonfly networks and its implications on routing", ACM TACO
/// 11(4), 2014.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabrics/fabric.h"

namespace foreshard::internal {

/// Hops that a global cable counts as: one global and two local cables beat two global cables.
inline constexpr std::int32_t kGlobalHops = 3;

struct GroupSizes {
  std::string key;                   ///< Key of FabricConfig.
  std::int64_t nics_per_switch = 1;  ///< NICs per switch that has any.
  std::int64_t switches = 1;         ///< Switches with NICs per group.
  std::int64_t gateways = 1;         ///< Switches with global cables per group.
  std::int64_t cables = 1;           ///< Global cables per gateway.
  std::optional<std::int64_t> groups{};
};

/// The number of groups: as given, or as many as the ports fill.
std::int64_t group_count(const GroupSizes& sizes, const FabricPlan& plan);

/// Too few groups for the ports, or too few global cables for the groups.
std::optional<FabricFault> fault_in_groups(const GroupSizes& sizes, const FabricPlan& plan);

/// \param gateways  by group
void join_groups(ClusterView::Builder& builder, const std::vector<std::vector<VertexId>>& gateways,
                 std::int64_t cables, DuplexLink link);

/// Port i at switch i / nics_per_switch, counted through all groups.
void fill_groups(ClusterView::Builder& builder, const FabricPlan& plan,
                 const std::vector<std::vector<VertexId>>& switches, std::int64_t nics_per_switch);

}  // namespace foreshard::internal
