#include "topology/cluster_config.h"

#include "small_clusters.h"
#include "tests/test.h"

#include "topology/cluster_for.h"
#include "topology/select.h"

namespace foreshard::cluster_config_test {

yaml::Loader catalogue() {
  return yaml::Loader(shipped_options());
}

constexpr const char* kEightLines = R"(
name: mine
nodes: 4
node:
  device: A100-SXM-80GB
  gpus: 8
  nvlink: {bandwidth: 300 GB/s}
  nics: {count: 8, bandwidth: 200 Gbit/s}
fabric: {kind: single-switch}
)";

TEST(ClusterConfig, EightLinesAreACluster) {
  auto loader = catalogue();
  const auto config = value_of(loader.read_text<ClusterConfig>(kEightLines, "cluster.yaml"));
  EXPECT_EQ(config.device_count(), 32);
  const auto cluster = value_of(build_cluster(config, loader));
  EXPECT_EQ(cluster.devices().size(), 32U);
  EXPECT_EQ(cluster.device_types().size(), 1U);
  EXPECT_GT(cluster.host(3).launch_time, 0_s);
}

TEST(ClusterConfig, SeveralKindsOfNodes) {
  auto loader = catalogue();
  const auto config = value_of(loader.read_text<ClusterConfig>(
      "groups: [{nodes: 2, node: dgx-a100-80gb}, {nodes: 1, node: dgx-h100}]\n", "cluster.yaml"));
  const auto cluster = value_of(build_cluster(config, loader));
  EXPECT_EQ(cluster.device_types().size(), 2U);
  EXPECT_EQ(cluster.type_of(DeviceId(15)).name, "A100-SXM-80GB");
  EXPECT_EQ(cluster.type_of(DeviceId(16)).name, "H100-SXM");
}

// A node's name stands for all that is in it.
TEST(ClusterConfig, NodesGoDownByName) {
  auto by_name = small_cluster(2, {});
  by_name.down = {"node1"};
  by_name.degraded = {{.links = {}, .factor = {}, .devices = "node0", .speed = 0.5}};
  auto by_parts = small_cluster(2, {});
  by_parts.down = {"node1/*"};
  by_parts.degraded = {{.links = {}, .factor = {}, .devices = "node0/gpu*", .speed = 0.5}};
  const auto first = must_build(by_name);
  const auto second = must_build(by_parts);
  for (std::size_t d = 0; d < first.devices().size(); ++d) {
    EXPECT_EQ(first.devices()[d].up, first.devices()[d].node == 0);
    EXPECT_EQ(first.devices()[d].speed, first.devices()[d].node == 0 ? 0.5 : 1);
  }
  for (std::size_t l = 0; l < first.links().size(); ++l)
    EXPECT_EQ(first.links()[l].up, second.links()[l].up);
}

TEST(ClusterConfig, DegradesBothDirections) {
  auto config = small_cluster(2, {});
  config.degraded = {{.links = "node1/nic1 - switch", .factor = 0.25, .speed = {}}};
  const auto cluster = must_build(config);
  int slow = 0;
  for (const auto& link : cluster.links())
    if (link.bandwidth == 2.5_GB_s) ++slow;
  EXPECT_EQ(slow, 2);
}

TEST(Selector, StarsAndQuestionMarks) {
  using internal::matches;
  EXPECT_TRUE(matches("node?/gpu*", "node3/gpu12"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*a*b", "xaxbxb"));
  EXPECT_FALSE(matches("node?/gpu", "node3/gpu1"));
  EXPECT_FALSE(matches("node?/gpu", "node13/gpu"));
  EXPECT_FALSE(matches("", "a"));
}

// x16: 8 GT/s x 16 / 8 x 128/130 = 15.754 GB/s, doubled by each generation; 6.0 by flits: 121.
TEST(Pcie, RateOfAGeneration) {
  EXPECT_NEAR(pcie_bandwidth(3) / 1_GB_s, 15.754, 1e-3);
  EXPECT_NEAR(pcie_bandwidth(5) / 1_GB_s, 63.015, 1e-3);
  EXPECT_NEAR(pcie_bandwidth(6) / 1_GB_s, 121.0, 1e-9);
}

TEST(Pcie, DefaultGenerationCarriesTheNic) {
  auto node = small_node();
  node.pcie.generation.reset();
  EXPECT_EQ(pcie_generation(node), 4);
  node.nics->bandwidth.value = 400_Gbit_s;
  EXPECT_EQ(pcie_generation(node), 5);
  node.nics->bandwidth.value = 800_Gbit_s;
  EXPECT_EQ(pcie_generation(node), 6);
}

ClusterConfig must_find(const ClusterRequest& request) {
  auto loader = catalogue();
  auto config = value_of(cluster_for(request, loader));
  EXPECT_TRUE(build_cluster(config));
  return config;
}

TEST(ClusterFor, UsesTheUsualMachine) {
  const auto config = must_find({.device = "H100-SXM", .gpus = 64});
  EXPECT_EQ(config.nodes, 8);
  EXPECT_EQ((*config.node)->nics->count, 8);
  EXPECT_EQ(*(*config.node)->nics->bandwidth, 400_Gbit_s);
  EXPECT_EQ(config.fabric.kind, "rail-fat-tree");
}

// 100 Gbit/s per GPU are 800 per node: 4 adapters of 200. 50 are 400: 4 of 100. 12.5 are 100: one.
TEST(ClusterFor, SharesAdaptersOnSlowNetworks) {
  const auto nics = [](double per_gpu) {
    const auto config =
        must_find({.device = "A100-SXM-80GB", .gpus = 16, .internode_per_gpu = per_gpu * 1_Gbit_s});
    return std::pair((*config.node)->nics->count, *(*config.node)->nics->bandwidth / 1_Gbit_s);
  };
  EXPECT_EQ(nics(200), std::pair(std::int64_t{8}, 200.0));
  EXPECT_EQ(nics(100), std::pair(std::int64_t{4}, 200.0));
  EXPECT_EQ(nics(50), std::pair(std::int64_t{4}, 100.0));
  EXPECT_EQ(nics(12.5), std::pair(std::int64_t{1}, 100.0));
  EXPECT_EQ(nics(400), std::pair(std::int64_t{8}, 400.0));
}

TEST(ClusterFor, FewerGpusThanTheMachineHas) {
  const auto config = must_find({.device = "H100-SXM", .gpus = 10, .gpus_per_node = 1});
  EXPECT_EQ(config.nodes, 10);
  EXPECT_EQ((*config.node)->nics->count, 1);
  EXPECT_EQ((*must_find({.device = "H100-SXM", .gpus = 4}).node)->gpus, 4);
}

// 128 GPUs of GB200 in trays of 4: the largest domain within a rack that divides them is 64.
TEST(ClusterFor, RacksAreNvlinkDomains) {
  const auto config = must_find({.device = "GB200", .gpus = 128, .gpus_per_node = 4});
  EXPECT_EQ(config.nodes, 2);
  EXPECT_EQ((*config.node)->gpus, 64);
  EXPECT_EQ(must_find({.device = "GB200", .gpus = 36, .gpus_per_node = 4}).nodes, 1);
}

TEST(ClusterFor, RefusesWhatItCannotBuild) {
  auto loader = catalogue();
  const auto message = [&](const ClusterRequest& request) {
    return message_of(cluster_for(request, loader));
  };
  EXPECT_THAT(message({.device = "H100-SXM", .gpus = 12}), HasSubstr("do not fill nodes of 8"));
  EXPECT_THAT(message({.device = "H100-SXM", .gpus = 0}), HasSubstr("at least 1 GPU"));
  EXPECT_THAT(message({.device = "H100-SX"}), HasSubstr("H100-SX"));
  EXPECT_THAT(message({.device = "H100-SXM", .node = "dgx-a100-80gb"}), HasSubstr("not H100-SXM"));
}

TEST(Broken, DevicesAreDownOrSlow) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"node0/gpu1"};
  config.degraded = {{.links = {}, .factor = {}, .devices = "node1/*", .speed = 0.5}};
  const auto cluster = must_build(config);
  EXPECT_FALSE(cluster.devices()[1].up);
  EXPECT_TRUE(cluster.devices()[0].up);
  EXPECT_EQ(cluster.devices()[3].speed, 0.5);
  EXPECT_THAT(message_of(cluster.route(DeviceId(0), DeviceId(1))), HasSubstr("down: node0/gpu1"));
}

}  // namespace foreshard::cluster_config_test
