// The commands about clusters, from the command line.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

constexpr const char* kXml = FORESHARD_SOURCE_DIR "/tests/topology/import/data/h100.xml";

TEST(TopologyImport, GivesAFileThatCheckAndShowAccept) {
  const TemporaryFolder folder;
  const std::string node = (folder.path() / "node.yaml").string();
  const Outcome imported =
      foreshard(std::string("topology import '") + kXml + "' -o '" + node + "'");
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(imported.out, "");
  EXPECT_THAT(imported.err, HasSubstr("the usual machine of H100-SXM"));
  const Outcome checked = foreshard("check '" + node + "'");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("is a well-formed node"));
  EXPECT_EQ(foreshard("check - <'" + node + "'").code, 0);
  const Outcome raw = foreshard(std::string("check '") + kXml + "'");
  EXPECT_EQ(raw.code, 2);
  EXPECT_THAT(raw.err, HasSubstr("is in the format nccl-xml of another tool"));
  EXPECT_THAT(raw.err, HasSubstr("foreshard topology import"));
  const std::string cluster =
      folder.write("cluster.yaml", "nodes: 2\nnode: ./node.yaml\nfabric: {kind: single-switch}\n")
          .string();
  EXPECT_EQ(foreshard("topology show '" + cluster + "'").code, 0);
  const Outcome sound = foreshard("topology check --strict '" + cluster + "'");
  EXPECT_EQ(sound.code, 0) << sound.out;
  EXPECT_THAT(sound.out, HasSubstr("nothing implausible"));
}

// What a terminal would obey is escaped in results, and is an escape of JSON there.
TEST(TopologyShow, MakesNamesFromOutsideHarmless) {
  const TemporaryFolder folder;
  const std::string cluster = folder
                                  .write("cluster.yaml",
                                         "name: h\x7fx\nnodes: 2\nnode: dgx-h100\n"
                                         "fabric: {kind: single-switch}\n")
                                  .string();
  const Outcome shown = foreshard("topology show '" + cluster + "'");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("cluster h\\x7fx: 2 nodes"));
  const Outcome json = foreshard("topology show --format json '" + cluster + "'");
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.out.find('\x7f'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json.out)["name"], "h\x7fx");
}

// A node is a cluster of one, for the commands about clusters.
TEST(TopologyImport, ItsNodeIsShownAndChecked) {
  const TemporaryFolder folder;
  const std::string node = (folder.path() / "my-node.yaml").string();
  ASSERT_EQ(foreshard(std::string("topology import '") + kXml + "' -o '" + node + "'").code, 0);
  const Outcome shown = foreshard("topology show '" + node + "'");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("cluster my-node: 1 node, 8 x H100-SXM"));
  EXPECT_EQ(foreshard("topology check --strict '" + node + "'").code, 0);
  EXPECT_EQ(foreshard("topology collectives '" + node + "' --sizes 1MiB").code, 0);
}

// 40 switches: their hosts stand in the file, the first of them on the screen.
TEST(TopologyImport, SumsUpLongListsOfRemarks) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "SwitchName=s" + std::to_string(i) + " Nodes=n" + std::to_string(i) + "\n";
  const std::string file =
      folder.write("topology.conf", text + "SwitchName=top Switches=s[0-39]\n").string();
  const Outcome imported = foreshard("topology import '" + file + "' --node gh200-1gpu");
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("# - node39 is n39, under s39"));
  EXPECT_THAT(imported.err, HasSubstr("more remarks stand at the top of what was written"));
  EXPECT_LE(std::ranges::count(imported.err, '\n'), 12);
}

TEST(TopologyImport, RefusesWithTheLine) {
  const TemporaryFolder folder;
  const std::string file =
      folder
          .write("bad.xml",
                 "<system version=\"1\">\n<cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>")
          .string();
  const Outcome outcome = foreshard("topology import '" + file + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("bad.xml:3: error: <cpu>: numaid=\"0\" is there twice"));
  EXPECT_EQ(foreshard(std::string("topology import '") + kXml + "' --as slum").code, 2);
  EXPECT_EQ(foreshard("topology import /nonexistent.xml").code, 2);
}

TEST(TopologyCheck, StrictFailsOnWarnings) {
  const std::string slip = "topology check two-dgx-h100 --set node.nics.bandwidth=400GB/s";
  const Outcome warned = foreshard(slip);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_THAT(warned.out, HasSubstr("warning: port-rate: node0/nic0 (and 15 more)"));
  EXPECT_EQ(foreshard(slip + " --strict").code, 4);
  const auto findings = nlohmann::json::parse(foreshard(slip + " --format json").out);
  EXPECT_EQ(findings.at("findings").at(0).at("rule"), "port-rate");
}

TEST(TopologyShow, WritesSimgridPlatforms) {
  const Outcome outcome = foreshard("topology show two-dgx-h100 --format simgrid");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("<route src=\"node0/gpu0\" dst=\"node1/gpu7\""));
  EXPECT_THAT(outcome.err, HasSubstr("ecmp-hash"));
}

}  // namespace
}  // namespace foreshard::cli
