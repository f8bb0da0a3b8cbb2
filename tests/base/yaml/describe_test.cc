// The schema, the reference page and the echo come from the table that reads.
#include "base/yaml/describe.h"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <regex>

#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using example::Cluster;

TEST(YamlEcho, PrintsWhatWasUnderstood) {
  example::Device device;
  device.peak = {989_TFLOP_s, "the datasheet", yaml::Evidence::kDatasheet};
  device.memory = {80_GiB};
  EXPECT_EQ(yaml::echo(device),
            "peak: {value: 989 TFLOP/s, source: \"the datasheet\", evidence: datasheet}\n"
            "memory: 80 GiB\n");
  Cluster cluster;
  cluster.name = "x";
  cluster.device = {device, "H100"};
  cluster.nics.push_back({.bandwidth = 1_GB_s});
  EXPECT_THAT(yaml::echo(cluster),
              AllOf(HasSubstr("device:  # H100\n  peak: {"), HasSubstr("shared: false\n"),
                    HasSubstr("nics:\n  - bandwidth: 1 GB/s\n    latency: 1 us\n"),
                    HasSubstr("weights: {}\n"), HasSubstr("tags: []\n")));
}

// Property: the echo of any object reads back as an object with the same echo.
TEST(YamlEcho, ReadsBack) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& words, std::int32_t radix, bool shared,
                           const std::map<std::string, double>& weights) {
    const auto text = [](const std::string& raw) {
      std::string clean;
      for (const char c : raw)
        if (static_cast<signed char>(c) > 0) clean += c;  // ASCII, every control character too
      return clean;
    };
    Cluster cluster;
    cluster.name = "n";
    cluster.radix = radix;
    cluster.shared = shared;
    cluster.device.value.peak = {1_TFLOP_s, "a \"b\" \\ c", yaml::Evidence::kFitted};
    cluster.device.value.memory = {1_GiB};
    for (const std::string& word : words) cluster.tags.push_back(text(word));
    for (const auto& [key, weight] : weights) cluster.weights[text(key)] = std::min(weight, 1.0);
    cluster.nics.push_back({.bandwidth = 3_GB_s, .latency = 7_us, .count = 2});
    const std::string echo = yaml::echo(cluster);
    const auto back = yaml::Loader().read_text<Cluster>(echo, "echo");
    if (!back) RC_FAIL(back.error().message + "\n" + echo);
    RC_ASSERT(back->tags == cluster.tags);
    RC_ASSERT(back->weights == cluster.weights);
    RC_ASSERT(yaml::echo(*back) == echo);
  }));
}

TEST(YamlSchema, SaysWhatTheReaderSays) {
  const auto schema = yaml::json_schema<Cluster>();
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(schema["allOf"][0]["$ref"], "#/definitions/cluster");
  const auto& cluster = schema["definitions"]["cluster"];
  EXPECT_EQ(cluster["additionalProperties"], false);
  EXPECT_EQ(cluster["anyOf"][0]["required"], nlohmann::ordered_json::array({"name"}));
  const auto& keys = cluster["properties"];
  EXPECT_EQ(keys["nodes"]["minimum"], 1);
  EXPECT_EQ(keys["nodes"]["maximum"], 100000);
  EXPECT_EQ(keys["nodes"]["default"], 1);
  EXPECT_EQ(keys["fabric"]["enum"], (nlohmann::ordered_json{"single-switch", "rail-fat-tree"}));
  EXPECT_THAT(keys["fabric"]["description"].get<std::string>(), HasSubstr("All ports on one"));
  EXPECT_EQ(keys["device"]["anyOf"][1]["$ref"], "#/definitions/device");
  const auto& nic = keys["nics"]["items"]["allOf"];
  EXPECT_EQ(nic[0]["$ref"], "#/definitions/nic");
  EXPECT_EQ(nic[1]["required"], nlohmann::ordered_json::array({"bandwidth"}));
  EXPECT_FALSE(schema["definitions"]["nic"].contains("required"));  // `extends` may give them
  EXPECT_FALSE(schema["definitions"]["nic"]["properties"].contains("extends"));
}

TEST(YamlSchema, ItsPatternsAcceptWhatTheParserAccepts) {
  const auto schema = yaml::json_schema<example::Nic>();
  const auto& keys = schema["definitions"]["nic"]["properties"];
  const std::regex rate(keys["bandwidth"]["pattern"].get<std::string>());
  const std::regex time(keys["latency"]["pattern"].get<std::string>());
  for (const char* good : {"400 Gbit/s", "400Gbit/s", ".5 GB/s", "1e3 MB/s", "2. B/s"}) {
    EXPECT_TRUE(std::regex_match(good, rate)) << good;
    EXPECT_TRUE(parse<BytesPerSecond>(good)) << good;
  }
  for (const char* bad :
       {"400", "400 Gbps", "400 Gb/s", "-1 GB/s", "nan GB/s", "0x1 GB/s", "400 GB"}) {
    EXPECT_FALSE(std::regex_match(bad, rate)) << bad;
  }
  EXPECT_TRUE(std::regex_match("2 us", time));
}

TEST(YamlReference, ListsKeysDefaultsWordsAndUnits) {
  const std::string page = yaml::reference<Cluster>();
  EXPECT_THAT(page, HasSubstr("## cluster\n\nNodes and what joins them."));
  EXPECT_THAT(page, HasSubstr("| `name` | a text, not empty | **required** | For reports. |"));
  EXPECT_THAT(page,
              HasSubstr("| `nodes` | a whole number, between 1 and 100000 | `1` | How many. |"));
  EXPECT_THAT(page, HasSubstr("- `rail-fat-tree`: One tree for each local rank."));
  EXPECT_THAT(page, HasSubstr("[device](#device), a catalogue name or a path"));
  EXPECT_THAT(page, HasSubstr("## nic\n"));
  EXPECT_THAT(page, HasSubstr("| a duration | ns, us, ms, s, min, h, d, y |"));
}

}  // namespace
}  // namespace foreshard
