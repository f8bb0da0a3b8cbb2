// PaddlePaddle's cluster JSON.
#include "imports.h"
#include "tests/test.h"

namespace foreshard::paddle_test {

/// Two machines of two V100, a CPU and a NIC; rates by hand in the test.
std::string json() {
  std::string text =
      "{\n  \"alpha_latency\": {\"inter\": {\"ring\": \"NET\"}, \"switch\": 10.0},\n"
      "  \"machines\": [\n";
  for (int m = 0; m < 2; ++m) {
    const int id = 4 * m;
    const auto name = [](int i) { return std::to_string(i); };
    text += "    {\"hostname\": \"host" + name(m) +
            "\", \"addr\": \"127.0.0.1\", \"port\": \"60009\",\n"
            "     \"devices\": [\n";
    for (int g = 0; g < 2; ++g)
      text += "      {\"global_id\": " + name(id + g) + ", \"local_id\": " + name(g) +
              ", \"type\": \"GPU\", \"model\": \" Tesla V100-SXM2-32GB\", \"sp_gflops\": 15700, "
              "\"memory\": 32},\n";
    text += "      {\"global_id\": " + name(id + 2) +
            ", \"local_id\": 0, \"type\": \"CPU\", \"arch\": "
            "\"x86_64\", \"vendor\": \"GenuineIntel\"},\n"
            "      {\"global_id\": " +
            name(id + 3) +
            ", \"local_id\": \"NIC\", \"type\": \"NIC\", "
            "\"width\": 12.5, \"ip\": \"127.0.0.1\"}],\n     \"links\": [\n";
    const auto link = [&](int a, int b, const char* type, const char* rate) {
      text += "      {\"source_global_id\": " + name(a) + ", \"target_global_id\": " + name(b) +
              ", \"type\": \"" + type + "\", \"bandwidth\": " + rate + ", \"latency\": 0},\n";
    };
    link(id, id + 1, "NVL", "42");
    link(id + 1, id, "NVL", "42");
    link(id, id + 2, "PHB", "12");
    link(id + 1, id + 2, "PHB", "12");
    link(id + 3, id + 2, "PHB", "11");
    link(id + 3, m == 0 ? 7 : 3, "NET", "9.5");
    text.replace(text.size() - 2, 2, "]\n    },\n");
  }
  text.replace(text.size() - 2, 2, "]\n}\n");
  return text;
}

TEST(Paddle, ReadsMachinesDevicesAndLinks) {
  const auto imported = value_of(import_text(json()));
  const auto config = read_back<ClusterConfig>(imported);
  EXPECT_EQ(config.nodes, 2);
  EXPECT_EQ((*config.node)->device->name, "V100-SXM-32GB");
  const auto cluster = value_of(build_cluster(config));
  const auto found = rates(cluster);
  EXPECT_DOUBLE_EQ(found.at("node1/gpu0>node1/gpu1"), 42);
  EXPECT_DOUBLE_EQ(found.at("node0/gpu0>node0/socket0"), 12);
  EXPECT_DOUBLE_EQ(found.at("node0/nic0>node0/socket0"), 11);
  EXPECT_DOUBLE_EQ(found.at("node0/nic0>switch"), 9.5);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("alpha_latency")));
}

// 200 GB/s between two V100, which have 150 in all: a switch, as Paddle's own example of 235.
TEST(Paddle, MoreThanADeviceHasIsASwitch) {
  std::string text = json();
  for (int i = 0; i < 4; ++i) text = changed(text, "\"bandwidth\": 42", "\"bandwidth\": 200");
  const auto imported = value_of(import_text(text));
  const auto cluster = value_of(build_cluster(read_back<ClusterConfig>(imported)));
  EXPECT_DOUBLE_EQ(rates(cluster).at("node0/gpu0>node0/nvswitch"), 200);
}

TEST(Paddle, UnequalMachinesAreGroups) {
  const auto imported =
      value_of(import_text(changed(json(), "\"bandwidth\": 11,", "\"bandwidth\": 6,")));
  EXPECT_EQ(read_back<ClusterConfig>(imported).groups.size(), 2U);
}

// Paddle itself writes and reads numbers in quotes.
TEST(Paddle, NumbersMayHaveQuotes) {
  std::string text = changed(json(), "\"bandwidth\": 42", "\"bandwidth\": \"42\"");
  text = changed(text, "\"memory\": 32", "\"memory\": \"32\"");
  text = changed(text, "\"global_id\": 1,", "\"global_id\": \"1\",");
  text = changed(text, "\"target_global_id\": 1,", "\"target_global_id\": \"1\",");
  EXPECT_EQ(read_back<ClusterConfig>(value_of(import_text(text))).nodes, 2);
  EXPECT_THAT(import_fault(changed(text, "\"42\"", "\"fast\"")),
              HasSubstr("bandwidth must be a positive number of GB/s"));
  EXPECT_THAT(import_fault(changed(text, "\"global_id\": \"1\"", "\"global_id\": \"1.5\"")),
              HasSubstr("global_id must be a whole number from 0 on"));
}

}  // namespace foreshard::paddle_test
