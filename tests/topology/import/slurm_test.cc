// SLURM's topology.conf, and its host lists.
#include "imports.h"
#include "tests/test.h"

#include "topology/internal/hostlist.h"

namespace foreshard::slurm_test {

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
  return message_of(import_conf(text));
}

// Five DGX H100 with eight NICs of 400 Gbit/s (x 0.978: 48.9 GB/s); 100 Gbit/s from leaf to top.
TEST(Slurm, ReadsATreeOfSwitches) {
  const auto imported = value_of(import_conf(kConf));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("node[2-4] are tux[2-3],login1")));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 5);
  EXPECT_EQ(config.node->name, "dgx-h100");
  const auto cluster = value_of(build_cluster(config));
  const auto found = rates(cluster);
  EXPECT_DOUBLE_EQ(found.at("node0/nic7>s0"), 48.9);
  EXPECT_DOUBLE_EQ(found.at("s1>node4/nic0"), 48.9);
  EXPECT_DOUBLE_EQ(found.at("s0>top"), 12.5);
  EXPECT_DOUBLE_EQ(found.at("top>s1"), 12.5);
  EXPECT_EQ(found.count("node2/nic0>s0"), 0U);
  EXPECT_TRUE(cluster.route(DeviceId(0), DeviceId(39)));
}

// Numbers of LinkSpeed are Gbit/s where no unit stands there.
TEST(Slurm, SpeedsWithoutAUnitAreGbit) {
  const auto imported = value_of(import_conf(changed(kConf, "100Gbit/s", "100")));
  EXPECT_DOUBLE_EQ(rates(value_of(build_cluster(read_back<ClusterConfig>(imported)))).at("s0>top"),
                   12.5);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("LinkSpeed=100 has no unit")));
}

// Without a speed a link up carries all below it: 2 x 8 x 48.9 GB/s.
TEST(Slurm, LinksWithoutASpeedDoNotBlock) {
  const auto imported = value_of(import_conf(changed(kConf, " LinkSpeed=100Gbit/s", "")));
  const auto cluster = value_of(build_cluster(read_back<ClusterConfig>(imported)));
  EXPECT_NEAR(rates(cluster).at("s0>top"), 782.4, 1e-9);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("--link-rate")));
}

// Two trees: inside each all is as alone, between them nothing goes.
TEST(Slurm, AForestHasPartsThatDoNotMeet) {
  const auto imported = value_of(import_conf(changed(kConf, "s[0-1]", "s0")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("no switch joins the 2 at the top (s1, top)")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("warning: isolated")));
  const auto cluster = value_of(build_cluster(read_back<ClusterConfig>(imported)));
  EXPECT_TRUE(cluster.route(DeviceId(0), DeviceId(8)));
  EXPECT_FALSE(cluster.route(DeviceId(0), DeviceId(39)));
}

constexpr const char* kBlocks = R"(BlockName=b1 Nodes=tux[0-1]
BlockName=b2 Nodes=tux[2-3]
BlockSizes=2,4
)";

// Two blocks of two hosts: what leaves a block is all that its hosts have, 2 x 8 x 48.9 GB/s.
TEST(Slurm, BlocksAreSwitchesBelowOne) {
  const auto imported = value_of(import_conf(kBlocks));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("topology/block names no switches")));
  const auto cluster = value_of(build_cluster(read_back<ClusterConfig>(imported)));
  EXPECT_NEAR(rates(cluster).at("b1>blocks"), 782.4, 1e-9);
  EXPECT_TRUE(cluster.route(DeviceId(0), DeviceId(31)));
}

// Two racks of 18 trays with four GB200 each: SLURM's hosts are the trays, a block is the NVLink
// domain.
TEST(Slurm, BlocksOfTraysAreRacks) {
  const std::string text =
      "BlockName=r1 Nodes=tray[01-18]\nBlockName=r2 Nodes=tray[21-38]\nBlockSizes=18,36\n";
  const auto imported = value_of(import_conf(text, "gb200-nvl72"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("18 hosts listed together as one")));
  EXPECT_THAT(imported.remarks, Contains("node0 is tray[01-18], under r1"));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 2);
  const auto cluster = value_of(build_cluster(config));
  EXPECT_EQ(cluster.devices().size(), 144u);
  EXPECT_NEAR(rates(cluster).at("r1>blocks"), 72 * 48.9, 1e-9);
  // Sixteen trays are no rack of 18.
  const std::string part =
      message_of(import_conf("BlockName=r1 Nodes=tray[01-16]\n", "gb200-nvl72"));
  EXPECT_THAT(part, HasSubstr("16 hosts are not whole racks"));
  EXPECT_THAT(part, HasSubstr("gpus: 64, nics: {count: 64}"));
}

constexpr const char* kYaml = R"(---
# two topologies
- topology: racks
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: tux[0-1]
- topology: "tree"   # this one
  cluster_default: true
  tree:
    switches:
    - switch: s0
      nodes: tux[0-1]
    - switch: s1
      nodes:
        - tux2
        - tux3
    - switch: top
      children: [s0, s1]
)";

TEST(Slurm, ReadsTopologyYaml) {
  const auto imported = value_of(import_conf(kYaml));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("of 2 topologies 'tree' is taken")));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 4);
  EXPECT_NEAR(rates(value_of(build_cluster(config))).at("s1>top"), 782.4, 1e-9);

  const auto racks = value_of(import_conf(changed(kYaml, "true", "false")));
  EXPECT_EQ(read_back<ClusterConfig>(racks).nodes, 2);
}

// 5,000 hosts take a line per switch, not per cable.
TEST(Slurm, ManyHostsTakeFewLines) {
  std::string text;
  for (int i = 0; i < 250; ++i)
    text += "SwitchName=s" + std::to_string(i) + " Nodes=n[" + std::to_string(20 * i) + "-" +
            std::to_string(20 * i + 19) + "]\n";
  const auto imported =
      value_of(import_conf(text + "SwitchName=top Switches=s[0-249]\n", "gh200-1gpu"));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 5000);
  EXPECT_LE(config.fabric.custom->cables.size(), 500U);
}

// Pasted from a slurm.conf: how jobs are placed is no part of the network.
TEST(Slurm, PassesOverWhatPlacesJobs) {
  const auto plain = import_conf(kConf);
  const auto with = import_conf("TopologyParam=SwitchAsNodeRank\nTopologyPlugin=topology/tree\n" +
                                std::string(kConf));
  ASSERT_TRUE(plain && with) << (with ? "" : with.error().message);
  EXPECT_EQ(std::get<ClusterConfig>(plain->what).nodes, std::get<ClusterConfig>(with->what).nodes);
}

TEST(Slurm, RefusesNamesThatAreNone) {
  EXPECT_THAT(fault(changed(kConf, "login1", "log\xb9n1")), HasSubstr("not the name of a host"));
  auto loader = catalogue();
  EXPECT_THAT(message_of(import_topology({.text = kConf, .name = "topology.conf"}, loader)),
              HasSubstr("--node dgx-h100"));
}

// What scontrol prints of kConf: levels, a LinkSpeed of 1 where none was given, and of the upper
// switch all hosts below it.
TEST(Slurm, ReadsWhatScontrolShows) {
  const auto imported = value_of(
      import_conf("SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-1]\n"
                  "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=login1,tux[2-3]\n"
                  "SwitchName=top Level=1 LinkSpeed=1 Nodes=login1,tux[0-3] Switches=s[0-1]\n"));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 5);
  const auto cluster = value_of(build_cluster(config));
  const auto found = rates(cluster);
  EXPECT_DOUBLE_EQ(found.at("node0/nic7>s0"), 48.9);  // not 1 Gbit/s
  EXPECT_NEAR(found.at("s0>top"), 2 * 8 * 48.9, 1e-9);
  const auto blocks =
      value_of(import_conf("BlockName=b1 BlockIndex=0 Nodes=tux[0-1] BlockSize=2\n"
                           "BlockName=b2 BlockIndex=1 Nodes=tux[2-3] BlockSize=2\n"
                           "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=tux[0-3] BlockSize=4\n"));
  EXPECT_EQ(read_back<ClusterConfig>(blocks).nodes, 4);
}

}  // namespace foreshard::slurm_test
