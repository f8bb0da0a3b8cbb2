// NCCL's topology dumps.
#include <fmt/format.h>

#include "imports.h"
#include "tests/test.h"

namespace foreshard {
namespace {

// A dump of an HGX H100 in NCCL's own form: two sockets, four switches each, a GPU and a NIC below
// each. It is the catalogue's dgx-h100: the same links.
TEST(NcclXml, AnHgxH100IsTheCatalogues) {
  const auto imported = value_of(import_text(data("h100.xml")));
  const auto& node = std::get<NodeConfig>(imported.what);
  EXPECT_FALSE(node.wiring);
  EXPECT_EQ(node.device.name, "H100-SXM");
  EXPECT_EQ(node.pcie.generation, 5);
  EXPECT_EQ(node.pcie.switches, 8);
  EXPECT_EQ(node.nics->count, 8);
  EXPECT_DOUBLE_EQ(*node.nvlink->bandwidth / 1_GB_s, 450);
  EXPECT_DOUBLE_EQ(*node.nics->bandwidth / 1_Gbit_s, 400);

  auto loader = catalogue();
  const auto machine = value_of(loader.read_ref<NodeConfig>("dgx-h100"));
  ClusterConfig config;
  config.node = yaml::Ref<NodeConfig>{machine, ""};
  config.node->value.cpu = {};  // the file says nothing of the memory of sockets
  const auto expected = value_of(build_cluster(config));
  const auto found = rates(build_node_alone(imported));
  for (const auto& [ends, rate] : rates(expected)) EXPECT_NEAR(found.at(ends), rate, 1e-9 * rate);
  EXPECT_EQ(found.size(), rates(expected).size());
}

// Two V100 with a bridge below the first socket, one at a root port of the second, and two ports on
// one adapter. By hand, payload at 0.762 (PCIe of the usual V100 machine), 0.958 (NVLink):
//   gpu0 3.0 x16   15.753846 GB/s x 0.762 = 12.0044
//   gpu2 3.0 x8     7.876923      x 0.762 =  6.0022
//   gpu0 - gpu1    2 x 25 GB/s    x 0.958 = 47.9
constexpr const char* kOdd = R"(<?xml version="1.0"?>
<!-- a comment -->
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79">
    <pci busid="0000:02:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:04:00.0" class="0x030200" device="0x1db1" link_speed="8 GT/s" link_width="16">
        <gpu dev="0" sm="70" rank="0" gdr="1"><nvlink target="0000:05:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:05:00.0" class="0x030200" device="0x1db1" link_speed="8.0 GT/s PCIe" link_width="">
        <gpu dev="1" sm="70" rank="1" gdr="1"><nvlink target="0000:04:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:06:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="100000" port="1" guid="0xa"/>
          <net name="mlx5_1" dev="1" speed="100000" port="2" guid="0xa"/>
        </nic>
      </pci>
      <pci busid="0000:07:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79">
    <pci busid="0000:84:00.0" class="0x030200" device="0x1DB1" link_speed="8.0 GT/s PCIe" link_width="8">
      <gpu dev="2" sm="70" rank="2" gdr="0"/>
    </pci>
  </cpu>
</system>
)";

TEST(NcclXml, AnOddMachineIsWiredLinkByLink) {
  const auto imported = value_of(import_text(kOdd));
  EXPECT_TRUE(std::get<NodeConfig>(imported.what).wiring);
  const auto found = rates(build_node_alone(imported));
  EXPECT_NEAR(found.at("node0/gpu0>node0/pcie0"), 12.0044, 1e-4);
  EXPECT_NEAR(found.at("node0/gpu1>node0/pcie0"), 12.0044, 1e-4);
  EXPECT_NEAR(found.at("node0/pcie0>node0/socket0"), 12.0044, 1e-4);
  EXPECT_NEAR(found.at("node0/socket1>node0/gpu2"), 6.0022, 1e-4);
  EXPECT_NEAR(found.at("node0/socket0>node0/socket1"), 6, 1e-9);
  EXPECT_NEAR(found.at("node0/gpu0>node0/gpu1"), 47.9, 1e-9);
  EXPECT_NEAR(found.at("node0/nic0>node0/pcie1"), 12.0044, 1e-4);
  EXPECT_NEAR(found.at("node0/nic1>node0/pcie1"), 12.0044, 1e-4);
  EXPECT_NEAR(found.at("node0/pcie1>node0/pcie0"), 12.0044, 1e-4) << "the ports share a slot";
  EXPECT_EQ(found.count("node0/gpu2>node0/gpu0"), 0U);
  EXPECT_EQ(found.size(), 18U) << "nine connections; the empty bridge is left out";
}

// GPUs are numbered by `dev`, not by where they stand.
TEST(NcclXml, NumbersGpusByTheirIndex) {
  auto text = changed(kOdd, "dev=\"0\" sm", "dev=\"9\" sm");
  const auto imported = value_of(import_text(text));
  const auto found = rates(build_node_alone(imported));
  EXPECT_EQ(found.count("node0/gpu0>node0/gpu2"), 1U) << "gpu0 is what was dev 1";
}

TEST(NcclXml, ReadsChipToChipLinksAndSocketInterfaces) {
  const auto imported = value_of(import_text(R"(<system version="1">
  <cpu numaid="0" arch="arm64">
    <pci busid="0009:01:00.0" class="0x030200" device="0x2342" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0"><c2c bw="45000" count="10"/></gpu>
    </pci>
    <nic><net name="eth0" dev="0" speed="10000"/></nic>
  </cpu>
  <cpu numaid="1" arch="arm64"><nic><net name="eth0" dev="0" speed="10000"/></nic></cpu>
</system>)"));
  const auto& wiring = std::get<NodeConfig>(imported.what).wiring;
  ASSERT_TRUE(wiring);
  const auto c2c = std::ranges::find(wiring->links, WiringLinkKind::kNvLink, &WiringLink::kind);
  ASSERT_NE(c2c, wiring->links.end());
  EXPECT_DOUBLE_EQ(c2c->bandwidth / 1_GB_s, 450);
  EXPECT_EQ(c2c->b, "socket0");
  (void)build_node_alone(imported);
}

TEST(NcclXml, TakesOtherHostsOfOneNvlinkDomainAsOneNode) {
  std::string text = "<system version=\"1\">";
  for (int host = 0; host < 2; ++host)
    for (int gpu = 0; gpu < 2; ++gpu) {
      const std::string bus = "000" + std::to_string(gpu) + ":01:00.0";
      text += "<cpu numaid=\"" + std::to_string(gpu) + "\" host_hash=\"0x" + std::to_string(host) +
              "\" arch=\"arm64\"><pci busid=\"" + bus +
              "\" device=\"0x2941\" link_speed=\"64.0 GT/s PCIe\"><gpu dev=\"" +
              std::to_string(gpu) +
              "\" sm=\"100\"><nvlink target=\"fffffff:ff:ff.0\" count=\"18\" "
              "tclass=\"0x068000\"/></gpu></pci></cpu>";
    }
  const auto imported = value_of(import_text(text + "</system>"));
  const auto& node = std::get<NodeConfig>(imported.what);
  EXPECT_EQ(node.gpus, 4);
  EXPECT_EQ(node.gpus_per_tray, 2);
  const auto found = rates(build_node_alone(imported));
  EXPECT_EQ(found.count("node0/socket0>node0/socket1"), 1U);
  EXPECT_EQ(found.count("node0/socket1>node0/socket2"), 0U) << "sockets of different hosts";
  EXPECT_EQ(found.count("node0/gpu3>node0/nvswitch"), 1U);
}

/// What clouds hand to NCCL: two switches with two GPUs and a NIC each, by their classes alone.
std::string cloud(const std::string& gpu = "", int switches = 2) {
  std::string text = "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n";
  const auto device = [](int bus, int number, const char* type, const std::string& more) {
    return fmt::format(
        "<pci busid=\"000{}:0{}:00.0\" class=\"{}\"{} link_speed=\"16 GT/s\" link_width=\"16\"",
        bus, number, type, more);
  };
  for (int i = 0; i < switches; ++i) {
    text += device(i, 0, "0x060400", "") + ">\n";
    for (int g = 1; g <= 2; ++g) text += device(i, g, "0x030200", gpu) + "/>\n";
    text += device(i, 3, "0x020700", "") + "/>\n</pci>\n";
  }
  return text + "</cpu>\n</system>\n";
}

// Four A100 with NVLink 3 to a switch (300 GB/s) and two NICs, of the rates of the usual machine.
TEST(NcclXml, ReadsDevicesByTheirClass) {
  const auto imported = value_of(import_text(cloud(), "A100-SXM-80GB"));
  const auto& node = std::get<NodeConfig>(imported.what);
  EXPECT_EQ(node.gpus, 4);
  EXPECT_EQ(node.pcie.switches, 2);
  EXPECT_EQ(node.nics->count, 2);
  EXPECT_DOUBLE_EQ(*node.nics->bandwidth / 1_Gbit_s, 200);
  EXPECT_DOUBLE_EQ(*node.nvlink->bandwidth / 1_GB_s, 300);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("--link-rate gives another")));
  EXPECT_EQ(node.nics->bandwidth.source, "the usual machine of A100-SXM-80GB");
  EXPECT_EQ(node.nvlink->bandwidth.source, "the usual machine of A100-SXM-80GB");
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("names no NVLinks")));
  const auto found = rates(build_node_alone(imported));
  EXPECT_EQ(found.count("node0/gpu3>node0/pcie1"), 1U);
  EXPECT_EQ(found.count("node0/nic1>node0/pcie1"), 1U);

  const auto named = value_of(import_text(cloud(" vendor=\"0x10de\" device=\"0x20b2\"")));
  EXPECT_EQ(std::get<NodeConfig>(named.what).device.name, "A100-SXM-80GB");
}

// The usual V100 machine is a mesh of eight.
TEST(NcclXml, AMeshIsForAsManyGpusAsItHas) {
  const auto four = value_of(import_text(cloud(), "V100-SXM-32GB"));
  EXPECT_THAT(four.remarks, Contains(HasSubstr("are for 8 GPUs and are left out")));
  const auto eight = value_of(import_text(cloud("", 4), "V100-SXM-32GB"));
  EXPECT_EQ(std::get<NodeConfig>(eight.what).nvlink->pairs.size(), 16U);
}

TEST(NcclXml, WarnsOfWhatIsHardlyMeant) {
  const auto remarks = [](const std::string& text, const std::string& device = "") {
    const auto imported = import_text(text, device);
    return imported ? imported->remarks : std::vector<std::string>{imported.error().message};
  };
  // A GPU that lost its NVLinks, one with one lane, a bridge with one lane.
  EXPECT_THAT(remarks(changed(data("h100.xml"), "<nvlink ", "<unknown ")),
              Contains(HasSubstr("warning: missing-nvlink: node0/gpu0: has")));
  EXPECT_THAT(remarks(changed(kOdd, "link_width=\"8\"", "link_width=\"1\"")),
              Contains(HasSubstr("warning: gpu2: its PCIe link has")));
  EXPECT_THAT(remarks(changed(kOdd, "link_width=\"16\"", "link_width=\"1\"")),
              Contains(HasSubstr("warning: pcie-uplink: node0/gpu0 (and 1 more)")));
  EXPECT_THAT(remarks(changed(kOdd, "speed=\"100000\"", "speed=\"-1\"")),
              Contains(HasSubstr("has no speed: 10 Gbit/s is taken")));
  EXPECT_THAT(remarks(kOdd, "V100-SXM-32GB"),
              Contains(HasSubstr("is a V100-SXM-16GB, but --device says V100-SXM-32GB")));
  EXPECT_THAT(remarks(changed(kOdd, "</gpu>", "<nvlink target=\"0000:04:00.0\"/></gpu>")),
              Contains(HasSubstr("joins the GPU to itself and was left out")));
}

// Of AMD: version 2, xGMI in place of NVLink, `sm` counts compute units. 2 x 64 GB/s x 0.75.
TEST(NcclXml, ReadsRccl) {
  std::string text = changed(kOdd, "version=\"1\">", "version=\"2\">");
  for (int i = 0; i < 3; ++i) text = changed(text, i < 2 ? "0x1db1" : "0x1DB1", "0x74a1");
  for (int i = 0; i < 3; ++i) text = changed(text, "sm=\"70\"", "sm=\"304\" gcn=\"gfx942\"");
  for (int i = 0; i < 2; ++i) text = changed(text, "<nvlink", "<xgmi");
  const auto imported = value_of(import_text(text));
  EXPECT_EQ(std::get<NodeConfig>(imported.what).device.name, "MI300X");
  EXPECT_NEAR(rates(build_node_alone(imported)).at("node0/gpu0>node0/gpu1"), 96, 1e-9);
  EXPECT_THAT(import_fault(changed(text, "0x74a1", "0x66a1")),
              HasSubstr("(the file is RCCL's: a GPU of AMD, gcn \"gfx942\"): give --device"));
}

TEST(NcclXml, NicsWithoutAnIndexStandBehindTheOthers) {
  const auto imported =
      value_of(import_text(changed(kOdd, "name=\"mlx5_0\" dev=\"0\"", "name=\"mlx5_0\"")));
  EXPECT_EQ(rates(build_node_alone(imported)).size(), 18U);
}

TEST(NcclXml, IsNotNestedDeeply) {
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 100; ++i) deep += "<pci busid=\"" + std::to_string(i) + "\">";
  EXPECT_THAT(import_fault(deep), HasSubstr("nested deeper than 64"));
}

}  // namespace
}  // namespace foreshard
