// SLURM's topology.conf, and its host lists.
#include "imports.h"

#include "topology/import/internal/hostlist.h"

namespace foreshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> expanded(const std::string& text) {
  const auto names = internal::expand_hostlist(text, 100);
  if (const auto* fault = std::get_if<std::string>(&names)) return {*fault};
  return std::get<std::vector<std::string>>(names);
}

TEST(Hostlist, ExpandsRangesAndBrackets) {
  EXPECT_THAT(expanded("tux[0-2,9]"), ElementsAre("tux0", "tux1", "tux2", "tux9"));
  EXPECT_THAT(expanded("a[08-11],b"), ElementsAre("a08", "a09", "a10", "a11", "b"));
  EXPECT_THAT(expanded("r[0-1]n[1-2]x"), ElementsAre("r0n1x", "r0n2x", "r1n1x", "r1n2x"));
  EXPECT_THAT(expanded("tux[3-1]"), ElementsAre(HasSubstr("not a list of ranges")));
  EXPECT_THAT(expanded("tux[1"), ElementsAre(HasSubstr("do not match")));
  EXPECT_THAT(expanded("a\xb9"), ElementsAre(HasSubstr("not the name of a host")));
  EXPECT_THAT(expanded("a,,b"), ElementsAre(HasSubstr("empty name")));
  EXPECT_THAT(expanded("a[0-999999999]"), ElementsAre(HasSubstr("more than 100")));
  EXPECT_THAT(expanded("a[0-9]b[0-9]c[0-9]"), ElementsAre(HasSubstr("more than 100")));
}

constexpr const char* kConf = R"(# two leaves, of which one has a slow way up
SwitchName=s0 Nodes=tux[0-1]   # rack 0
switchname=s1 \
  NODES=tux[2-3],\
login1
SwitchName=top Switches=s[0-1] LinkSpeed=100Gbit/s
)";

Result<Imported> import_conf(const std::string& text, const std::string& node = "dgx-h100") {
  auto loader = catalogue();
  return import_topology({.text = text, .name = "topology.conf", .node = node}, loader);
}

std::string fault(const std::string& text) {
  const auto imported = import_conf(text);
  return imported ? "accepted" : imported.error().message;
}

// Five DGX H100 with eight NICs of 400 Gbit/s (x 0.978: 48.9 GB/s); 100 Gbit/s from leaf to top.
TEST(Slurm, ReadsATreeOfSwitches) {
  const auto imported = import_conf(kConf);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->remarks,
              testing::Contains(HasSubstr("node2 to node4 are tux[2-3],login1")));
  const auto config = read_back<ClusterConfig>(*imported);
  EXPECT_EQ(config.nodes, 5);
  EXPECT_EQ(config.node->name, "dgx-h100");
  const auto cluster = build_cluster(config);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto found = rates(*cluster);
  EXPECT_DOUBLE_EQ(found.at("node0/nic7>s0"), 48.9);
  EXPECT_DOUBLE_EQ(found.at("s1>node4/nic0"), 48.9);
  EXPECT_DOUBLE_EQ(found.at("s0>top"), 12.5);
  EXPECT_DOUBLE_EQ(found.at("top>s1"), 12.5);
  EXPECT_EQ(found.count("node2/nic0>s0"), 0U);
  EXPECT_TRUE(cluster->route(DeviceId(0), DeviceId(39)));
}

// Without a speed a link up carries all below it: 2 x 8 x 48.9 GB/s.
TEST(Slurm, LinksWithoutASpeedDoNotBlock) {
  const auto imported = import_conf(changed(kConf, " LinkSpeed=100Gbit/s", ""));
  ASSERT_TRUE(imported) << imported.error().message;
  const auto cluster = build_cluster(read_back<ClusterConfig>(*imported));
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_NEAR(rates(*cluster).at("s0>top"), 782.4, 1e-9);
  EXPECT_THAT(imported->remarks, testing::Contains(HasSubstr("--link-rate")));
}

TEST(Slurm, RefusesWithTheLine) {
  EXPECT_THAT(fault(changed(kConf, "s[0-1]", "s[0-2]")),
              HasSubstr("topology.conf:6: error: SwitchName=top: there is no switch 's2'"));
  EXPECT_THAT(fault(changed(kConf, "switchname=s1", "switchname=s0")), HasSubstr("is there twice"));
  EXPECT_THAT(fault(changed(kConf, "tux[2-3]", "tux[1-3]")),
              HasSubstr("topology.conf:3: error: SwitchName=s1: node 'tux1' is also under s0"));
  EXPECT_THAT(fault(changed(kConf, "s[0-1]", "s0")), HasSubstr("joined to s1 by no switch"));
  EXPECT_THAT(fault(std::string(kConf) + "SwitchName=up Switches=top,s0\n"),
              HasSubstr("s0 is already under top"));
  EXPECT_THAT(fault("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), HasSubstr("itself"));
  EXPECT_THAT(fault(changed(kConf, "Nodes=", "Hosts=")), HasSubstr("'hosts' is none of"));
  EXPECT_THAT(fault(changed(kConf, "100Gbit/s", "fast")), HasSubstr("LinkSpeed=fast"));
  EXPECT_THAT(fault(changed(kConf, "SwitchName=s0", "SwitchName=s[0-1]")),
              HasSubstr("single name"));
  EXPECT_THAT(fault("SwitchName=a BlockSizes=2\n"), HasSubstr("topology/block"));
  auto loader = catalogue();
  const auto nameless = import_topology({.text = kConf, .name = "topology.conf"}, loader);
  ASSERT_FALSE(nameless);
  EXPECT_THAT(nameless.error().message, HasSubstr("--node dgx-h100"));
}

}  // namespace
}  // namespace foreshard
