// What every registered fabric must obey, whatever its parameters.
#include <rapidcheck.h>

#include "example_fabrics.h"
#include "small_clusters.h"
#include "tests/test.h"

#include "topology/fabrics/fabric.h"
#include "topology/summary.h"

namespace foreshard {
namespace {

class FabricContract : public testing::TestWithParam<Fabric> {
 protected:
  FabricConfig config(std::int64_t nodes, std::int64_t nics_per_node = 2) const {
    return example_fabric(std::string(GetParam().name), nodes, nodes * nics_per_node);
  }
};

/// Keeps the switches apart without changing the network between the others.
constexpr const char* kKeepDetail = "node0/socket0 - node0/socket1";

std::string fault_in_cluster(const ClusterView& cluster) {
  std::map<std::pair<VertexId, VertexId>, double> directed;
  std::map<VertexId, BytesPerSecond> nic_cables;
  for (const auto& link : cluster.links()) {
    directed[{link.from, link.to}] += link.bandwidth.in_base();
    directed[{link.to, link.from}] -= link.bandwidth.in_base();
    if (link.kind == LinkKind::kNetwork &&
        cluster.vertices()[link.from.index()].kind == VertexKind::kNic)
      nic_cables[link.from] += link.bandwidth;
  }
  for (const auto& [ends, difference] : directed)
    if (difference != 0) return "directions differ";
  for (const auto& vertex : cluster.vertices())
    if (vertex.kind == VertexKind::kNic) {
      const VertexId id(&vertex - cluster.vertices().data());
      if (std::abs(nic_cables[id] / 10_GB_s - 1) > 1e-9)  // as in small_node()
        return vertex.name + " has not cables of its rate";
    }
  return "";
}

std::string fault_in_routes(const ClusterView& cluster) {
  const auto count = static_cast<std::int64_t>(cluster.devices().size());
  for (std::int64_t from = 0; from < count; ++from)
    for (std::int64_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const auto route = cluster.route(DeviceId(from), DeviceId(to));
      if (!route) return route.error().message;
      if (auto fault = fault_in(cluster, DeviceId(from), DeviceId(to), *route); !fault.empty())
        return std::to_string(from) + " to " + std::to_string(to) + ": " + fault;
    }
  return "";
}

TEST_P(FabricContract, JoinsAllDevicesInBothDirections) {
  for (const auto routing :
       {Routing::kSpread, Routing::kEcmpHash, Routing::kUpDown, Routing::kAdaptive}) {
    auto cluster_config = small_cluster(5, config(5));
    cluster_config.routing = routing;
    const auto cluster = must_build(cluster_config);
    EXPECT_EQ(fault_in_cluster(cluster), "");
    EXPECT_EQ(fault_in_routes(cluster), "");
  }
}

// Two hosts under one leaf, non-blocking: 2 GPUs x 10 GB/s can leave the first one.
class Clos : public testing::TestWithParam<std::string> {};

TEST_P(Clos, IsNonBlockingByDefault) {
  const FabricConfig fabric{.kind = GetParam()};
  EXPECT_DOUBLE_EQ(*bisection_bandwidth(must_build(small_cluster(2, fabric))) / 1_GB_s, 20);
  EXPECT_DOUBLE_EQ(*bisection_bandwidth(must_build(small_cluster(8, fabric))) / 1_GB_s, 80);
}

TEST_P(Clos, HoldsForAnyParameters) {
  EXPECT_TRUE(rc::check(GetParam(), [&] {
    FabricConfig fabric{.kind = GetParam()};
    fabric.levels = *rc::gen::inRange(2, 5);
    fabric.nodes_per_pod = *rc::gen::inRange(1, 4);
    for (std::int64_t i = 2; i < *fabric.levels; ++i)
      fabric.pods_per_block.push_back(*rc::gen::inRange(1, 4));
    for (std::int64_t i = 1; i < *fabric.levels; ++i)
      fabric.oversubscription.push_back(*rc::gen::element(0.5, 1.0, 1.5, 2.0, 3.0));
    auto node = small_node(*rc::gen::inRange(1, 3));
    auto merged_config = small_cluster(*rc::gen::inRange(2, 7), fabric, node);
    const auto merged = must_build(merged_config);
    RC_ASSERT(fault_in_cluster(merged) == "");
    RC_ASSERT(fault_in_routes(merged) == "");
    // Drawing equal switches as one changes no bandwidth.
    merged_config.degraded = {{.links = "node0/gpu0 - node0/nvswitch", .factor = 1.0, .speed = {}}};
    const auto detailed = must_build(merged_config);
    RC_ASSERT(fault_in_routes(detailed) == "");
    const double one = bisection_bandwidth(merged)->in_base();
    const double all = bisection_bandwidth(detailed)->in_base();
    RC_ASSERT(std::abs(one - all) < 1e-6 * one);
  }));
}

std::string test_name(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, FabricContract, testing::ValuesIn(fabrics().begin(), fabrics().end()),
                         [](const auto& fabric) {
                           return test_name(std::string(fabric.param.name));
                         });
INSTANTIATE_TEST_SUITE_P(All, Clos, testing::Values("dual-plane", "fat-tree", "rail-fat-tree"),
                         [](const auto& kind) { return test_name(kind.param); });

// 8 nodes x 2 NICs x 10 GB/s in pods of 2: a plain leaf has 40 GB/s below, at 2:1 20 above; the 2
// pods of a half reach 40. By rails: 2 leaves per pod with 20 below and 10 above: 40 as well.
TEST(FatTree, BisectionFollowsOversubscription) {
  for (const std::string kind : {"fat-tree", "rail-fat-tree"}) {
    FabricConfig fabric{.kind = kind};
    fabric.nodes_per_pod = 2;
    fabric.oversubscription = {2};
    EXPECT_DOUBLE_EQ(*bisection_bandwidth(must_build(small_cluster(8, fabric))) / 1_GB_s, 40)
        << kind;
  }
}

// 3 levels: blocks of 2 pods, leaves 1:1, spines 4:1. A half is one block: 80 GB/s below its
// spines, 20 above.
TEST(FatTree, BisectionOfThreeLevels) {
  for (const std::string kind : {"fat-tree", "rail-fat-tree"}) {
    FabricConfig fabric{.kind = kind};
    fabric.levels = 3;
    fabric.nodes_per_pod = 2;
    fabric.pods_per_block = {2};
    fabric.oversubscription = {1, 4};
    EXPECT_DOUBLE_EQ(*bisection_bandwidth(must_build(small_cluster(8, fabric))) / 1_GB_s, 20)
        << kind;
  }
}

std::map<std::string, int> switches_by_name(const ClusterView& cluster) {
  std::map<std::string, int> count;
  for (const auto& vertex : cluster.vertices()) {
    if (vertex.kind != VertexKind::kSwitch) continue;
    const auto slash = vertex.name.rfind('/');
    std::string name = vertex.name.substr(slash == std::string::npos ? 0 : slash + 1);
    while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back()))) name.pop_back();
    ++count[name];
  }
  return count;
}

// Rails: 4 pods x 2 leaves; a leaf has 2 ports below, so 2 cables to 2 spines in each of 2 blocks;
// each spine has 4 leaves below, so 4 cables of its own plane: 2 planes x 4 cores.
TEST(FatTree, DrawsEverySwitchWhereItMatters) {
  FabricConfig fabric{.kind = "rail-fat-tree"};
  fabric.levels = 3;
  fabric.nodes_per_pod = 2;
  fabric.pods_per_block = {2};
  auto config = small_cluster(8, fabric);
  config.down = {kKeepDetail};
  EXPECT_EQ(switches_by_name(must_build(config)),
            (std::map<std::string, int>{{"leaf", 8}, {"spine", 4}, {"core", 8}}));
  config.down.clear();
  EXPECT_EQ(switches_by_name(must_build(config)),
            (std::map<std::string, int>{{"leaf", 8}, {"spine", 2}, {"core", 1}}));
}

}  // namespace
}  // namespace foreshard
