// Ways between devices and the memory of their hosts, by hand.
#include "tests/test.h"
#include "tests/topology/small_clusters.h"

namespace foreshard {
namespace {

using testing::Pair;

Route must_reach(const ClusterView& cluster, const std::string& from, HostWay way) {
  return value_of(cluster.host_route(device(cluster, from), way));
}

// 8 GPUs under 4 switches, 2 of them under each socket; 80 GB/s of memory each.
NodeConfig eight() {
  NodeConfig node = small_node(8);
  node.nics->count = 4;
  node.cpu.memory_bandwidth = {100_GB_s, "", yaml::Evidence::kUser};
  node.cpu.memory_efficiency = {0.8, "", yaml::Evidence::kUser};
  return node;
}

TEST(HostRoute, GoesByTheNearestSocketToItsMemory) {
  const ClusterView cluster = must_build(small_cluster(1, {}, eight()));
  const Route to = must_reach(cluster, "node0/gpu5", HostWay::kToHost);
  EXPECT_THAT(shares(cluster, to), UnorderedElementsAre(Pair("node0/gpu5>node0/pcie2", 1),
                                                        Pair("node0/pcie2>node0/socket1", 1),
                                                        Pair("node0/socket1>node0/memory1", 1)));
  EXPECT_DOUBLE_EQ(to.latency / 1_us, 4);
  // The way back has the same link of the memory.
  const Route from = must_reach(cluster, "node0/gpu5", HostWay::kFromHost);
  EXPECT_THAT(shares(cluster, from), UnorderedElementsAre(Pair("node0/socket1>node0/pcie2", 1),
                                                          Pair("node0/pcie2>node0/gpu5", 1),
                                                          Pair("node0/socket1>node0/memory1", 1)));
  const Route in = must_reach(cluster, "node0/gpu5", HostWay::kInHost);
  EXPECT_THAT(shares(cluster, in), UnorderedElementsAre(Pair("node0/socket1>node0/memory1", 1)));
  EXPECT_EQ(cluster.links()[in.links.front().link.index()].bandwidth, 80_GB_s);
}

// Behind the fabric: whoever does not offload sees the ids of before.
TEST(HostRoute, LeavesTheIdsOfOthersAlone) {
  FabricConfig fabric;
  fabric.kind = "single-switch";
  NodeConfig without = eight();
  without.cpu = {};
  const ClusterView with = must_build(small_cluster(3, fabric, eight()));
  const ClusterView plain = must_build(small_cluster(3, fabric, without));
  ASSERT_EQ(with.vertices().size(), plain.vertices().size() + 6);
  ASSERT_EQ(with.links().size(), plain.links().size() + 6);
  for (std::size_t i = 0; i < plain.links().size(); ++i) {
    EXPECT_EQ(with.links()[i].from, plain.links()[i].from);
    EXPECT_EQ(with.links()[i].to, plain.links()[i].to);
  }
  for (std::int64_t to = 1; to < 24; to += 5) {
    const auto a = with.route(DeviceId{0}, DeviceId{to});
    const auto b = plain.route(DeviceId{0}, DeviceId{to});
    ASSERT_TRUE(a && b);
    EXPECT_EQ(shares(with, *a), shares(plain, *b));
  }
}

// Memory whose speed is not known delays nothing, but does nothing either.
TEST(HostRoute, NeedsNoSpeedOfMemoryForCopies) {
  NodeConfig node = eight();
  node.cpu = {};
  const ClusterView cluster = must_build(small_cluster(1, {}, node));
  EXPECT_EQ(must_reach(cluster, "node0/gpu0", HostWay::kToHost).links.size(), 2U);
  EXPECT_THAT(message_of(cluster.host_route(device(cluster, "node0/gpu0"), HostWay::kInHost)),
              HasSubstr("add cpu: {memory_bandwidth: ...}"));
}

// A superchip: two GPUs with a link each to their CPU. It is no way from one to the other.
TEST(HostRoute, TakesALinkToTheCpu) {
  NodeConfig node = small_node(4);
  node.pcie.sockets = 0;
  const ClusterView without = must_build(small_cluster(1, {}, node));
  EXPECT_THAT(message_of(without.host_route(device(without, "node0/gpu0"), HostWay::kToHost)),
              HasSubstr("no CPU socket"));
  node.cpu.link = CpuLinkConfig{.bandwidth = {200_GB_s, "", yaml::Evidence::kUser},
                                .efficiency = {0.5, "", yaml::Evidence::kUser},
                                .latency = {1_us, "", yaml::Evidence::kUser},
                                .gpus = 2};
  const ClusterView cluster = must_build(small_cluster(1, {}, node));
  const Route to = must_reach(cluster, "node0/gpu3", HostWay::kToHost);
  EXPECT_THAT(shares(cluster, to), UnorderedElementsAre(Pair("node0/gpu3>node0/socket1", 1)));
  EXPECT_EQ(cluster.links()[to.links.front().link.index()].bandwidth, 100_GB_s);
  const auto between =
      value_of(cluster.route(device(cluster, "node0/gpu2"), device(cluster, "node0/gpu3")));
  EXPECT_THAT(shares(cluster, between), UnorderedElementsAre(Pair("node0/gpu2>node0/nvswitch", 1),
                                                             Pair("node0/nvswitch>node0/gpu3", 1)));
}

}  // namespace
}  // namespace foreshard
