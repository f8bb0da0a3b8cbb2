// Machines of a size that was asked for: a part of one, another one of that size, or none.
#include "topology/cluster_for.h"

#include "tests/test.h"

namespace foreshard {
namespace {

Result<ClusterConfig> asked(const ClusterRequest& request) {
  yaml::Loader loader(shipped_options());
  return cluster_for(request, loader);
}

double nvlink_between(const ClusterView& cluster, std::int64_t from, std::int64_t to) {
  const auto route = cluster.route(DeviceId(from), DeviceId(to));
  EXPECT_TRUE(route) << route.error().message;
  if (!route || route->links.size() != 1) return 0;
  return cluster.links()[route->links.front().link.index()].nominal() / 1_GB_s;
}

// Alps, Isambard-AI and JUPITER: six of a GPU's 18 NVLinks of 25 GB/s to each of three others.
TEST(ClusterFor, NodesOfFourGh200AreJoinedByNvlink) {
  const auto config = value_of(asked({.device = "GH200-96GB", .gpus = 8, .gpus_per_node = 4}));
  EXPECT_EQ(config.nodes, 2);
  EXPECT_EQ(config.node->value.nics->count, 4);
  const auto cluster = value_of(build_cluster(config));
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t step = 1; step < 4; ++step)
      EXPECT_DOUBLE_EQ(nvlink_between(cluster, i, (i + step) % 4), 150);
  // Two of such a node are its first two; nodes of one stay as they were.
  const auto two = value_of(asked({.device = "GH200-96GB", .gpus = 2, .gpus_per_node = 4}));
  EXPECT_DOUBLE_EQ(nvlink_between(*build_cluster(two), 0, 1), 150);
  const auto one = value_of(asked({.device = "GH200-96GB", .gpus = 2, .gpus_per_node = 1}));
  EXPECT_EQ(one.node->name, "by-device/GH200-96GB");
}

// Links that nobody built are not invented: neither an NVSwitch of 16, nor a mesh of 16, nor PCIe
// between superchips. Cards on PCIe are only more of the same.
TEST(ClusterFor, RefusesNodesThatAreLargerThanTheirMachine) {
  for (const char* device : {"H100-SXM", "MI300X", "V100-SXM-32GB", "GH200-144GB"}) {
    const auto config = asked({.device = device, .gpus = 16, .gpus_per_node = 16});
    ASSERT_FALSE(config) << device;
    EXPECT_THAT(config.error().message, HasSubstr("how 16 would be joined is not known"));
  }
  EXPECT_TRUE(asked({.device = "L40S", .gpus = 10, .gpus_per_node = 10}));
  EXPECT_TRUE(asked({.device = "H100-SXM", .gpus = 4, .gpus_per_node = 4}));
}

TEST(ClusterFor, SuperchipsWithoutNvlinkAreRefusedInAFileToo) {
  const std::string node =
      message_of(yaml::Loader(shipped_options())
                     .read_text<NodeConfig>("{extends: gh200-1gpu, gpus: 4}", "node.yaml"));
  EXPECT_THAT(node, HasSubstr("nothing says how they are joined"));
  EXPECT_THAT(node, HasSubstr("gh200-4gpu"));
}

}  // namespace
}  // namespace foreshard
