#include "topology/fabric_config.h"

#include "topology/fabrics/fabric.h"

namespace foreshard {
namespace {

constexpr double kMostSwitches = 1e6;
constexpr double kMostPorts = 1e4;
constexpr BytesPerSecond kFastestCable = 1000_TB_s;

std::vector<std::string> fabric_names() {
  std::vector<std::string> names;
  names.reserve(fabrics().size());
  for (const auto& fabric : fabrics()) names.emplace_back(fabric.name);
  return names;
}

}  // namespace

double FabricConfig::oversubscription_of(std::int64_t level) const {
  const auto index = static_cast<std::size_t>(level - 1);
  return index < oversubscription.size() ? oversubscription[index] : 1.0;
}

const yaml::Names<GridEnds>& yaml_names(const GridEnds*) {
  static const yaml::Names<GridEnds> names{
      {"nodes", GridEnds::kNodes, "All NICs of a node at the router of its point."},
      {"nics", GridEnds::kNics, "One NIC at each router."},
  };
  return names;
}

const yaml::Names<PlaneSplit>& yaml_names(const PlaneSplit*) {
  static const yaml::Names<PlaneSplit> names{
      {"ports", PlaneSplit::kPorts,
       "Every NIC has a port in every plane, each with an equal part of its bandwidth."},
      {"nics", PlaneSplit::kNics,
       "NIC i of a node is in plane i modulo their number; planes do not meet (pxn)."},
  };
  return names;
}

const yaml::Table<DragonflyConfig>& yaml_table(const DragonflyConfig*) {
  using D = DragonflyConfig;
  static const auto table =
      yaml::Table<D>("dragonfly", "Groups of routers joined each to each, and global cables.")
          .required("nics_per_router", &D::nics_per_router, "p: NICs at one router.",
                    yaml::between(1, kMostPorts))
          .required("routers_per_group", &D::routers_per_group,
                    "a: routers of a group, joined each to each.", yaml::between(1, kMostPorts))
          .required("global_cables_per_router", &D::global_cables_per_router,
                    "h: cables of a router to other groups.", yaml::between(0, kMostPorts))
          .optional("groups", &D::groups,
                    "g: number of groups; by default as many as the NICs fill.",
                    yaml::between(1, kMostSwitches))
          .optional("local_bandwidth", &D::local_bandwidth,
                    "Payload rate of one cable inside a group; by default that of a NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable))
          .optional("global_bandwidth", &D::global_bandwidth,
                    "Payload rate of one cable between groups; by default that of a NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable));
  return table;
}

const yaml::Table<DragonflyPlusConfig>& yaml_table(const DragonflyPlusConfig*) {
  using D = DragonflyPlusConfig;
  static const auto table =
      yaml::Table<D>("dragonfly_plus", "Groups of leaves and spines; global cables join spines.")
          .required("nics_per_leaf", &D::nics_per_leaf, "NICs at one leaf switch.",
                    yaml::between(1, kMostPorts))
          .required("leaves_per_group", &D::leaves_per_group,
                    "Leaf switches of a group, each joined to each of its spines.",
                    yaml::between(1, kMostPorts))
          .required("spines_per_group", &D::spines_per_group, "Spine switches of a group.",
                    yaml::between(1, kMostPorts))
          .required("global_cables_per_spine", &D::global_cables_per_spine,
                    "Cables of a spine to other groups.", yaml::between(0, kMostPorts))
          .optional("groups", &D::groups, "Number of groups; by default as many as the NICs fill.",
                    yaml::between(1, kMostSwitches))
          .optional("local_bandwidth", &D::local_bandwidth,
                    "Payload rate of one cable inside a group; by default that of a NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable))
          .optional("global_bandwidth", &D::global_bandwidth,
                    "Payload rate of one cable between groups; by default that of a NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable));
  return table;
}

const yaml::Table<GridConfig>& yaml_table(const GridConfig*) {
  using G = GridConfig;
  static const auto table =
      yaml::Table<G>("grid", "A router at each point of a torus or mesh.")
          .required("dims", &G::dims,
                    "Size of each dimension. Points are numbered with the last dimension fastest, "
                    "and nodes take them in order.",
                    yaml::non_empty(), yaml::between(1, kMostSwitches))
          .optional("ends", &G::ends, "What is attached to a router.")
          .optional("bandwidth", &G::bandwidth,
                    "Payload rate of one cable between routers; by default that of all NICs at a "
                    "router together.",
                    yaml::positive(), yaml::at_most(kFastestCable));
  return table;
}

const yaml::Table<PlanesConfig>& yaml_table(const PlanesConfig*) {
  using P = PlanesConfig;
  static const auto table =
      yaml::Table<P>("planes", "Equal networks side by side that meet in the hosts only.")
          .optional("count", &P::count, "Number of planes.", yaml::between(1, 64))
          .optional("split", &P::split, "How NICs or ports are split over the planes.")
          .optional("fabric", &P::fabric,
                    "The fabric of each plane; its keys (`levels`, ...) stand beside `planes`.",
                    yaml::one_of({"fat-tree", "rail-fat-tree", "single-switch"}));
  return table;
}

const yaml::Table<CableConfig>& yaml_table(const CableConfig*) {
  using C = CableConfig;
  static const auto table =
      yaml::Table<C>("cable", "One or several equal cables.")
          .required("a", &C::a,
                    "A switch, or NICs: 'node3/nic0', 'node[0-7,9]/nic[0-3]'; * stands for any "
                    "text, ? for "
                    "any character.",
                    yaml::non_empty())
          .required("b", &C::b, "The other end.", yaml::non_empty())
          .optional("bandwidth", &C::bandwidth,
                    "Payload rate of one direction of one of them; by default an equal part of the "
                    "NIC's, between switches that of the fastest NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable))
          .optional("count", &C::count, "Number of equal cables side by side.",
                    yaml::between(1, kMostPorts));
  return table;
}

const yaml::Table<CustomFabricConfig>& yaml_table(const CustomFabricConfig*) {
  using C = CustomFabricConfig;
  static const auto table =
      yaml::Table<C>("custom", "Switches and cables one by one.")
          .optional("switches", &C::switches, "Names of the switches.", yaml::non_empty())
          .required("cables", &C::cables, "The cables between switches and NICs.",
                    yaml::non_empty());
  return table;
}

const yaml::Table<FabricConfig>& yaml_table(const FabricConfig*) {
  using F = FabricConfig;
  static const auto table =
      yaml::Table<F>("fabric", "The network between hosts.")
          .required("kind", &F::kind, "How switches are arranged.", yaml::one_of(fabric_names()))
          .optional("levels", &F::levels,
                    "Levels of switches: 1 (leaves only), 2 (leaves and spines) or 3 (and a core). "
                    "By default 2, for rail-only 1.",
                    yaml::between(1, 5))
          .optional("nodes_per_pod", &F::nodes_per_pod,
                    "Nodes under the same leaf switches. By default 32, for rail-only all.",
                    yaml::between(1, kMostSwitches))
          .optional("pods_per_block", &F::pods_per_block,
                    "From 3 levels on: how many groups of one level the next one joins, from level "
                    "2 up; the top level joins all.",
                    yaml::at_least(1))
          .optional("oversubscription", &F::oversubscription,
                    "Bandwidth below divided by bandwidth above, for each level from the leaves "
                    "up. Levels that are not listed have 1.",
                    yaml::between(1e-3, 1e3))
          .optional("uplink_bandwidth", &F::uplink_bandwidth,
                    "Payload rate of one cable between switches; by default that of a NIC.",
                    yaml::positive(), yaml::at_most(kFastestCable))
          .optional("dragonfly", &F::dragonfly, "Sizes of a dragonfly.")
          .optional("dragonfly_plus", &F::dragonfly_plus, "Sizes of a dragonfly-plus.")
          .optional("grid", &F::grid, "Dimensions of a torus or mesh.")
          .optional("planes", &F::planes, "The planes of dual-plane.")
          .optional("custom", &F::custom, "Switches and cables of a custom fabric.")
          .optional("latency", &F::latency, "Latency of one switch.", yaml::non_negative(),
                    yaml::at_most(1_s));
  return table;
}

}  // namespace foreshard
