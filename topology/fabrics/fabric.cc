// The table of fabrics; a new one gets a line here, in the order of names. What reads a cluster
// file calls a fabric through it: first `fault`, then `build`.
#include "topology/fabrics/fabric.h"

#include <algorithm>
#include <array>

namespace foreshard {
namespace {

using Keys = std::array<std::string_view, 5>;
constexpr Keys kClosKeys{"levels", "nodes_per_pod", "pods_per_block", "oversubscription",
                         "uplink_bandwidth"};
constexpr std::array<std::string_view, 6> kPlanesKeys{
    "planes", "levels", "nodes_per_pod", "pods_per_block", "oversubscription", "uplink_bandwidth"};
constexpr std::array<std::string_view, 1> kCustomKeys{"custom"};
constexpr std::array<std::string_view, 1> kDragonflyKeys{"dragonfly"};
constexpr std::array<std::string_view, 1> kDragonflyPlusKeys{"dragonfly_plus"};
constexpr std::array<std::string_view, 1> kGridKeys{"grid"};

constexpr std::array kFabrics{
    Fabric{"custom", "Switches and cables one by one, as written.", kCustomKeys, fault_in_custom,
           build_custom},
    Fabric{"dragonfly", "Groups of routers joined each to each; global cables between groups.",
           kDragonflyKeys, fault_in_dragonfly, build_dragonfly},
    Fabric{"dragonfly-plus", "Groups of leaves and spines; global cables between their spines.",
           kDragonflyPlusKeys, fault_in_dragonfly_plus, build_dragonfly_plus},
    Fabric{"dual-plane", "Two or more equal networks side by side, NICs split over them.",
           kPlanesKeys, fault_in_dual_plane, build_dual_plane},
    Fabric{"fat-tree", "All NICs of a pod's nodes on one leaf switch; levels of spines above.",
           kClosKeys, fault_in_fat_tree, build_fat_tree},
    Fabric{"mesh", "A router at each point of a grid, joined to its neighbours.", kGridKeys,
           fault_in_grid, build_mesh},
    Fabric{"rail-fat-tree", "In each pod one leaf switch per NIC index (rail); spines above.",
           kClosKeys, fault_in_fat_tree, build_rail_fat_tree},
    Fabric{"rail-only", "One network per NIC index (rail); rails meet only inside of hosts.",
           kClosKeys, fault_in_rail_only, build_rail_only},
    Fabric{"single-switch",
           "All NICs on one non-blocking switch.",
           {},
           fault_in_single_switch,
           build_single_switch},
    Fabric{"torus", "A mesh whose lines are closed to rings.", kGridKeys, fault_in_grid,
           build_torus},
};
static_assert(std::ranges::is_sorted(kFabrics, {}, &Fabric::name));

bool uses(const Fabric& fabric, std::string_view key) {
  return std::ranges::find(fabric.keys, key) != fabric.keys.end();
}

}  // namespace

std::span<const Fabric> fabrics() {
  return kFabrics;
}

const Fabric* find_fabric(std::string_view name) {
  const auto* found = std::ranges::find(kFabrics, name, &Fabric::name);
  return found == kFabrics.end() ? nullptr : found;
}

BytesPerSecond FabricPlan::fastest_port() const {
  BytesPerSecond fastest;
  for (const auto& port : ports) fastest = std::max(fastest, port.bandwidth);
  return fastest;
}

void connect_port(ClusterView::Builder& builder, const FabricPort& port, VertexId to,
                  Seconds switch_latency) {
  builder.connect(port.nic, to,
                  {.kind = LinkKind::kNetwork,
                   .bandwidth = port.bandwidth,
                   .latency = port.latency + 0.5 * switch_latency,
                   .efficiency = port.efficiency});
}

std::optional<FabricFault> fault_in_keys(const FabricConfig& config) {
  const Fabric* fabric = find_fabric(config.kind);
  if (fabric == nullptr)
    return FabricFault{"kind", "no fabric is called '" + config.kind + "'", ""};
  const std::array<std::pair<std::string_view, bool>, 10> given{{
      {"levels", config.levels.has_value()},
      {"nodes_per_pod", config.nodes_per_pod.has_value()},
      {"pods_per_block", !config.pods_per_block.empty()},
      {"oversubscription", !config.oversubscription.empty()},
      {"uplink_bandwidth", config.uplink_bandwidth.has_value()},
      {"dragonfly", config.dragonfly.has_value()},
      {"dragonfly_plus", config.dragonfly_plus.has_value()},
      {"grid", config.grid.has_value()},
      {"planes", config.planes.has_value()},
      {"custom", config.custom.has_value()},
  }};
  for (const auto& [key, present] : given) {
    if (!present || uses(*fabric, key)) continue;
    std::string users;
    for (const auto& other : kFabrics)
      if (uses(other, key)) users += (users.empty() ? "" : ", ") + std::string(other.name);
    return FabricFault{std::string(key),
                       "a " + config.kind + " fabric does not use '" + std::string(key) + "'",
                       "it belongs to " + users};
  }
  return std::nullopt;
}

}  // namespace foreshard
