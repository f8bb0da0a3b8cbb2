// The commands about clusters, from the command line.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace foreshard::cli {
namespace {

using testing::HasSubstr;

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
  EXPECT_EQ(findings.at(0).at("rule"), "port-rate");
}

TEST(TopologyShow, WritesSimgridPlatforms) {
  const Outcome outcome = foreshard("topology show two-dgx-h100 --format simgrid");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("<route src=\"node0/gpu0\" dst=\"node1/gpu7\""));
  EXPECT_THAT(outcome.err, HasSubstr("ecmp-hash"));
}

}  // namespace
}  // namespace foreshard::cli
