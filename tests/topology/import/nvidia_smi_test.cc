// Tables of `nvidia-smi topo -m`.
#include "imports.h"
#include "tests/test.h"

namespace foreshard {
namespace {

// Of an HGX A100: GPUs in pairs with two NICs each under switches, four NUMA nodes, NVSwitch.
std::string a100_table(const char* separator) {
  std::string text =
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\x1b[0m\n";
  const char* rows[] = {"GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t48-63,176-191\t3",
                        "GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\t48-63,176-191\t3",
                        "GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPXB\t16-31,144-159\t1",
                        "GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPXB\t16-31,144-159\t1",
                        "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t",
                        "NIC1\tSYS\tSYS\tPXB\tPXB\tSYS\t X \t\t"};
  for (const char* row : rows) text += std::string(row) + "\n";
  text +=
      "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
      "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
  std::string result;
  for (const char c : text) result += c == '\t' ? std::string(separator) : std::string(1, c);
  return result;
}

// 12 links x 25 GB/s x 0.816 to the switch; two PCIe switches and sockets.
TEST(NvidiaSmi, ReadsAnHgxA100) {
  for (const char* separator : {"\t", "     "}) {
    const auto imported = value_of(import_text(a100_table(separator), "A100-SXM-80GB"));
    const auto& node = std::get<NodeConfig>(imported.what);
    EXPECT_FALSE(node.wiring) << to_yaml(imported);
    EXPECT_EQ(node.gpus, 4);
    EXPECT_EQ(node.pcie.switches, 2);
    EXPECT_EQ(node.pcie.sockets, 2);
    EXPECT_EQ(node.nics->count, 2);
    EXPECT_EQ(node.nvlink->layout, NvlinkLayout::kSwitch);
    EXPECT_DOUBLE_EQ(*node.nvlink->bandwidth / 1_GB_s, 300);
    const auto found = rates(build_node_alone(imported));
    EXPECT_EQ(found.count("node0/gpu3>node0/pcie1"), 1U);
    EXPECT_EQ(found.count("node0/nic1>node0/pcie1"), 1U);
  }
}

// The table says how many NVLinks there are; how fast NICs are stands elsewhere.
TEST(NvidiaSmi, TellsWhereRatesComeFrom) {
  auto loader = catalogue();
  const std::string table = a100_table("\t");
  ImportRequest request{.text = table, .name = "in.txt", .device = "A100-SXM-80GB"};
  const auto usual = value_of(import_topology(request, loader));
  const auto& node = std::get<NodeConfig>(usual.what);
  EXPECT_THAT(node.nvlink->bandwidth.source, HasSubstr("in.txt"));
  EXPECT_EQ(node.nics->bandwidth.source, "the usual machine of A100-SXM-80GB");
  EXPECT_EQ(node.nics->bandwidth.evidence, yaml::Evidence::kTransferred);
  EXPECT_EQ(node.pcie.socket_bandwidth.source, "the usual machine of A100-SXM-80GB");
  request.link_rate = 100_Gbit_s;
  const auto given = value_of(import_topology(request, loader));
  const auto& nics = std::get<NodeConfig>(given.what).nics;
  EXPECT_EQ(nics->bandwidth.source, "--link-rate");
  EXPECT_EQ(nics->bandwidth.evidence, yaml::Evidence::kUser);
}

// An older table: NICs by their own names, no NUMA column. A hybrid cube mesh without its
// diagonals.
constexpr const char* kOld =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\n"
    "GPU0\t X \tNV1\tNV2\tSOC\tPIX\t0-19\n"
    "GPU1\tNV1\t X \tSOC\tNV2\tPIX\t0-19\n"
    "GPU2\tNV2\tSOC\t X \tNV1\tSOC\t20-39\n"
    "GPU3\tSOC\tNV2\tNV1\t X \tSOC\t20-39\n"
    "mlx5_0\tPIX\tPIX\tSOC\tSOC\t X \t\n";

// GPU 0 and 1 share a switch with the NIC; 2 and 3 have one each: nothing says that they share.
TEST(NvidiaSmi, ReadsAnOlderTableOfAMesh) {
  const auto imported = value_of(import_text(kOld, "V100-SXM-16GB"));
  const auto found = rates(build_node_alone(imported));
  EXPECT_NEAR(found.at("node0/gpu0>node0/gpu1"), 25 * 0.958, 1e-9);
  EXPECT_NEAR(found.at("node0/gpu0>node0/gpu2"), 50 * 0.958, 1e-9);
  EXPECT_EQ(found.count("node0/gpu0>node0/gpu3"), 0U);
  EXPECT_EQ(found.count("node0/gpu0>node0/pcie0"), 1U);
  EXPECT_EQ(found.count("node0/gpu1>node0/pcie0"), 1U);
  EXPECT_EQ(found.count("node0/nic0>node0/pcie0"), 1U);
  EXPECT_EQ(found.count("node0/pcie1>node0/socket1"), 1U);
  EXPECT_EQ(found.count("node0/pcie2>node0/socket1"), 1U);
}

TEST(NvidiaSmi, ReadsPcieCardsWithoutNvlink) {
  const auto imported = value_of(
      import_text("        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
                  "GPU0     X      PIX     SYS     0-31    0               N/A\n"
                  "GPU1    PIX      X      SYS     0-31    0               N/A\n"
                  "GPU2    SYS     SYS      X      32-63   1               N/A\n",
                  "L40S"));
  const auto found = rates(build_node_alone(imported));
  EXPECT_EQ(found.count("node0/gpu0>node0/pcie0"), 1U);
  EXPECT_EQ(found.count("node0/gpu1>node0/pcie0"), 1U);
  EXPECT_EQ(found.count("node0/socket0>node0/socket1"), 1U);
}

// As `>` of PowerShell, a comment in a script and a paste of a terminal leave it.
TEST(NvidiaSmi, ReadsWhatEditorsAndShellsLeave) {
  const auto links = [](const std::string& text) {
    const auto imported = import_text(text, "A100-SXM-80GB");
    return imported ? rates(build_node_alone(*imported)).size() : 0;
  };
  const std::string table = a100_table("\t");
  const auto expected = links(table);
  ASSERT_GT(expected, 0U);
  EXPECT_EQ(links("\xef\xbb\xbf" + table), expected);
  for (const bool little : {true, false}) {
    std::string wide = little ? "\xff\xfe" : "\xfe\xff";
    for (const char c : table) {
      if (!little) wide += '\0';
      wide += c;
      if (little) wide += '\0';
    }
    EXPECT_EQ(links(wide), expected);
  }
  std::string quoted = "# nvidia-smi topo -m\n# ";
  std::string lost;
  for (const char c : table) {
    quoted += c;
    if (c == '\n') quoted += "# ";
    if (c != '\x1b') lost += c;
  }
  EXPECT_EQ(links(quoted), expected);
  EXPECT_EQ(links(lost), expected) << "\"[4mGPU0\"";
}

// How near a NIC is to a GPU stands in the GPU's row, too.
TEST(NvidiaSmi, DoesWithoutTheRowsOfNics) {
  const auto imported = value_of(
      import_text(changed(kOld, "mlx5_0\tPIX\tPIX\tSOC\tSOC\t X \t\n", ""), "V100-SXM-16GB"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("the rows of mlx5_0 are missing")));
  const auto whole = import_text(kOld, "V100-SXM-16GB");
  EXPECT_EQ(rates(build_node_alone(imported)), rates(build_node_alone(*whole)));
}

TEST(NvidiaSmi, WarnsWhereNvlinkIsMissing) {
  const auto hidden =
      value_of(import_text("\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU1\tSYS\tX\n", "H100-SXM"));
  EXPECT_THAT(hidden.remarks, Contains(HasSubstr("warning: the file has no NVLink")));
  const auto partly = value_of(
      import_text("\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tSYS\nGPU2\tSYS\tSYS\tX\n",
                  "A100-SXM-80GB"));
  EXPECT_THAT(partly.remarks,
              Contains(HasSubstr("warning: missing-nvlink: node0/gpu2: has no NVLink")));
  std::string half = a100_table("\t");  // 6 of 12 links of each GPU
  for (std::size_t at = half.find("NV12"); at != std::string::npos; at = half.find("NV12"))
    half.replace(at, 4, "NV6");
  const auto all = value_of(import_text(half, "A100-SXM-80GB"));
  EXPECT_THAT(all.remarks, Contains(HasSubstr("warning: gpu0 (and 3 more): has 150 GB/s "
                                              "of NVLink in one direction")));
}

// A tray of an NVL72 sees its own four GPUs.
TEST(NvidiaSmi, SaysThatATrayIsAPartOfADomain) {
  const std::string tray =
      "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV18\tNV18\tNV18\nGPU1\tNV18\tX\tNV18\tNV18\n"
      "GPU2\tNV18\tNV18\tX\tNV18\nGPU3\tNV18\tNV18\tNV18\tX\n";
  const auto imported = value_of(import_text(tray, "GB200"));
  EXPECT_THAT(imported.remarks, Contains(AllOf(HasSubstr("join 72 GPUs in trays of 4"),
                                               HasSubstr("node: by-device/GB200"))));
  const auto whole = value_of(import_text(tray, "H100-SXM"));
  EXPECT_THAT(whole.remarks, Not(Contains(HasSubstr("part of an NVLink"))));
}

}  // namespace
}  // namespace foreshard
