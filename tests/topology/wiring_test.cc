// Hosts that are wired link by link.

#include "small_clusters.h"
#include "tests/test.h"

namespace foreshard {
namespace {

constexpr const char* kNode = R"(
device: {extends: A100-PCIe-80GB, name: card}
gpus: 2
wiring:
  parts:
    - {name: socket0, kind: socket}
    - {name: bridge, kind: pcie-switch}
    - {name: nic0, kind: nic, bandwidth: 100 Gbit/s}
    - {name: nic1, kind: nic, bandwidth: 200 Gbit/s}
  pcie_efficiency: 0.5
  nic_efficiency: 0.8
  nic_latency: 1 us
  links:
    - {a: bridge, b: socket0, kind: pcie, bandwidth: 32 GB/s}
    - {a: gpu0, b: bridge, kind: pcie, bandwidth: 64 GB/s}
    - {a: gpu1, b: socket0, kind: pcie, bandwidth: 16 GB/s}
    - {a: nic0, b: bridge, kind: pcie, bandwidth: 32 GB/s}
    - {a: nic1, b: socket0, kind: pcie, bandwidth: 32 GB/s}
)";

Result<NodeConfig> read(const std::string& text) {
  return yaml::Loader(shipped_options()).read_text<NodeConfig>(text, "node.yaml");
}

// Between the GPUs: 64, 32 and 16 GB/s at half: the last link is the narrowest. To the network each
// GPU takes the NIC beside it: 12.5 GB/s x 0.8 and 25 x 0.8, though PCIe leaves GPU 1 but 8.
TEST(Wiring, BuildsWhatIsWritten) {
  const auto node = value_of(read(kNode));
  EXPECT_TRUE(has_nics(node));
  const auto cluster = must_build(small_cluster(2, {}, node));
  std::map<std::string, double> rates;
  for (const auto& link : cluster.links())
    rates[cluster.vertices()[link.from.index()].name + ">" +
          cluster.vertices()[link.to.index()].name] = link.bandwidth / 1_GB_s;
  EXPECT_DOUBLE_EQ(rates.at("node0/gpu0>node0/bridge"), 32);
  EXPECT_DOUBLE_EQ(rates.at("node0/bridge>node0/socket0"), 16);
  EXPECT_DOUBLE_EQ(rates.at("node0/socket0>node0/gpu1"), 8);
  EXPECT_DOUBLE_EQ(rates.at("node1/nic0>switch"), 10);
  EXPECT_DOUBLE_EQ(rates.at("switch>node1/nic1"), 20);
  const auto route =
      value_of(cluster.route(device(cluster, "node0/gpu0"), device(cluster, "node1/gpu1")));
  EXPECT_EQ(shares(cluster, route).count("node0/nic0>switch"), 1U);
  EXPECT_EQ(shares(cluster, route).count("switch>node1/nic1"), 1U);
}

}  // namespace
}  // namespace foreshard
