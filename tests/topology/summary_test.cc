#include "topology/summary.h"

#include "small_clusters.h"
#include "tests/test.h"

#include "topology/dot.h"

namespace foreshard {
namespace {

// GPUs 0-1 to GPUs 2-3: 2 x 100 GB/s over NVSwitch, and over PCIe 63 GB/s each out of their
// switches; the two sockets hold one 22 GB/s link between them, with 2 switches under each.
TEST(Bisection, OfOneNodeCountsNvlinkAndPcie) {
  const auto cluster = must_build(small_cluster(1, {}, small_node(4)));
  EXPECT_NEAR(*bisection_bandwidth(cluster) / 1_GB_s, 2 * 100 + 22, 1e-6);
}

TEST(Bisection, LeavesOutWhatIsDown) {
  auto config = small_cluster(4, {.kind = "single-switch"});
  config.down = {"node0/nic1"};
  EXPECT_NEAR(*bisection_bandwidth(must_build(config)) / 1_GB_s, 30, 1e-6);
  EXPECT_FALSE(bisection_bandwidth(must_build(small_cluster(1, {}, small_node(1)))));
}

TEST(Summary, SaysWhatThereIs) {
  const auto summary = summarize(must_build(small_cluster(2, {.kind = "single-switch"})));
  EXPECT_EQ(summary.nodes, 2);
  EXPECT_EQ(summary.devices.at("test"), 4);
  EXPECT_EQ(summary.vertices.at("nic"), 4);
  ASSERT_EQ(summary.links.size(), 4U);
  EXPECT_EQ(summary.links[0].kind, LinkKind::kNvLink);
  EXPECT_EQ(summary.links[0].count, 8);  // 4 GPUs, both directions
  EXPECT_THAT(to_text(summary),
              AllOf(HasSubstr("2 nodes, 4 x test"), HasSubstr("bisection bandwidth: 20.0 GB/s"),
                    HasSubstr("node0/gpu0 to node1/gpu0: 10.0 GB/s")));
  const auto json = to_json(summary);
  EXPECT_THAT(json, AllOf(HasSubstr("\"schema\": \"foreshard.topology/1\""),
                          HasSubstr("\"bisection_bytes_per_s\": 20000000000.0")));
}

TEST(Dot, GroupsByNodeAndDrawsACableOnce) {
  auto config = small_cluster(2, {.kind = "single-switch"});
  config.down = {"node1/nic1 - switch"};
  const auto cluster = must_build(config);
  const auto dot = to_dot(cluster);
  EXPECT_THAT(dot, AllOf(HasSubstr("subgraph cluster_node1"), HasSubstr("color=red, style=dashed"),
                         Not(HasSubstr("dir=forward"))));
  std::size_t lines = 0;
  for (std::size_t at = dot.find(" -- "); at != std::string::npos; at = dot.find(" -- ", at + 1))
    ++lines;
  EXPECT_EQ(lines, cluster.links().size() / 2);
  EXPECT_THAT(to_dot(cluster, 1),
              AllOf(HasSubstr("1 of 2 nodes"), Not(HasSubstr("cluster_node1"))));
}

}  // namespace
}  // namespace foreshard
