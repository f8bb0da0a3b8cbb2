// What a single text may say; tests/errors/yaml.yaml has what it may not.

#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard::reader_test {

using example::fault;

Result<example::Cluster> read(const std::string& text) {
  return yaml::Loader().read_text<example::Cluster>(text, "c.yaml");
}

TEST(YamlReader, ReadsEveryKindOfMember) {
  const auto cluster = value_of(read(R"(
name: hall 7
nodes: 64
radix: 128
fabric: rail-fat-tree
shared: true
oversubscription: 1.5
device:
  peak: {value: 989 TFLOP/s, source: the datasheet, evidence: datasheet}
  memory: 80 GiB
nics:
  - bandwidth: 400 Gbit/s
  - {bandwidth: 100 Gbit/s, latency: 2 us, count: 2}
tags: [a, "b: c", 8b]
weights: {x: 0.5, y: -1e-3}
storage: {bandwidth: 1 GB/s}
)"));
  EXPECT_EQ(cluster.name, "hall 7");
  EXPECT_EQ(cluster.nodes, 64);
  EXPECT_EQ(cluster.radix, 128);
  EXPECT_EQ(cluster.fabric, example::Fabric::kRailFatTree);
  EXPECT_TRUE(cluster.shared);
  EXPECT_EQ(cluster.oversubscription, 1.5);
  EXPECT_EQ(cluster.device->peak.value, 989_TFLOP_s);
  EXPECT_EQ(cluster.device->peak.source, "the datasheet");
  EXPECT_EQ(cluster.device->peak.evidence, yaml::Evidence::kDatasheet);
  EXPECT_EQ(cluster.device->memory.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(cluster.device->power, std::nullopt);
  EXPECT_EQ(cluster.device.name, "");
  ASSERT_EQ(cluster.nics.size(), 2u);
  EXPECT_EQ(cluster.nics[0].latency, 1_us);  // the default of its constructor
  EXPECT_EQ(cluster.nics[1].count, 2);
  EXPECT_THAT(cluster.tags, ElementsAre("a", "b: c", "8b"));
  EXPECT_EQ(cluster.weights.at("y"), -1e-3);
  EXPECT_EQ(cluster.storage->bandwidth, 1_GB_s);
  EXPECT_EQ(cluster.tier, "gold");
}

TEST(YamlReader, ShowsPlaceLineAndCaret) {
  EXPECT_EQ(fault("name: x\nndoes: 64\n"),
            "c.yaml:2:1: error: unknown key 'ndoes' in cluster\n"
            "   2 | ndoes: 64\n"
            "     | ^^^^^\n"
            "     help: did you mean 'nodes'?");
}

TEST(YamlReader, NullLeavesAnOptionalEmpty) {
  EXPECT_FALSE(value_of(read("name: x\nstorage: null\n")).storage.has_value());
}

TEST(YamlReader, AnchorsRepeatValues) {
  const auto cluster = value_of(read("name: x\nnics: [&n {bandwidth: 1 GB/s}, *n]\nstorage: *n\n"));
  EXPECT_EQ(cluster.nics[1].bandwidth, 1_GB_s);
  EXPECT_EQ(cluster.storage->bandwidth, 1_GB_s);
}

TEST(YamlReader, ReportsWhatIsNoText) {
  EXPECT_THAT(fault(std::string("name: \0x\n", 9)), HasSubstr("found the byte 0x00"));
  EXPECT_THAT(fault("name: x\nnodes: \xC3("),
              AllOf(StartsWith("c.yaml:2:8"), HasSubstr("not a text file in UTF-8")));
  EXPECT_THAT(fault(std::string("\xFF\xFEn\0", 4)), HasSubstr("in UTF-16: iconv -f UTF-16"));
  EXPECT_THAT(fault("name: \xED\xA0\x80\n"), HasSubstr("0xed"));  // a surrogate
  EXPECT_THAT(fault("name: \xC0\xAF\n"), HasSubstr("0xc0"));      // an overlong form
}

TEST(YamlReader, CountsColumnsInCharacters) {
  EXPECT_EQ(fault("name: Zürich\nweights: {ü: 3}\n").substr(0, 14), "c.yaml:2:14: e");
}

}  // namespace foreshard::reader_test
