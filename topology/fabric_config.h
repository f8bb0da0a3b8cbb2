/// \file
/// The network between hosts in YAML:
///
///     fabric: {kind: rail-fat-tree, levels: 2, nodes_per_pod: 16, oversubscription: [2]}
///     fabric: {kind: torus, grid: {dims: [4, 4, 8]}}
///
/// A key that the fabric does not use is an error (Fabric::keys). docs/fabrics.md shows them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

/// Sizes of a dragonfly; letters as in Kim et al., ISCA 2008. All routers of a group are joined to
/// each other.
struct DragonflyConfig {
  std::int64_t nics_per_router = 1;           ///< p
  std::int64_t routers_per_group = 1;         ///< a
  std::int64_t global_cables_per_router = 1;  ///< h
  std::optional<std::int64_t> groups{};       ///< g; default: as many as the NICs fill.
  std::optional<BytesPerSecond> local_bandwidth{};
  std::optional<BytesPerSecond> global_bandwidth{};
};

/// Sizes of a dragonfly+. In a group, every leaf is joined to every spine; global cables leave from
/// spines.
struct DragonflyPlusConfig {
  std::int64_t nics_per_leaf = 1;
  std::int64_t leaves_per_group = 1;
  std::int64_t spines_per_group = 1;
  std::int64_t global_cables_per_spine = 1;
  std::optional<std::int64_t> groups{};
  std::optional<BytesPerSecond> local_bandwidth{};
  std::optional<BytesPerSecond> global_bandwidth{};
};

enum class GridEnds : std::uint8_t {
  kNodes,  ///< All NICs of a node at the router of its point.
  kNics,   ///< One NIC at each router.
};

/// Sizes of a torus or a mesh.
struct GridConfig {
  std::vector<std::int64_t> dims{};
  GridEnds ends = GridEnds::kNodes;
  std::optional<BytesPerSecond> bandwidth{};  ///< Rate of one cable between routers.
};

enum class PlaneSplit : std::uint8_t {
  kPorts,  ///< Every NIC has a port in every plane, each with an equal part of its bandwidth.
  kNics,   ///< NIC i of a node is in plane i mod `count`.
};

struct PlanesConfig {
  std::int64_t count = 2;
  PlaneSplit split = PlaneSplit::kPorts;
  std::string fabric = "rail-fat-tree";  ///< Fabric of each plane.
};

/// Both directions of one or several equal cables.
struct CableConfig {
  std::string a{};  ///< A switch, or a selector of NICs ("node*/nic0").
  std::string b{};
  std::optional<BytesPerSecond> bandwidth{};  ///< Rate of one cable.
  std::int64_t count = 1;
};

struct CustomFabricConfig {
  std::vector<std::string> switches{};
  std::vector<CableConfig> cables{};
};

struct FabricConfig {
  std::string kind = "single-switch";  ///< The name of a fabric (fabrics/fabric.h).
  std::optional<std::int64_t> levels{};
  std::optional<std::int64_t> nodes_per_pod{};
  std::vector<std::int64_t> pods_per_block{};
  std::vector<double> oversubscription{};
  std::optional<BytesPerSecond> uplink_bandwidth{};
  std::optional<DragonflyConfig> dragonfly{};
  std::optional<DragonflyPlusConfig> dragonfly_plus{};
  std::optional<GridConfig> grid{};
  std::optional<PlanesConfig> planes{};
  std::optional<CustomFabricConfig> custom{};
  yaml::Sourced<Seconds> latency{0.13_us, "NVIDIA Quantum QM8700 data sheet: 130 ns",
                                 yaml::Evidence::kDatasheet};

  /// Oversubscription of the uplinks of `level` (1, 2, ...); 1 if it is not listed.
  double oversubscription_of(std::int64_t level) const;
};

const yaml::Names<GridEnds>& yaml_names(const GridEnds*);
const yaml::Names<PlaneSplit>& yaml_names(const PlaneSplit*);
const yaml::Table<DragonflyConfig>& yaml_table(const DragonflyConfig*);
const yaml::Table<DragonflyPlusConfig>& yaml_table(const DragonflyPlusConfig*);
const yaml::Table<GridConfig>& yaml_table(const GridConfig*);
const yaml::Table<PlanesConfig>& yaml_table(const PlanesConfig*);
const yaml::Table<CableConfig>& yaml_table(const CableConfig*);
const yaml::Table<CustomFabricConfig>& yaml_table(const CustomFabricConfig*);
const yaml::Table<FabricConfig>& yaml_table(const FabricConfig*);

}  // namespace foreshard
