// Each fabric as it should be wired: bisection, degrees and symmetry, worked out by hand.

#include "example_fabrics.h"
#include "small_clusters.h"
#include "tests/test.h"

#include "topology/summary.h"

namespace foreshard::fabric_shapes_test {

double bisection(const ClusterConfig& config) {
  return *bisection_bandwidth(must_build(config)) / 1_GB_s;
}

/// How many switches have how many cables to NICs and to other switches.
std::map<std::pair<int, int>, int> degrees(const ClusterView& cluster) {
  std::map<VertexId, std::pair<int, int>> by_switch;
  const auto vertices = cluster.vertices();
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (vertices[i].kind == VertexKind::kSwitch) by_switch[VertexId(static_cast<std::int64_t>(i))];
  for (const auto& link : cluster.links()) {
    if (vertices[link.from.index()].kind != VertexKind::kSwitch) continue;
    auto& [nics, switches] = by_switch[link.from];
    ++(vertices[link.to.index()].kind == VertexKind::kNic ? nics : switches);
  }
  std::map<std::pair<int, int>, int> result;
  for (const auto& [vertex, degree] : by_switch) ++result[degree];
  return result;
}
using Degrees = std::map<std::pair<int, int>, int>;

/// What each cable between switches carries if every device sends 1 to every other one: the loads
/// that occur, by the cables' bandwidth in GB/s.
std::map<double, std::set<std::int64_t>> loads_of_all_to_all(const ClusterView& cluster) {
  std::vector<double> loads(cluster.links().size(), 0);
  const auto count = static_cast<std::int64_t>(cluster.devices().size());
  for (std::int64_t from = 0; from < count; ++from)
    for (std::int64_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const auto route = value_of(cluster.route(DeviceId(from), DeviceId(to)));
      for (const auto& [link, share] : route.links) loads[link.index()] += share;
    }
  std::map<double, std::set<std::int64_t>> result;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Link& link = cluster.links()[i];
    if (cluster.vertices()[link.from.index()].kind != VertexKind::kSwitch) continue;
    if (cluster.vertices()[link.to.index()].kind != VertexKind::kSwitch) continue;
    result[link.bandwidth / 1_GB_s].insert(std::llround(loads[i] * 1e6));
  }
  return result;
}

ClusterConfig grid(const char* kind, std::vector<std::int64_t> dims, std::int64_t gpus = 1) {
  std::int64_t nodes = 1;
  for (const auto size : dims) nodes *= size;
  FabricConfig fabric{.kind = kind};
  fabric.grid = GridConfig{.dims = std::move(dims)};
  return small_cluster(nodes, fabric, small_node(gpus));
}

// Nodes take points with the last dimension fastest, so halves are cut across the first: a torus
// has 2 x (the other sizes) cables there, a mesh and a ring of two half as many; 10 GB/s each, as
// much as the one NIC of a node.
TEST(Grid, BisectionIsTheCutAcrossTheFirstDimension) {
  EXPECT_DOUBLE_EQ(bisection(grid("torus", {4, 3})), 2 * 3 * 10);
  EXPECT_DOUBLE_EQ(bisection(grid("mesh", {4, 3})), 3 * 10);
  EXPECT_DOUBLE_EQ(bisection(grid("torus", {2, 3})), 3 * 10);
  EXPECT_DOUBLE_EQ(bisection(grid("torus", {4, 2, 3})), 2 * 6 * 10);
  EXPECT_DOUBLE_EQ(bisection(grid("mesh", {4, 2, 3}, 2)), 6 * 20);
}

// Two neighbours per dimension; one where a ring has two; at the ends of a mesh one.
TEST(Grid, Degrees) {
  EXPECT_EQ(degrees(must_build(grid("torus", {4, 3}))), (Degrees{{{1, 4}, 12}}));
  EXPECT_EQ(degrees(must_build(grid("torus", {4, 2, 3}))), (Degrees{{{1, 5}, 24}}));
  EXPECT_EQ(degrees(must_build(grid("torus", {4, 1}, 2))), (Degrees{{{2, 2}, 4}}));
  EXPECT_EQ(degrees(must_build(grid("mesh", {3, 3}))),
            (Degrees{{{1, 2}, 4}, {{1, 3}, 4}, {{1, 4}, 1}}));
  auto by_nic = grid("torus", {4, 3}, 2);
  by_nic.fabric.grid->dims = {8, 3};
  by_nic.fabric.grid->ends = GridEnds::kNics;
  EXPECT_EQ(degrees(must_build(by_nic)), (Degrees{{{1, 4}, 24}}));
}

// All-to-all on a ring of k = 4: a cable carries the flows 1 and half of those 2 steps away that
// pass it: 1 + 2 x 1/2 = 2 in each ring, times the 4 destination rows... the same on every cable.
TEST(Grid, ATorusIsSymmetric) {
  for (const auto routing : {Routing::kSpread, Routing::kAdaptive}) {
    auto config = grid("torus", {4, 4});
    config.routing = routing;
    EXPECT_THAT(loads_of_all_to_all(must_build(config)).at(10).size(), 1U);
  }
  // 15 flows from each of 16 nodes; 2.13 steps on average; 64 cables: 16 x 15 x 32/15 / 64 = 8.
  EXPECT_EQ(*loads_of_all_to_all(must_build(grid("torus", {4, 4}))).at(10).begin(), 8'000'000);
}

ClusterConfig dragonfly(std::int64_t p, std::int64_t a, std::int64_t h, std::int64_t g) {
  FabricConfig fabric{.kind = "dragonfly"};
  fabric.dragonfly = DragonflyConfig{.nics_per_router = p,
                                     .routers_per_group = a,
                                     .global_cables_per_router = h,
                                     .groups = g,
                                     .local_bandwidth = 100_GB_s,
                                     .global_bandwidth = 5_GB_s};
  return small_cluster(p * a * g, fabric, small_node(1));
}

// g groups in equal halves: k (g/2)^2 cables between them, k = floor(a h / (g-1)).
TEST(Dragonfly, BisectionIsTheGlobalCablesBetweenHalves) {
  EXPECT_DOUBLE_EQ(bisection(dragonfly(2, 2, 2, 4)), 1 * 4 * 5);
  EXPECT_DOUBLE_EQ(bisection(dragonfly(1, 4, 2, 4)), 2 * 4 * 5);
}

// p NICs; a-1 local cables and h global ones. With g-1 = 4 and a h = 6, two ports stay free.
TEST(Dragonfly, Degrees) {
  EXPECT_EQ(degrees(must_build(dragonfly(2, 2, 2, 5))), (Degrees{{{2, 1 + 2}, 10}}));
  const auto free = degrees(must_build(dragonfly(1, 3, 2, 5)));
  EXPECT_EQ(free, (Degrees{{{1, 2 + 2}, 10}, {{1, 2 + 0}, 5}}));
}

TEST(Dragonfly, GroupsAreAlike) {
  for (const auto routing : {Routing::kSpread, Routing::kAdaptive}) {
    auto config = dragonfly(2, 2, 2, 5);
    config.routing = routing;
    EXPECT_EQ(loads_of_all_to_all(must_build(config)).at(5).size(), 1U);
  }
}

// 3 groups, 2 leaves and 2 spines each, one global cable per spine, one between any two groups:
// nodes 0-5 (group 0 and half of 1) send to the others over 2 cables of group 0 and 1 -> 2... by
// halves of 4 groups: 4 cables of 5 GB/s.
TEST(DragonflyPlus, BisectionAndDegrees) {
  FabricConfig fabric{.kind = "dragonfly-plus"};
  fabric.dragonfly_plus = DragonflyPlusConfig{.nics_per_leaf = 2,
                                              .leaves_per_group = 2,
                                              .spines_per_group = 3,
                                              .global_cables_per_spine = 1,
                                              .groups = 4,
                                              .local_bandwidth = 100_GB_s,
                                              .global_bandwidth = 5_GB_s};
  const auto config = small_cluster(16, fabric, small_node(1));
  EXPECT_DOUBLE_EQ(bisection(config), 4 * 5);
  EXPECT_EQ(degrees(must_build(config)), (Degrees{{{2, 3}, 8}, {{0, 2 + 1}, 12}}));
  EXPECT_EQ(loads_of_all_to_all(must_build(config)).at(5).size(), 1U);
}

// Each plane has half of every port; together they carry what one network would.
TEST(DualPlane, BisectionIsTheSumOfThePlanes) {
  FabricConfig fabric{.kind = "dual-plane"};
  fabric.nodes_per_pod = 2;
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 40);
  fabric.oversubscription = {2};
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 20);
  fabric.planes = PlanesConfig{.count = 2, .split = PlaneSplit::kNics};
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 20);
  fabric = {.kind = "dual-plane"};
  fabric.planes = PlanesConfig{.count = 5, .fabric = "single-switch"};
  const auto cluster = must_build(small_cluster(3, fabric));
  EXPECT_EQ(degrees(cluster), (Degrees{{{6, 0}, 5}}));
  const auto route = cluster.route(device(cluster, "node0/gpu0"), device(cluster, "node2/gpu0"));
  EXPECT_NEAR(shares(cluster, *route).at("node0/nic0>plane4/switch"), 0.2, 1e-12);
}

// One switch per rail: as much as the NICs of a half. Over two levels, 2:1: half.
TEST(RailOnly, BisectionAndDegrees) {
  FabricConfig fabric{.kind = "rail-only"};
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 40);
  EXPECT_EQ(degrees(must_build(small_cluster(4, fabric))), (Degrees{{{4, 0}, 2}}));
  fabric.levels = 2;
  fabric.nodes_per_pod = 2;
  fabric.oversubscription = {2};
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 20);
}

// Two leaves with two nodes of 20 GB/s each, and 10 GB/s from each leaf to each of two tops.
TEST(Custom, IsWiredAsWritten) {
  FabricConfig fabric{.kind = "custom"};
  fabric.custom = custom_leaves_and_spines(4);
  EXPECT_DOUBLE_EQ(bisection(small_cluster(4, fabric)), 20);
  EXPECT_EQ(degrees(must_build(small_cluster(4, fabric))), (Degrees{{{4, 2}, 2}, {{0, 2}, 2}}));
  fabric.custom->cables.back().count = 3;
  EXPECT_EQ(degrees(must_build(small_cluster(4, fabric))),
            (Degrees{{{4, 2}, 1}, {{4, 6}, 1}, {{0, 4}, 2}}));
}

// A NIC with two cables has half of its rate on each; two hosts may be joined directly.
TEST(Custom, NicsShareTheirRateOverTheirCables) {
  FabricConfig fabric{.kind = "custom"};
  fabric.custom =
      CustomFabricConfig{.switches = {"s"},
                         .cables = {{.a = "node?/nic0", .b = "s", .bandwidth = {}, .count = 2},
                                    {.a = "node0/nic1", .b = "node1/nic1", .bandwidth = {}}}};
  const auto cluster = must_build(small_cluster(2, fabric));
  std::map<std::string, double> rates;
  for (const auto& link : cluster.links())
    if (link.kind == LinkKind::kNetwork)
      rates[cluster.vertices()[link.from.index()].name] += link.bandwidth / 1_GB_s;
  EXPECT_EQ(rates, (std::map<std::string, double>{{"node0/nic0", 10},
                                                  {"node0/nic1", 10},
                                                  {"node1/nic0", 10},
                                                  {"node1/nic1", 10},
                                                  {"s", 20}}));
}

TEST(Unequal, EveryFabricTakesNodesOfDifferentKinds) {
  for (const auto& kind : {"custom", "dragonfly", "dragonfly-plus", "dual-plane", "fat-tree",
                           "mesh", "rail-fat-tree", "single-switch", "torus"}) {
    auto config = small_cluster(6, example_fabric(kind, 6, 2 * 2 + 4 * 4));
    NodeConfig large = small_node(4);
    large.nics->bandwidth.value = 40_GB_s;
    config.groups = {{.nodes = 2, .node = *config.node},
                     {.nodes = 4, .node = yaml::Ref<NodeConfig>{large, ""}}};
    config.node.reset();
    const auto cluster = must_build(config);
    ASSERT_EQ(cluster.devices().size(), 20U) << kind;
    for (std::int64_t from = 0; from < 20; ++from)
      for (std::int64_t to = 0; to < 20; ++to) {
        if (from == to) continue;
        const auto route = value_of(cluster.route(DeviceId(from), DeviceId(to)), kind);
        ASSERT_EQ(fault_in(cluster, DeviceId(from), DeviceId(to), route), "") << kind;
      }
  }
}

}  // namespace foreshard::fabric_shapes_test
