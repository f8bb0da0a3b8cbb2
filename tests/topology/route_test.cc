#include <rapidcheck.h>

#include "exhaustive_routes.h"
#include "small_clusters.h"
#include "tests/test.h"

#include "topology/cluster_builder.h"
#include "topology/internal/router.h"

namespace foreshard::route_test {

using testing::Pair;

Route must_route(const ClusterView& cluster, const std::string& from, const std::string& to,
                 std::uint64_t flow = 0) {
  return value_of(cluster.route(device(cluster, from), device(cluster, to), flow));
}

TEST(Route, ToItselfIsEmpty) {
  const auto cluster = must_build(small_cluster(1, {}));
  EXPECT_TRUE(must_route(cluster, "node0/gpu0", "node0/gpu0").links.empty());
}

// NVLink (2 hops, metric 2) beats PCIe.
TEST(Route, PrefersTheNvSwitchInsideANode) {
  const auto cluster = must_build(small_cluster(1, {}));
  const auto route = must_route(cluster, "node0/gpu0", "node0/gpu1");
  EXPECT_THAT(shares(cluster, route), UnorderedElementsAre(Pair("node0/gpu0>node0/nvswitch", 1),
                                                           Pair("node0/nvswitch>node0/gpu1", 1)));
  EXPECT_DOUBLE_EQ(route.latency / 1_us, 2);
  EXPECT_EQ(route.widest_kind, LinkKind::kNvLink);
}

// Without it: up to the socket and over to the other one: 2 + 2 + 0.1 + 2 + 2 us.
TEST(Route, CrossesSocketsOverPcie) {
  auto config = small_cluster(1, {});
  config.down = {"node0/nvswitch"};
  const auto cluster = must_build(config);
  const auto route = must_route(cluster, "node0/gpu0", "node0/gpu1");
  EXPECT_THAT(shares(cluster, route), UnorderedElementsAre(Pair("node0/gpu0>node0/pcie0", 1),
                                                           Pair("node0/pcie0>node0/socket0", 1),
                                                           Pair("node0/socket0>node0/socket1", 1),
                                                           Pair("node0/socket1>node0/pcie1", 1),
                                                           Pair("node0/pcie1>node0/gpu1", 1)));
  EXPECT_NEAR(route.latency / 1_us, 8.1, 1e-12);
  EXPECT_EQ(route.widest_kind, LinkKind::kSocket);
}

// The nearest NIC of both ends, here of different rails: leaf 0, a spine, leaf 1. Uplinks: a leaf
// has 2 nodes x 10 GB/s below, so 2 cables of 10 GB/s to 2 spines, drawn as one of 20 GB/s.
// Latency: GPU-PCIe-NIC 4 us, NIC and half a switch 3.5, two trunks 1 each, 3.5, 4.
TEST(Route, LeavesByTheNearestNicAndCrossesRailsInTheFabric) {
  FabricConfig fabric{.kind = "rail-fat-tree"};
  fabric.nodes_per_pod = 2;
  fabric.latency = {1_us, "", yaml::Evidence::kUser};
  const auto cluster = must_build(small_cluster(2, fabric));
  const auto route = must_route(cluster, "node0/gpu0", "node1/gpu1");
  EXPECT_THAT(
      shares(cluster, route),
      UnorderedElementsAre(Pair("node0/gpu0>node0/pcie0", 1), Pair("node0/pcie0>node0/nic0", 1),
                           Pair("node0/nic0>pod0/leaf0", 1), Pair("pod0/leaf0>spine0", 1),
                           Pair("spine0>pod0/leaf1", 1), Pair("pod0/leaf1>node1/nic1", 1),
                           Pair("node1/nic1>node1/pcie1", 1), Pair("node1/pcie1>node1/gpu1", 1)));
  EXPECT_NEAR(route.latency / 1_us, 4 + 3.5 + 2 + 3.5 + 4, 1e-12);
  EXPECT_EQ(route.widest_kind, LinkKind::kNetwork);
}

// Hash routing needs the spines one by one; spreading over the same fabric uses each for a half.
TEST(Route, SpreadsEquallyOverSpines) {
  FabricConfig fabric{.kind = "rail-fat-tree"};
  fabric.nodes_per_pod = 2;
  auto config = small_cluster(4, fabric);
  config.down = {"node3/gpu1"};  // so that nothing is merged
  const auto cluster = must_build(config);
  const auto all = shares(cluster, must_route(cluster, "node0/gpu0", "node2/gpu0"));
  EXPECT_DOUBLE_EQ(all.at("pod0/leaf0>spine0"), 0.5);
  EXPECT_DOUBLE_EQ(all.at("pod0/leaf0>spine1"), 0.5);
  EXPECT_DOUBLE_EQ(all.at("spine1>pod1/leaf0"), 0.5);
  EXPECT_DOUBLE_EQ(all.at("node0/nic0>pod0/leaf0"), 1);
}

// Two cables to spine 0 and one to spine 1: three paths carry a third each (per hop, it would be a
// quarter, a quarter and a half).
TEST(Route, SharesArePerPathNotPerHop) {
  ClusterView::Builder builder("trunk");
  const auto type = builder.add_device_type({});
  const DuplexLink cable{LinkKind::kNetwork, 10_GB_s, 1_us};
  std::vector<DeviceId> gpus;
  std::vector<VertexId> nics;
  for (const std::string name : {"a", "b"}) {
    const auto node = builder.add_node();
    gpus.push_back(builder.add_device(type, name + "/gpu", node));
    nics.push_back(builder.add_vertex(VertexKind::kNic, name + "/nic", node));
    builder.connect(builder.vertex_of(gpus.back()), nics.back(), {LinkKind::kPcie, 10_GB_s, 1_us});
  }
  const auto leaf0 = builder.add_vertex(VertexKind::kSwitch, "leaf0");
  const auto leaf1 = builder.add_vertex(VertexKind::kSwitch, "leaf1");
  const auto spine0 = builder.add_vertex(VertexKind::kSwitch, "spine0");
  const auto spine1 = builder.add_vertex(VertexKind::kSwitch, "spine1");
  builder.connect(nics[0], leaf0, cable);
  builder.connect(nics[1], leaf1, cable);
  const auto first = builder.connect(leaf0, spine0, cable);
  const auto second = builder.connect(leaf0, spine0, cable);
  const auto third = builder.connect(leaf0, spine1, cable);
  builder.connect(spine0, leaf1, cable);
  builder.connect(spine1, leaf1, cable);
  const auto cluster = std::move(builder).build();
  const auto route = value_of(cluster.route(gpus[0], gpus[1]));
  EXPECT_EQ(fault_in(cluster, gpus[0], gpus[1], route), "");
  for (const auto cable_id : {first, second, third}) {
    const auto part = std::ranges::find(route.links, cable_id, &RoutedLink::link);
    ASSERT_NE(part, route.links.end());
    EXPECT_NEAR(part->share, 1.0 / 3, 1e-12);
  }
}

TEST(Route, HashTakesOnePathAndOnlyTheSeedMovesIt) {
  FabricConfig fabric{.kind = "rail-fat-tree"};
  fabric.nodes_per_pod = 4;
  auto config = small_cluster(8, fabric);
  config.routing = Routing::kEcmpHash;
  const auto spines_of = [&](std::int64_t seed) {
    config.seed = seed;
    const auto cluster = must_build(config);
    std::vector<std::string> used;
    for (std::uint64_t flow = 0; flow < 64; ++flow) {
      const auto route = must_route(cluster, "node0/gpu0", "node5/gpu0", flow);
      EXPECT_EQ(
          fault_in(cluster, device(cluster, "node0/gpu0"), device(cluster, "node5/gpu0"), route),
          "");
      for (const auto& [name, share] : shares(cluster, route)) {
        EXPECT_EQ(share, 1) << name;
        if (name.starts_with("pod0/leaf0>")) used.push_back(name);
      }
    }
    return used;
  };
  const auto first = spines_of(1);
  EXPECT_EQ(first, spines_of(1));
  EXPECT_NE(first, spines_of(2));
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), 4U);  // 4 spines, all used
}

TEST(Route, NamesBothDevicesAndWhatIsDown) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"switch"};
  const auto cluster = must_build(config);
  EXPECT_THAT(
      error_of(cluster.route(device(cluster, "node0/gpu1"), device(cluster, "node1/gpu0"))),
      Fails(Error::Code::kInfeasible,
            AllOf(HasSubstr("no route from node0/gpu1 to node1/gpu0"), HasSubstr("down: switch"))));
}

TEST(Route, NamesLinksThatAreDownOneByOne) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"node0/nic* - switch"};
  const auto cluster = must_build(config);
  EXPECT_THAT(
      message_of(cluster.route(device(cluster, "node0/gpu1"), device(cluster, "node1/gpu0"))),
      HasSubstr("node0/nic0 -> switch, switch -> node0/nic0"));
}

// A dead NIC: its GPU uses that of the neighbour, through the socket link.
TEST(Route, GoesRoundADeadNic) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"node0/nic0"};
  const auto cluster = must_build(config);
  const auto all = shares(cluster, must_route(cluster, "node0/gpu0", "node1/gpu0"));
  EXPECT_EQ(all.at("node0/socket0>node0/socket1"), 1);
  EXPECT_EQ(all.at("node0/nic1>switch"), 1);
}

// --- Against exhaustive search -----------------------------------------------------------------

ClusterView random_cluster() {
  ClusterView::Builder builder("random");
  const auto type = builder.add_device_type({});
  const auto chance = [](int percent) { return *rc::gen::inRange(0, 100) < percent; };
  const auto join = [&](VertexId a, VertexId b, LinkKind kind) {
    const auto link = builder.connect(a, b, {kind, 1_GB_s, 1_us});
    if (chance(10)) builder.take_down(link);
  };
  std::vector<VertexId> switches;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
    switches.push_back(builder.add_vertex(VertexKind::kSwitch, "switch" + std::to_string(i)));
  for (std::size_t a = 0; a < switches.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (chance(60)) join(switches[a], switches[b], LinkKind::kNetwork);
  for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
    const auto node = builder.add_node();
    const auto bridge = builder.add_vertex(VertexKind::kPcieSwitch, "pcie", node);
    const auto other = builder.add_vertex(VertexKind::kPcieSwitch, "pcie", node);
    const auto hub = builder.add_vertex(VertexKind::kNvSwitch, "nvswitch", node);
    join(bridge, other, LinkKind::kSocket);
    for (int i = 0; i < 2; ++i) {
      const auto gpu = builder.vertex_of(builder.add_device(type, "gpu", node));
      join(gpu, chance(50) ? bridge : other, LinkKind::kPcie);
      if (chance(50)) join(gpu, hub, LinkKind::kNvLink);
      const auto nic = builder.add_vertex(VertexKind::kNic, "nic", node);
      join(nic, chance(50) ? bridge : other, LinkKind::kPcie);
      for (const auto s : switches)
        if (chance(50)) join(nic, s, LinkKind::kNetwork);
    }
  }
  return std::move(builder).build();
}

TEST(Route, IsTheShortestPathOfTheWholeGraph) {
  EXPECT_TRUE(rc::check("routes equal exhaustive search", [] {
    const auto cluster = random_cluster();
    const auto count = static_cast<std::int64_t>(cluster.devices().size());
    const DeviceId from(*rc::gen::inRange<std::int64_t>(0, count));
    const DeviceId to(*rc::gen::inRange<std::int64_t>(0, count));
    if (from == to) return;
    const auto expected = exhaustive(cluster, from, to);
    const auto route = cluster.route(from, to);
    RC_ASSERT(static_cast<bool>(route) == !expected.empty());
    if (!route) return;
    RC_ASSERT(route->links.size() == expected.size());
    for (const auto& [link, share] : route->links) {
      RC_ASSERT(expected.contains(link));
      RC_ASSERT(std::abs(expected.at(link) - share) < 1e-9);
    }
  }));
}

}  // namespace foreshard::route_test
