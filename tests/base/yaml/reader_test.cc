// What a single text may say, and what is said about it when it may not.
#include <gmock/gmock.h>
#include <string>

#include "base/yaml/loader.h"
#include "tests/base/yaml/example.h"

namespace foreshard {
namespace reader_test {

using example::Cluster;
using example::fault;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Result<Cluster> read(const std::string& text) {
  return yaml::Loader().read_text<Cluster>(text, "c.yaml");
}

TEST(YamlReader, ReadsEveryKindOfMember) {
  const auto cluster = read(R"(
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
)");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "hall 7");
  EXPECT_EQ(cluster->nodes, 64);
  EXPECT_EQ(cluster->radix, 128);
  EXPECT_EQ(cluster->fabric, example::Fabric::kRailFatTree);
  EXPECT_TRUE(cluster->shared);
  EXPECT_EQ(cluster->oversubscription, 1.5);
  EXPECT_EQ(cluster->device->peak.value, 989_TFLOP_s);
  EXPECT_EQ(cluster->device->peak.source, "the datasheet");
  EXPECT_EQ(cluster->device->peak.evidence, yaml::Evidence::kDatasheet);
  EXPECT_EQ(cluster->device->memory.evidence, yaml::Evidence::kUser);
  EXPECT_EQ(cluster->device->power, std::nullopt);
  EXPECT_EQ(cluster->device.name, "");
  ASSERT_EQ(cluster->nics.size(), 2u);
  EXPECT_EQ(cluster->nics[0].latency, 1_us);  // the default of its constructor
  EXPECT_EQ(cluster->nics[1].count, 2);
  EXPECT_THAT(cluster->tags, ElementsAre("a", "b: c", "8b"));
  EXPECT_EQ(cluster->weights.at("y"), -1e-3);
  EXPECT_EQ(cluster->storage->bandwidth, 1_GB_s);
  EXPECT_EQ(cluster->tier, "gold");
}

TEST(YamlReader, ShowsPlaceLineAndCaret) {
  EXPECT_EQ(fault("name: x\nndoes: 64\n"),
            "c.yaml:2:1: error: unknown key 'ndoes' in cluster\n"
            "   2 | ndoes: 64\n"
            "     | ^^^^^\n"
            "     help: did you mean 'nodes'?");
  EXPECT_THAT(fault("name: x\nnics: [{bandwidth: 400}]\n"),
              StartsWith("c.yaml:2:20: error: 'bandwidth': '400' has no unit\n"
                         "   2 | nics: [{bandwidth: 400}]\n"
                         "     |                    ^^^\n"));
}

TEST(YamlReader, TellsAllFaultsInOneRun) {
  EXPECT_THAT(fault("nodes: x\nshared: yes\nfoo: 1\n"),
              AllOf(HasSubstr("c.yaml:1:8: error"), HasSubstr("c.yaml:2:9: error"),
                    HasSubstr("c.yaml:3:1: error"), HasSubstr("lacks the required key 'name'")));
}

TEST(YamlReader, UnknownKeysOfferTheLegalOnes) {
  EXPECT_THAT(fault("name: x\nbanana: 1\n"), HasSubstr("legal: 'name', 'nodes', 'radix'"));
}

TEST(YamlReader, DuplicateKeysNameBothLines) {
  EXPECT_THAT(fault("name: x\nnodes: 1\nname: y\n"),
              AllOf(StartsWith("c.yaml:3:1: error: duplicate key 'name'"),
                    HasSubstr("first set at line 1")));
  EXPECT_THAT(fault("name: x\n\"name\": y\n"), HasSubstr("duplicate key 'name'"));
  EXPECT_THAT(fault("name: x\nweights: {a: 1, b: 1, a: 1}\n"), HasSubstr("duplicate key 'a'"));
}

TEST(YamlReader, MissingKeysSayWhatToAdd) {
  EXPECT_THAT(fault("name: x\ndevice: {power: 700 W}\n"),
              AllOf(HasSubstr("c.yaml:2:9: error: device lacks the required keys 'peak', 'memory'"),
                    HasSubstr("peak: <a rate of work with its unit, e.g. '2 TFLOP/s'>  # Dense "
                              "bf16 rate.")));
}

TEST(YamlReader, WrongShapesNameBothShapes) {
  EXPECT_THAT(fault("[1]"), HasSubstr("must be a mapping (cluster), found a list"));
  EXPECT_THAT(fault("just text"), HasSubstr("found the text 'just text'"));
  EXPECT_THAT(fault("name: [a]"), HasSubstr("'name' must be a text, found a list"));
  EXPECT_THAT(fault("name: {a: b}"), HasSubstr("'name' must be a text, found a mapping"));
  EXPECT_THAT(fault("name: x\ntags: a"),
              AllOf(HasSubstr("'tags' must be a list"), HasSubstr("a list of one is written [a]")));
  EXPECT_THAT(fault("name: x\nweights: [1]"), HasSubstr("must be a mapping from names"));
  EXPECT_THAT(fault("name: x\nnics: [3]"), AllOf(HasSubstr("'nics[0]' must be a mapping (nic)"),
                                                 HasSubstr("its keys: bandwidth, latency, count")));
  EXPECT_THAT(fault("name:\nnodes: ~\n"),
              AllOf(HasSubstr("'name' has no value"), HasSubstr("'nodes' has no value")));
}

TEST(YamlReader, WholeNumbersAreStrict) {
  const auto nodes = [](const std::string& value) { return fault("name: x\nnodes: " + value); };
  EXPECT_THAT(nodes("1.0"), HasSubstr("must be a whole number, found '1.0'"));
  EXPECT_THAT(nodes("1e3"), HasSubstr("must be a whole number"));
  EXPECT_THAT(nodes("0x10"), HasSubstr("must be a whole number"));
  EXPECT_THAT(nodes("010"), HasSubstr("without leading zeros"));
  EXPECT_THAT(nodes("1_000"), HasSubstr("must be a whole number"));
  EXPECT_THAT(nodes("'8'"), HasSubstr("remove the quotes"));
  EXPECT_THAT(nodes("9223372036854775808"), HasSubstr("out of range"));
  EXPECT_THAT(nodes("0"), HasSubstr("must be between 1 and 100000, found 0"));
  EXPECT_THAT(nodes("100001"), HasSubstr("must be between 1 and 100000, found 100001"));
  EXPECT_THAT(nodes(".inf"), HasSubstr("must be a whole number"));
  EXPECT_THAT(fault("name: x\nradix: 2147483648"), HasSubstr("between -2147483648 and 2147483647"));
  EXPECT_THAT(nodes("-0"), HasSubstr("found 0"));
}

TEST(YamlReader, RatiosAreFinite) {
  const auto ratio = [](const std::string& v) { return fault("name: x\noversubscription: " + v); };
  for (const char* value : {"nan", ".nan", "inf", ".inf", "-.inf", "-inf", "0x1p3", "1,5", "+-1"})
    EXPECT_THAT(ratio(value), HasSubstr("must be a number, found")) << value;
  EXPECT_THAT(ratio("1e999"), HasSubstr("out of range"));
  EXPECT_THAT(ratio("150%"), HasSubstr("write the ratio: 1.5"));
  EXPECT_THAT(ratio("0.5"), HasSubstr("must be at least 1, found 0.5"));
  EXPECT_EQ(ratio("2"), "accepted");
}

TEST(YamlReader, BooleansAreTrueOrFalse) {
  EXPECT_THAT(fault("name: x\nshared: yes"), HasSubstr("write true"));
  EXPECT_THAT(fault("name: x\nshared: 'true'"), HasSubstr("found the quoted text 'true'"));
}

TEST(YamlReader, WordsAreOneOfTheirs) {
  EXPECT_THAT(fault("name: x\nfabric: rail-fattree"),
              AllOf(HasSubstr("did you mean 'rail-fat-tree'?"),
                    HasSubstr("legal: 'single-switch' or 'rail-fat-tree'")));
  EXPECT_THAT(fault("name: x\ntier: glod"),
              AllOf(HasSubstr("must be 'gold' or 'silver'"), HasSubstr("did you mean 'gold'?")));
  EXPECT_THAT(fault("name: ''"), HasSubstr("'name' must not be empty"));
}

TEST(YamlReader, ConstraintsReachIntoContainers) {
  EXPECT_THAT(fault("name: x\nweights: {a: 0.5, b: 2}"),
              HasSubstr("'weights.b' must be at most 1"));
  EXPECT_THAT(fault("name: x\ndevice: {peak: 0 TFLOP/s, memory: -1 GiB, power: 0 W}"),
              AllOf(HasSubstr("'peak' must be positive, found 0 "),
                    HasSubstr("'memory' must be positive, found -1 GiB"),
                    HasSubstr("'power' must be positive")));
  EXPECT_THAT(fault("name: x\nnics: [{bandwidth: 1 GB/s, latency: -1 us}]"),
              HasSubstr("'latency' must be not negative, found -1 us"));
}

TEST(YamlReader, ConditionsBetweenMembersPointAtTheirKey) {
  const std::string nic = "{bandwidth: 1 GB/s}";
  EXPECT_THAT(fault("name: x\nnics: [" + nic + ", " + nic + ", " + nic + "]"),
              StartsWith("c.yaml:2:7: error: a node has at most 2 kinds of nics"));
}

TEST(YamlReader, SourcedNumbersTellTheirOrigin) {
  const auto peak = [](const std::string& v) {
    return fault("name: x\ndevice: {memory: 1 GiB, peak: " + v + "}");
  };
  EXPECT_THAT(peak("{value: 1 TFLOP/s}"),
              AllOf(HasSubstr("'peak' lacks 'source' or 'evidence'"), HasSubstr("datasheet")));
  EXPECT_THAT(peak("{value: 1 TFLOP/s, source: x, evidence: hearsay}"),
              HasSubstr("'peak.evidence' cannot be 'hearsay'"));
  EXPECT_THAT(peak("{value: 1 TFLOP/s, source: x, evidence: fitted, sorce: y}"),
              HasSubstr("did you mean 'source'?"));
  EXPECT_THAT(peak("{value: 1, source: x, evidence: fitted}"), HasSubstr("'1' has no unit"));
  EXPECT_THAT(peak("{value: 1 TFLOP/s, source: '', evidence: fitted}"),
              HasSubstr("'peak.source' must not be empty"));
}

TEST(YamlReader, NullLeavesAnOptionalEmpty) {
  const auto cluster = read("name: x\nstorage: null\n");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_FALSE(cluster->storage.has_value());
}

TEST(YamlReader, AnchorsRepeatValues) {
  const auto cluster = read("name: x\nnics: [&n {bandwidth: 1 GB/s}, *n]\nstorage: *n\n");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->nics[1].bandwidth, 1_GB_s);
  EXPECT_EQ(cluster->storage->bandwidth, 1_GB_s);
  EXPECT_THAT(fault("name: x\ntags: &t [a, *t]\n"), HasSubstr("inside what it repeats"));
  EXPECT_THAT(fault("name: *nobody\n"), HasSubstr("this is not YAML"));
}

TEST(YamlReader, RefusesWhatOtherReadersInterpret) {
  EXPECT_THAT(fault("name: x\n<<: {nodes: 3}\n"),
              AllOf(HasSubstr("merge key '<<' is not supported"), HasSubstr("extends")));
  EXPECT_THAT(fault("name: !!str x\n"), HasSubstr("tags are not supported"));
  EXPECT_THAT(fault("name: x\n---\nname: y\n"), HasSubstr("c.yaml:2:1: error: a second document"));
  EXPECT_THAT(fault("? [a]\n: b\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(fault("~: b\n"), HasSubstr("a key must be a word"));
}

TEST(YamlReader, ReportsWhatIsNoYaml) {
  EXPECT_THAT(fault(""), HasSubstr("there is nothing in it"));
  EXPECT_THAT(fault("# only a comment\n"), HasSubstr("there is nothing in it"));
  EXPECT_THAT(fault("name: [a\n"), HasSubstr("this is not YAML"));
  EXPECT_THAT(fault("name: x\n\tnodes: 1\n"), HasSubstr("indent with spaces, not tabs"));
  EXPECT_THAT(fault(std::string("name: \0x\n", 9)), HasSubstr("found the byte 0x00"));
  EXPECT_THAT(fault("name: x\nnodes: \xC3("),
              AllOf(StartsWith("c.yaml:2:8"), HasSubstr("not a text file in UTF-8")));
  EXPECT_THAT(fault(std::string("\xFF\xFEn\0", 4)), HasSubstr("in UTF-16: iconv -f UTF-16"));
  EXPECT_THAT(fault("\x7F"
                    "ELF\x02\x01\x01"),
              HasSubstr("error"));
  EXPECT_THAT(fault("name: \xED\xA0\x80\n"), HasSubstr("0xed"));  // a surrogate
  EXPECT_THAT(fault("name: \xC0\xAF\n"), HasSubstr("0xc0"));      // an overlong form
}

TEST(YamlReader, CountsColumnsInCharacters) {
  EXPECT_EQ(fault("name: Zürich\nweights: {ü: 3}\n").substr(0, 14), "c.yaml:2:14: e");
}

}  // namespace reader_test
}  // namespace foreshard
