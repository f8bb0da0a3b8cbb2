// Clusters that cannot be wired as asked: each is one error with place, cause and remedy.
#include <gmock/gmock.h>

#include "small_clusters.h"

namespace foreshard {
namespace bad_clusters_test {

using testing::AllOf;
using testing::HasSubstr;

/// The error of a cluster of four nodes with two GPUs and NICs each, and these lines besides.
std::string fault(const std::string& lines, const std::string& node_lines = "") {
  const std::string text =
      "nodes: 4\nnode:\n  device: A100-SXM-80GB\n  gpus: 2\n"
      "  nics: {count: 2, bandwidth: 200 Gbit/s}\n" +
      (node_lines.empty() ? "  nvlink: {bandwidth: 300 GB/s}\n" : node_lines) + lines;
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto config = loader.read_text<ClusterConfig>(text, "cluster.yaml");
  if (!config) return config.error().message;
  const auto cluster = build_cluster(*config, loader);
  if (cluster) return "accepted";
  EXPECT_EQ(cluster.error().code, Error::Code::kInvalidInput);
  EXPECT_THAT(cluster.error().message, HasSubstr("cluster.yaml:"));
  return cluster.error().message;
}

std::string fabric(const std::string& lines) {
  return fault("fabric: {" + lines + "}\n");
}

TEST(BadFabric, KeysOfOtherFabrics) {
  EXPECT_THAT(fabric("kind: single-switch, uplink_bandwidth: 100 Gbit/s"),
              AllOf(HasSubstr("cluster.yaml:7:49"),
                    HasSubstr("a single-switch fabric does not use 'uplink_bandwidth'"),
                    HasSubstr("dual-plane, fat-tree, rail-fat-tree, rail-only")));
  EXPECT_THAT(fabric("kind: torus, grid: {dims: [4]}, levels: 2"), HasSubstr("'levels'"));
  EXPECT_THAT(fabric("kind: fat-tree, grid: {dims: [4]}"), HasSubstr("it belongs to mesh, torus"));
}

TEST(BadFabric, WithoutItsSizes) {
  EXPECT_THAT(fabric("kind: dragonfly"), HasSubstr("add dragonfly: {nics_per_router"));
  EXPECT_THAT(fabric("kind: dragonfly-plus"), HasSubstr("add dragonfly_plus: {nics_per_leaf"));
  EXPECT_THAT(fabric("kind: torus"), HasSubstr("add grid: {dims"));
  EXPECT_THAT(fabric("kind: custom"), HasSubstr("add custom: {switches"));
}

// 8 NICs. 5 groups of 2 x 1 global cables cannot all meet; 2 groups of 2 hold 4 NICs only.
TEST(BadFabric, DragonfliesThatDoNotFit) {
  const std::string sizes = "nics_per_router: 1, routers_per_group: 2";
  EXPECT_THAT(
      fabric("kind: dragonfly, dragonfly: {" + sizes + ", global_cables_per_router: 1, groups: 5}"),
      AllOf(HasSubstr("2 x 1 global cables, too few to reach each of the 4 other groups"),
            HasSubstr("help: more global cables")));
  EXPECT_THAT(
      fabric("kind: dragonfly, dragonfly: {" + sizes + ", global_cables_per_router: 1, groups: 2}"),
      AllOf(HasSubstr("2 groups of 2 NICs cannot hold the 8"), HasSubstr("at least 4 groups")));
  EXPECT_THAT(fabric("kind: dragonfly, dragonfly: {" + sizes +
                     ", global_cables_per_router: 1000, groups: 1000000}"),
              HasSubstr("more than 1000000 switches"));
  EXPECT_THAT(
      fabric("kind: dragonfly-plus, dragonfly_plus: {nics_per_leaf: 1, leaves_per_group: 1, "
             "spines_per_group: 1, global_cables_per_spine: 6}"),
      HasSubstr("1 x 6 global cables, too few to reach each of the 7 other groups"));
}

TEST(BadFabric, GridsThatDoNotFit) {
  EXPECT_THAT(fabric("kind: torus, grid: {dims: [3, 2]}"),
              AllOf(HasSubstr("cluster.yaml:7:36"),
                    HasSubstr("3 x 2 are 6 points, but the cluster has 4 nodes"),
                    HasSubstr("must multiply to the number of nodes")));
  EXPECT_THAT(fabric("kind: mesh, grid: {dims: [3, 2], ends: nics}"), HasSubstr("has 8 NICs"));
  EXPECT_EQ(fabric("kind: mesh, grid: {dims: [4, 2], ends: nics}"), "accepted");
  EXPECT_THAT(fabric("kind: torus, grid: {dims: [1000000, 1000000, 1000000, 1000000]}"),
              HasSubstr("far too many points"));
  EXPECT_THAT(fabric("kind: torus, grid: {dims: []}"), HasSubstr("dims"));
}

TEST(BadFabric, CustomWiring) {
  const auto custom = [](const std::string& switches, const std::string& cables) {
    return fabric("kind: custom, custom: {switches: [" + switches + "], cables: [" + cables + "]}");
  };
  const std::string all = "{a: 'node*/nic*', b: s}";
  EXPECT_EQ(custom("s", all), "accepted");
  EXPECT_EQ(custom("s", "{a: 'node[0-3]/nic[0,1]', b: s}"), "accepted");
  EXPECT_THAT(custom("s", "{a: 'node[0-4]/nic[0-1]', b: s}"),
              HasSubstr("'node4/nic0' is neither a switch nor a NIC"));
  EXPECT_THAT(custom("s", "{a: 'node[0-1/nic0', b: s}"), HasSubstr("do not match"));
  EXPECT_THAT(custom("'s[0-1]'", all), HasSubstr("cannot be a name"));
  EXPECT_THAT(
      custom("s", "{a: node9/nic0, b: s}"),
      AllOf(HasSubstr("'node9/nic0' is neither a switch nor a NIC"), HasSubstr("node0/nic0")));
  EXPECT_THAT(custom("s", all + ", {a: s, b: t}"), HasSubstr("'t' is neither"));
  EXPECT_THAT(custom("s", all + ", {a: s, b: node0/nic1}"),
              AllOf(HasSubstr("already joined by cables.0"), HasSubstr("count: 2")));
  EXPECT_THAT(custom("s", all + ", {a: s, b: s}"), HasSubstr("joins s to itself"));
  EXPECT_THAT(custom("s, s", all), HasSubstr("'s' is already the name"));
  EXPECT_THAT(custom("'s*'", all), HasSubstr("cannot be a name"));
  EXPECT_THAT(custom("s", "{a: 'node*/nic0', b: s}"),
              AllOf(HasSubstr("node0/nic1 has no cable"), HasSubstr("{a: node0/nic1, b:")));
  EXPECT_THAT(custom("s", "{a: 'node*/nic*', b: s, bandwidth: 400 Gbit/s}"),
              HasSubstr("the cables of node0/nic0 carry 50.0 GB/s, the NIC itself"));
}

TEST(BadFabric, RailsThatNeverMeet) {
  EXPECT_THAT(fault("fabric: {kind: rail-only}\npxn: false\n"),
              AllOf(HasSubstr("cluster.yaml:8:6"), HasSubstr("over NVLink (PXN)"),
                    HasSubstr("remove pxn: false")));
  EXPECT_THAT(fault("fabric: {kind: rail-only}\n", "  pcie: {generation: 4}\n"),
              HasSubstr("which this node does not have"));
  EXPECT_THAT(fault("fabric: {kind: dual-plane, planes: {split: nics}}\npxn: false\n"),
              HasSubstr("in a dual-plane fabric rails meet only inside of hosts"));
  EXPECT_THAT(fabric("kind: dual-plane, planes: {split: nics, count: 3}"),
              AllOf(HasSubstr("2 NICs of node 0 cannot be split evenly over 3 planes")));
  EXPECT_THAT(fabric("kind: dual-plane, planes: {fabric: single-switch}, levels: 3"),
              HasSubstr("a plane of one switch does not use 'levels'"));
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto config = loader.read_text<ClusterConfig>(
      "groups: [{node: dgx-a100-80gb}, {node: hgx-a100-4x200g}]\nfabric: {kind: rail-only}\n",
      "cluster.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(build_cluster(*config, loader).error().message,
              HasSubstr("rails are not equal: node 0 has 8 NICs, node 1 has 4"));
}

TEST(BadCluster, ValuesBeyondPhysics) {
  const std::string star = "fabric: {kind: single-switch}\n";
  EXPECT_THAT(fault("fabric: {kind: single-switch, latency: 1e300 s}\n"), HasSubstr("at most 1 s"));
  EXPECT_THAT(fault(star, "  nvlink: {bandwidth: 1e200 GB/s}\n"), HasSubstr("at most"));
  EXPECT_THAT(fault(star, "  nvlink: {bandwidth: 300 B/s}\n"), HasSubstr("at least"));
  EXPECT_THAT(fault(star, "  nvlink: {bandwidth: 300 GB/s, latency: 1e300 s}\n"),
              HasSubstr("at most 1 s"));
  EXPECT_THAT(fault(star, "  nvlink: {bandwidth: 300 GB/s, efficiency: 1e-300}\n"),
              HasSubstr("at least 0.01"));
  EXPECT_THAT(fault("fabric: {kind: fat-tree, oversubscription: [1e300]}\n"), HasSubstr("1000"));
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto config = loader.read_text<ClusterConfig>(
      "nodes: 1000000\nnode: dgx-h100\nfabric: {kind: single-switch}\n", "cluster.yaml");
  ASSERT_TRUE(config);
  EXPECT_THAT(build_cluster(*config, loader).error().message, HasSubstr("more than 4 million"));
}

TEST(BadCluster, SelectorsAndDegradations) {
  const std::string star = "fabric: {kind: single-switch}\n";
  EXPECT_THAT(fault(star + "down: [node9/gpu0]\n"), HasSubstr("matches no device, NIC, switch"));
  EXPECT_THAT(fault(star + "degraded: [{links: nothing, factor: 0.5}]\n"),
              HasSubstr("'nothing' matches no link"));
  EXPECT_THAT(fault(star + "degraded: [{devices: node0/nic0, speed: 0.5}]\n"),
              HasSubstr("'node0/nic0' matches no device"));
  EXPECT_THAT(fault(star + "degraded: [{devices: node0/gpu0, factor: 0.5}]\n"),
              HasSubstr("take speed, not factor"));
  EXPECT_THAT(fault(star + "degraded: [{links: switch, speed: 0.5}]\n"),
              HasSubstr("take factor, not speed"));
  EXPECT_THAT(fault(star + "degraded: [{links: switch}]\n"), HasSubstr("not their factor"));
  EXPECT_THAT(fault(star + "degraded: [{factor: 1.0}]\n"), HasSubstr("needs either links"));
  EXPECT_THAT(fault(star + "degraded: [{devices: '*gpu0', speed: 2}]\n"), HasSubstr("at most 1"));
}

TEST(Broken, DevicesAreDownOrSlow) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"node0/gpu1"};
  config.degraded = {{.links = {}, .factor = {}, .devices = "node1/*", .speed = 0.5}};
  const auto cluster = must_build(config);
  EXPECT_FALSE(cluster.devices()[1].up);
  EXPECT_TRUE(cluster.devices()[0].up);
  EXPECT_EQ(cluster.devices()[3].speed, 0.5);
  const auto route = cluster.route(DeviceId(0), DeviceId(1));
  ASSERT_FALSE(route);
  EXPECT_THAT(route.error().message, HasSubstr("down: node0/gpu1"));
}

}  // namespace bad_clusters_test
}  // namespace foreshard
