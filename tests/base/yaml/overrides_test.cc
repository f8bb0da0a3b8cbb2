// `--set path=value` goes through the same checks as a file.

#include "tests/base/temporary_folder.h"
#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using example::Cluster;

Result<Cluster> read_with(std::vector<yaml::Override> overrides, std::string_view at = {}) {
  const TemporaryFolder folder;
  folder.write("devices/d.yaml", "peak: 1 TFLOP/s\nmemory: 1 GiB\n");
  yaml::Loader loader({.catalogue = {folder.path()}, .overrides = std::move(overrides)});
  return loader.read_text<Cluster>(
      "name: x\nnodes: 2\ndevice: d\nnics: [{bandwidth: 1 GB/s}]\ntags: [a]\n", "c.yaml", at);
}

std::string fault_of(const std::string& path, const std::string& value, std::string_view at = {}) {
  return message_of(read_with({{path, value}}, at));
}

TEST(YamlOverrides, ReplaceAndAdd) {
  const auto cluster = value_of(read_with({{"nodes", "3"},
                                           {"nodes", "4"},
                                           {"nics.0.latency", "5 us"},
                                           {"nics[0].count", "2"},
                                           {"device.memory", "7 GiB"},
                                           {"storage.bandwidth", "9 GB/s"},
                                           {"weights.w", "0.5"},
                                           {"tags", "[p, q]"}}));
  EXPECT_EQ(cluster.nodes, 4);  // the later one wins
  EXPECT_EQ(cluster.nics[0].latency, 5_us);
  EXPECT_EQ(cluster.nics[0].count, 2);
  EXPECT_EQ(cluster.device->memory.value, 7_GiB);  // through the reference
  EXPECT_EQ(cluster.storage->bandwidth, 9_GB_s);
  EXPECT_EQ(cluster.weights.at("w"), 0.5);
  EXPECT_THAT(cluster.tags, ElementsAre("p", "q"));
}

TEST(YamlOverrides, AreCheckedLikeAFile) {
  EXPECT_EQ(fault_of("ndoes", "4"),
            "--set ndoes=4: error: unknown key 'ndoes' in cluster\n     help: did you mean "
            "'nodes'?");
  EXPECT_THAT(fault_of("nodes", "x"), StartsWith("--set nodes=x: error: 'nodes' must be a whole"));
  EXPECT_THAT(fault_of("nodes", ""), HasSubstr("--set nodes=: error"));
  EXPECT_THAT(fault_of("nodes", "[1"), StartsWith("--set nodes=[1: error: "));
  EXPECT_THAT(fault_of("device.memory", "7 Gb"), HasSubstr("did you mean 'GB' (bytes)?"));
  EXPECT_THAT(fault_of("device.memroy", "7 GB"), HasSubstr("did you mean 'memory'?"));
  EXPECT_THAT(fault_of("nics.5.count", "1"), HasSubstr("there is no 'nics.5.count' to set"));
  EXPECT_THAT(fault_of("nodes.a", "1"), HasSubstr("there is no 'nodes.a' to set"));
  EXPECT_THAT(fault_of("storage.latency", "1 us"), HasSubstr("lacks the required key 'bandwidth'"));
}

TEST(YamlOverrides, FollowThePartThatIsRead) {
  const auto cluster =
      value_of(read_with({{"cluster.nodes", "5"}, {"model.layers", "3"}}, "cluster"));
  EXPECT_EQ(cluster.nodes, 5);
}

}  // namespace
}  // namespace foreshard
