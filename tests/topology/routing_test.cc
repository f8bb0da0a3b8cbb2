// Routings beyond the shortest paths of a Clos: on every fabric against exhaustive search, and by
// hand where they differ.
#include <rapidcheck.h>

#include "example_fabrics.h"
#include "exhaustive_routes.h"
#include "small_clusters.h"
#include "tests/test.h"

#include "topology/cluster_builder.h"
#include "topology/fabrics/fabric.h"
#include "topology/internal/fabric_paths.h"

namespace foreshard::routing_test {

using testing::Pair;

ClusterView example(std::string_view kind, Routing routing, std::int64_t nodes,
                    std::int64_t gpus = 1) {
  auto config = small_cluster(nodes, example_fabric(std::string(kind), nodes, nodes * gpus),
                              small_node(gpus));
  config.routing = routing;
  return must_build(config);
}

Route must_route(const ClusterView& cluster, std::int64_t from, std::int64_t to) {
  auto route = value_of(cluster.route(DeviceId(from), DeviceId(to)));
  EXPECT_EQ(fault_in(cluster, DeviceId(from), DeviceId(to), route), "");
  return route;
}

/// Largest difference of the shares of two routes.
double difference(const std::map<LinkId, double>& expected, const Route& route) {
  std::map<LinkId, double> rest = expected;
  for (const auto& [link, share] : route.links) rest[link] -= share;
  double result = 0;
  for (const auto& [link, share] : rest) result = std::max(result, std::abs(share));
  return result;
}
std::map<LinkId, double> by_link(const Route& route) {
  std::map<LinkId, double> result;
  for (const auto& [link, share] : route.links) result[link] = share;
  return result;
}

TEST(Spread, EqualsExhaustiveSearchOnEveryFabric) {
  for (const auto& fabric : fabrics())
    for (const std::int64_t nodes : {4, 6, 9}) {
      const auto cluster = example(fabric.name, Routing::kSpread, nodes);
      for (std::int64_t to = 1; to < nodes; ++to)
        EXPECT_LT(
            difference(exhaustive(cluster, DeviceId(0), DeviceId(to)), must_route(cluster, 0, to)),
            1e-9)
            << fabric.name << ", " << nodes << " nodes, to " << to;
    }
}

// Without its shape a fabric is searched; with it, routes are worked out.
TEST(Spread, ShapesChangeNothing) {
  const auto check = [](const ClusterConfig& config) {
    const auto cluster = must_build(config);
    auto builder = ClusterView::Builder::copy_of(cluster);
    builder.set_shape({});
    const auto searched = std::move(builder).build();
    const auto count = static_cast<std::int64_t>(cluster.devices().size());
    for (std::int64_t to = 1; to < count; ++to) {
      const auto worked_out = must_route(cluster, 0, to);
      const auto found = must_route(searched, 0, to);
      EXPECT_LT(difference(by_link(found), worked_out), 1e-9);
      EXPECT_NEAR(found.latency / 1_us, worked_out.latency / 1_us, 1e-9);
    }
  };
  FabricConfig fabric{.kind = "torus"};
  fabric.grid = GridConfig{.dims = {4, 5, 2, 3}};
  check(small_cluster(120, fabric, small_node(1)));
  fabric.kind = "mesh";
  check(small_cluster(120, fabric, small_node(1)));
  fabric = {.kind = "dragonfly"};
  fabric.dragonfly = DragonflyConfig{
      .nics_per_router = 2, .routers_per_group = 4, .global_cables_per_router = 3, .groups = 6};
  check(small_cluster(48, fabric, small_node(1)));
  fabric = {.kind = "dragonfly-plus"};
  fabric.dragonfly_plus = DragonflyPlusConfig{.nics_per_leaf = 2,
                                              .leaves_per_group = 4,
                                              .spines_per_group = 2,
                                              .global_cables_per_spine = 5,
                                              .groups = 6};
  check(small_cluster(48, fabric, small_node(1)));
}

TEST(EcmpHash, TakesMinimalPathsOfShapes) {
  for (const auto* kind : {"torus", "mesh", "dragonfly", "dragonfly-plus"}) {
    const auto spread = example(kind, Routing::kSpread, 12);
    const auto hashed = example(kind, Routing::kEcmpHash, 12);
    for (std::int64_t to = 1; to < 12; ++to) {
      const auto all = by_link(must_route(spread, 0, to));
      for (std::uint64_t flow = 0; flow < 8; ++flow) {
        const auto route = value_of(hashed.route(DeviceId(0), DeviceId(to), flow));
        EXPECT_EQ(fault_in(hashed, DeviceId(0), DeviceId(to), route), "");
        for (const auto& [link, share] : route.links) {
          EXPECT_EQ(share, 1);
          EXPECT_TRUE(all.contains(link)) << kind;
        }
      }
    }
  }
}

// --- Up/down -----------------------------------------------------------------------------------

TEST(UpDown, IsMinimalOnAClos) {
  for (const auto* kind : {"fat-tree", "rail-fat-tree", "rail-only", "dual-plane"}) {
    const auto spread = example(kind, Routing::kSpread, 6, 2);
    const auto legal = example(kind, Routing::kUpDown, 6, 2);
    for (std::int64_t to = 1; to < 12; ++to)
      EXPECT_LT(difference(by_link(must_route(spread, 0, to)), must_route(legal, 0, to)), 1e-9)
          << kind;
  }
}

// What has come down into a switch must end there or go further down: the flow can then be taken
// apart into paths that never go down and up again.
TEST(UpDown, NeverGoesUpAgain) {
  for (const auto& fabric : fabrics()) {
    const auto cluster = example(fabric.name, Routing::kUpDown, 12);
    internal::FabricGraph graph{.vertices = cluster.vertices().size(), .edges = {}, .has_nics = {}};
    graph.has_nics.resize(graph.vertices, false);
    const auto is_switch = [&](VertexId id) {
      return cluster.vertices()[id.index()].kind == VertexKind::kSwitch;
    };
    for (const auto& link : cluster.links()) {
      if (!is_switch(link.from)) continue;
      if (is_switch(link.to)) {
        graph.edges.push_back({static_cast<std::int32_t>(link.from.value()),
                               static_cast<std::int32_t>(link.to.value()), LinkId(), 1, 1_us});
      } else {
        graph.has_nics[link.from.index()] = true;
      }
    }
    const auto order = internal::up_order(graph);
    for (std::int64_t from = 0; from < 12; ++from)
      for (std::int64_t to = 0; to < 12; ++to) {
        if (from == to) continue;
        std::map<VertexId, double> owed;  // what came down and has not gone on
        for (const auto& [id, share] : must_route(cluster, from, to).links) {
          const Link& link = cluster.links()[id.index()];
          const bool down = is_switch(link.from) && is_switch(link.to) &&
                            order[link.to.index()] < order[link.from.index()];
          if (down) owed[link.to] += share;
          if (is_switch(link.from) && (down || !is_switch(link.to))) owed[link.from] -= share;
        }
        for (const auto& [vertex, rest] : owed)
          EXPECT_LT(rest, 1e-9) << fabric.name << " at " << cluster.vertices()[vertex.index()].name;
      }
  }
}

// A ring of four routers 0 1 3 2, root 0: from 1 to 2 the way through 3 goes down and up, so all
// takes the one through 0; spread uses both.
TEST(UpDown, RestrictsATorus) {
  const auto legal = example("torus", Routing::kUpDown, 4);
  EXPECT_EQ(shares(legal, must_route(legal, 1, 2)).at("router0-1>router0-0"), 1);
  const auto spread = example("torus", Routing::kSpread, 4);
  EXPECT_DOUBLE_EQ(shares(spread, must_route(spread, 1, 2)).at("router0-1>router0-0"), 0.5);
}

// --- Adaptive ----------------------------------------------------------------------------------

// A ring of 8, one step: 7/8 go straight, 1/8 the other way round. Latency: of the 7 hops.
TEST(Adaptive, BalancesTheWaysRoundARing) {
  FabricConfig fabric{.kind = "torus"};
  fabric.grid = GridConfig{.dims = {8}};
  fabric.latency = {1_us, "", yaml::Evidence::kUser};
  auto config = small_cluster(8, fabric, small_node(1));
  config.routing = Routing::kAdaptive;
  const auto cluster = must_build(config);
  const auto route = must_route(cluster, 0, 1);
  EXPECT_DOUBLE_EQ(shares(cluster, route).at("router0>router1"), 7.0 / 8);
  EXPECT_DOUBLE_EQ(shares(cluster, route).at("router0>router7"), 1.0 / 8);
  EXPECT_DOUBLE_EQ(shares(cluster, route).at("router3>router2"), 1.0 / 8);
  EXPECT_NEAR(route.latency / 1_us, 4 + 3.5 + 7 + 3.5 + 4, 1e-9);
}

TEST(Adaptive, LeavesOutBrokenWays) {
  FabricConfig fabric{.kind = "torus"};
  fabric.grid = GridConfig{.dims = {8}};
  auto config = small_cluster(8, fabric, small_node(1));
  config.routing = Routing::kAdaptive;
  config.down = {"router4 - router5"};
  const auto cluster = must_build(config);
  EXPECT_DOUBLE_EQ(shares(cluster, must_route(cluster, 0, 1)).at("router0>router1"), 1);
  EXPECT_DOUBLE_EQ(shares(cluster, must_route(cluster, 5, 4)).at("router5>router6"), 1);
}

ClusterConfig dragonfly(std::int64_t groups, Routing routing) {
  FabricConfig fabric{.kind = "dragonfly"};
  fabric.dragonfly = DragonflyConfig{.nics_per_router = 2,
                                     .routers_per_group = 4,
                                     .global_cables_per_router = 2,
                                     .groups = groups,
                                     .local_bandwidth = 100_GB_s};
  auto config = small_cluster(8 * groups, fabric, small_node(1));
  config.routing = routing;
  return config;
}

/// If device i sends to (i + shift) at the same rate each: the rate at which the first link is
/// full.
double throughput(const ClusterView& cluster, std::int64_t shift) {
  std::vector<double> loads(cluster.links().size(), 0);
  const auto count = static_cast<std::int64_t>(cluster.devices().size());
  for (std::int64_t i = 0; i < count; ++i)
    for (const auto& [link, share] : must_route(cluster, i, (i + shift) % count).links)
      loads[link.index()] += share;
  double rate = 1e30;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i] > 0) rate = std::min(rate, cluster.links()[i].bandwidth / 1_GB_s / loads[i]);
  return rate;
}

// 9 groups of 8 NICs, one cable of 10 GB/s between any two. Each group sends to the next: minimal
// routing puts 8 flows on one cable, 1.25 GB/s; adaptive 2/9 of them on the direct one and as much
// on every other: 10 / (8 x 2/9) = 5.625 GB/s.
TEST(Adaptive, SpreadsTheWorstPermutationOfADragonfly) {
  EXPECT_NEAR(throughput(must_build(dragonfly(9, Routing::kSpread)), 8), 1.25, 1e-9);
  EXPECT_NEAR(throughput(must_build(dragonfly(9, Routing::kAdaptive)), 8), 5.625, 1e-9);
  for (std::int64_t groups = 2; groups <= 9; ++groups)
    EXPECT_GE(throughput(must_build(dragonfly(groups, Routing::kAdaptive)), 8),
              throughput(must_build(dragonfly(groups, Routing::kSpread)), 8) * (1 - 1e-9))
        << groups;
}

TEST(Adaptive, IsMinimalOnAClosAndInsideAGroup) {
  for (const auto* kind : {"fat-tree", "rail-fat-tree", "single-switch", "custom", "mesh"}) {
    const auto spread = example(kind, Routing::kSpread, 6);
    const auto adaptive = example(kind, Routing::kAdaptive, 6);
    for (std::int64_t to = 1; to < 6; ++to)
      EXPECT_LT(difference(by_link(must_route(spread, 0, to)), must_route(adaptive, 0, to)), 1e-9);
  }
  const auto cluster = must_build(dragonfly(9, Routing::kAdaptive));
  EXPECT_EQ(shares(cluster, must_route(cluster, 0, 2)).at("group0/router0>group0/router1"), 1);
}

// --- PXN ---------------------------------------------------------------------------------------

// To GPU 1 of the other node: over NVLink to the neighbour on that rail, then through its NIC.
TEST(Pxn, GoesOverNvlinkToTheRailOfTheReceiver) {
  FabricConfig fabric{.kind = "rail-fat-tree"};
  fabric.nodes_per_pod = 2;
  auto config = small_cluster(2, fabric);
  config.pxn = true;
  const auto cluster = must_build(config);
  EXPECT_THAT(shares(cluster, must_route(cluster, 0, 3)),
              UnorderedElementsAre(
                  Pair("node0/gpu0>node0/nvswitch", 1), Pair("node0/nvswitch>node0/gpu1", 1),
                  Pair("node0/gpu1>node0/pcie1", 1), Pair("node0/pcie1>node0/nic1", 1),
                  Pair("node0/nic1>pod0/leaf1", 1), Pair("pod0/leaf1>node1/nic1", 1),
                  Pair("node1/nic1>node1/pcie1", 1), Pair("node1/pcie1>node1/gpu1", 1)));
  EXPECT_FALSE(shares(cluster, must_route(cluster, 0, 2)).contains("node0/gpu0>node0/nvswitch"));
}

TEST(Pxn, IsHowRailsMeetInRailOnly) {
  const auto cluster = example("rail-only", Routing::kSpread, 4, 4);
  EXPECT_TRUE(cluster.pxn());
  for (std::int64_t to = 4; to < 8; ++to) {
    const auto all = shares(cluster, must_route(cluster, 0, to));
    const std::string rail = std::to_string(to - 4);
    std::string link = "node0/nic" + rail;
    link += ">rail" + rail + "/pod0/leaf0";
    EXPECT_EQ(all.at(link), 1);
    EXPECT_FALSE(all.contains("node0/socket0>node0/socket1"));
  }
}

// 4 GPUs, 2 NICs: GPUs 0 and 1 send to rail 1 through GPUs 2 and 3, one each.
TEST(Pxn, GpusOfOneRailTakeTurns) {
  auto node = small_node(4);
  node.nics->count = 2;
  auto config = small_cluster(2, {.kind = "rail-only"}, node);
  const auto cluster = must_build(config);
  EXPECT_TRUE(shares(cluster, must_route(cluster, 0, 6)).contains("node0/nvswitch>node0/gpu2"));
  EXPECT_TRUE(shares(cluster, must_route(cluster, 1, 6)).contains("node0/nvswitch>node0/gpu3"));
}

TEST(Pxn, WithoutNvlinkTheFlowGoesAsBefore) {
  auto node = small_node(2);
  node.nvlink.reset();
  auto config = small_cluster(2, {.kind = "single-switch"}, node);
  const auto plain = must_build(config);
  config.pxn = true;
  const auto cluster = must_build(config);
  EXPECT_LT(difference(by_link(must_route(plain, 0, 3)), must_route(cluster, 0, 3)), 1e-12);
}

NodeConfig nvidia_node(std::int64_t gpus) {
  NodeConfig node = small_node(gpus);
  node.device.value.compute_capability = {90, "test", yaml::Evidence::kUser};
  return node;
}

std::map<std::string, double> peer_shares(const ClusterView& cluster, std::int64_t from,
                                          std::int64_t to) {
  return shares(cluster, value_of(cluster.peer_route(DeviceId(from), DeviceId(to))));
}

// As NCCL has it (NCCL_P2P_PXN_LEVEL 2): sends go over NVLink to the receiver's rail on any fabric,
// channels of rings do not. GPU 0 of node 0 to GPU 1 of node 1: by GPU 1 and NIC 1 of node 0.
TEST(Pxn, IsForSendsOfNvidiasGpusByDefault) {
  for (const auto* kind : {"single-switch", "fat-tree", "rail-fat-tree", "custom"}) {
    auto config = small_cluster(2, example_fabric(kind, 2, 4), nvidia_node(2));
    const auto cluster = must_build(config);
    EXPECT_FALSE(cluster.pxn()) << kind;
    EXPECT_TRUE(peer_shares(cluster, 0, 3).contains("node0/nvswitch>node0/gpu1")) << kind;
    EXPECT_FALSE(peer_shares(cluster, 0, 2).contains("node0/gpu0>node0/nvswitch")) << kind;
    EXPECT_FALSE(shares(cluster, must_route(cluster, 0, 3)).contains("node0/gpu0>node0/nvswitch"))
        << kind;
    config.pxn = false;
    EXPECT_FALSE(peer_shares(must_build(config), 0, 3).contains("node0/nvswitch>node0/gpu1"));
    config.pxn.reset();
    config.node = yaml::Ref<NodeConfig>{small_node(2), ""};  // a device that may not run NCCL
    EXPECT_FALSE(peer_shares(must_build(config), 0, 3).contains("node0/nvswitch>node0/gpu1"));
  }
}

// The cables decide, not the kind's name: two switches that nothing joins are two rails.
TEST(Pxn, IsHowRailsOfACustomFabricMeet) {
  FabricConfig fabric{.kind = "custom"};
  fabric.custom = CustomFabricConfig{.switches = {"a", "b"},
                                     .cables = {{.a = "node*/nic0", .b = "a", .bandwidth = {}},
                                                {.a = "node*/nic1", .b = "b", .bandwidth = {}}}};
  const auto cluster = must_build(small_cluster(2, fabric, small_node(2)));
  EXPECT_TRUE(cluster.pxn());
  EXPECT_TRUE(shares(cluster, must_route(cluster, 0, 3)).contains("node0/nvswitch>node0/gpu1"));
  fabric.custom->cables.push_back({.a = "a", .b = "b", .bandwidth = {}});
  EXPECT_FALSE(must_build(small_cluster(2, fabric, small_node(2))).pxn());
}

// --- Adaptive while queues are even -------------------------------------------------------------

TEST(Adaptive, TakesMinimalWaysWhileQueuesAreEven) {
  const auto spread = must_build(dragonfly(9, Routing::kSpread));
  const auto adaptive = must_build(dragonfly(9, Routing::kAdaptive));
  for (const std::int64_t to : {8, 13, 71}) {
    const auto direct = must_route(spread, 0, to);
    const auto route = must_route(adaptive, 0, to);
    EXPECT_EQ(route.minimal, direct.links);
    EXPECT_EQ(route.minimal_latency, direct.latency);
    EXPECT_EQ(route.taken(0), direct.links);
    EXPECT_EQ(route.taken(1), route.links);
    double half = 0;
    for (const auto& [link, share] : route.taken(0.5)) half += share;
    double ends = 0;
    for (const auto& [link, share] : direct.links) ends += 0.5 * share;
    for (const auto& [link, share] : route.links) ends += 0.5 * share;
    EXPECT_NEAR(half, ends, 1e-12);
  }
  EXPECT_TRUE(must_route(adaptive, 0, 2).minimal.empty());  // inside a group
}

}  // namespace foreshard::routing_test
