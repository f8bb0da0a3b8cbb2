// Channels that NCCL's search finds, against those that it logs on real machines.

#include "tests/strategies/comm/nccl_nodes.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/nccl/search.h"
#include "topology/cluster_builder.h"

namespace foreshard::comm::nccl::nccl_search_test {

std::string text(const SearchGraph& graph) {
  const auto number = [](BytesPerSecond rate) {
    std::string digits = std::to_string(rate / 1_GB_s);
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
    return digits;
  };
  std::string result = std::to_string(graph.channels) + " x " + number(graph.intra_rate);
  if (graph.inter_rate != graph.intra_rate) result += " / " + number(graph.inter_rate);
  return result;
}

// What NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=GRAPH says on one node of eight: rings of 12 channels at
// 20 GB/s on A100, 12 at 30 and NVLS 8 at 40 on H100, 16 at 45 and NVLS 8 at 80 on B200.
TEST(Search, FindsTheChannelsOfKnownNodes) {
  const Communicator a100 = communicator_on({.device = "A100-SXM-80GB", .gpus = 8});
  EXPECT_EQ(text(a100.ring), "12 x 20");
  EXPECT_EQ(text(a100.tree), "12 x 20");
  EXPECT_EQ(a100.nvls.channels, 0);
  EXPECT_EQ(a100.channels, 24);
  const Communicator h100 = communicator_on({.device = "H100-SXM", .gpus = 8});
  EXPECT_EQ(text(h100.ring), "12 x 30");
  EXPECT_EQ(text(h100.nvls), "8 x 40 / 60");
  EXPECT_EQ(h100.channels, 24);
  EXPECT_EQ(h100.nvls_channels, 16);
  const Communicator b200 = communicator_on({.device = "B200", .gpus = 8});
  EXPECT_EQ(text(b200.ring), "16 x 45");
  EXPECT_EQ(text(b200.nvls), "8 x 80 / 90");
  EXPECT_EQ(b200.channels, 32);
  EXPECT_EQ(b200.nvls_channels, 24);
}

// Six links of 20 GB/s in the hybrid cube mesh: the double links make one cycle (twice each way),
// the single links another.
TEST(Search, FindsSixRingsInTheHybridCubeMesh) {
  const Communicator v100 = communicator_on({.device = "V100-SXM-32GB", .gpus = 8});
  EXPECT_EQ(text(v100.ring), "6 x 20");
  EXPECT_EQ(v100.channels, 12);
  EXPECT_FALSE(v100.has_nvswitch);
}

// GPUs 0 and 5 of the mesh have no common link: a third GPU relays, over two NVLinks.
TEST(Search, TakesARelayForNoSwitch) {
  const ClusterRequest mesh{.device = "V100-SXM-32GB", .gpus = 8};
  EXPECT_FALSE(communicator_on(mesh, {DeviceId(0), DeviceId(5)}).has_nvswitch);
  const ClusterRequest switched{.device = "A100-SXM-80GB", .gpus = 8};
  EXPECT_TRUE(communicator_on(switched, {DeviceId(0), DeviceId(5)}).has_nvswitch);
}

// 16 channels: up to 32 ranks a peer has two of them, beyond one. 12 count as 16.
TEST(PeerChannels, AreTwoUnlessChannelsWouldHaveEightOperations) {
  const auto channels = [](std::int64_t members, std::int64_t all) {
    Communicator communicator;
    communicator.members = members;
    communicator.channels = all;
    return peer_channels(communicator);
  };
  EXPECT_EQ(channels(2, 1), 2);
  EXPECT_EQ(channels(3, 1), 1);
  EXPECT_EQ(channels(32, 16), 2);
  EXPECT_EQ(channels(33, 16), 1);
  EXPECT_EQ(channels(32, 12), 2);
}

// Four A100, four links of 20 GB/s between each two: K4 has three pairs of opposite cycles, which
// cross each link in either direction twice: 6 x 40 = 12 x 20 GB/s.
TEST(Search, UsesAllLinksOfAMesh) {
  const Communicator mesh = communicator_on(
      {.device = "A100-SXM-80GB", .gpus = 4, .gpus_per_node = 4, .node = "a100-4gpu-nvlink-mesh"});
  EXPECT_EQ(text(mesh.ring), "12 x 20");
}

// Eight adapters of 400 Gbit/s on PCIe 5.0: one channel each, at PCIe's 48 GB/s.
TEST(Search, UsesEveryAdapter) {
  const Communicator h100 = communicator_on({.device = "H100-SXM", .gpus = 80});
  EXPECT_EQ(text(h100.ring), "8 x 48");
  EXPECT_EQ(h100.channels, 16);
  EXPECT_EQ(text(h100.nvls), "8 x 40 / 48");
  const Communicator a100 = communicator_on({.device = "A100-SXM-80GB", .gpus = 16});
  EXPECT_EQ(text(a100.ring), "8 x 24");
  EXPECT_EQ(text(a100.tree), "8 x 30 / 24");
  // One adapter of 48 GB/s: few fast channels are doubled.
  const Communicator single = communicator_on(
      {.device = "H100-SXM", .gpus = 10, .gpus_per_node = 1, .internode_per_gpu = 400_Gbit_s});
  EXPECT_EQ(text(single.ring), "2 x 24");
}

TEST(Search, FindsChannelsOnEveryMachineOfTheCatalogue) {
  struct Machine {
    const char* device;
    std::int64_t per_node;
  };
  for (const auto& [device, per_node] :
       {Machine{"RTX-PRO-6000", 8}, Machine{"GB200", 72}, Machine{"GB300", 72}, Machine{"B300", 8},
        Machine{"H200-SXM", 8}, Machine{"GH200-96GB", 1}, Machine{"H800-SXM", 8}}) {
    for (const int nodes : {2, 4}) {
      const Communicator found =
          communicator_on({.device = device, .gpus = per_node * nodes, .gpus_per_node = per_node});
      EXPECT_GT(found.ring.channels, 0) << device;
      EXPECT_GT(found.ring.intra_rate, 0_GB_s) << device;
      EXPECT_EQ(found.nodes, nodes) << device;
    }
  }
}

// Two nodes of one kind and one with half of the adapter's rate: the least decides.
TEST(Search, TakesTheLeastOfUnequalNodes) {
  ClusterView::Builder builder("mixed");
  DeviceType type;
  type.name = "plain";
  const auto id = builder.add_device_type(type);
  const auto hub = builder.add_vertex(VertexKind::kSwitch, "switch");
  Participants group;
  for (const double rate : {24.0, 24.0, 12.0}) {
    const auto node = builder.add_node();
    const std::string prefix = "node" + std::to_string(node) + "/";
    const auto device = builder.add_device(id, prefix + "gpu0", node);
    const auto nic = builder.add_vertex(VertexKind::kNic, prefix + "nic0", node);
    builder.connect(builder.vertex_of(device), nic, {LinkKind::kPcie, 31.5_GB_s, 0_s});
    builder.connect(nic, hub, {LinkKind::kNetwork, rate * 1_GB_s, 0_s});
    group.devices.push_back(device);
  }
  const ClusterView cluster = std::move(builder).build();
  group.cluster = &cluster;
  EXPECT_EQ(text(value_of(communicator_of(group, shipped_tables())).ring), "1 x 12");
  group.devices.pop_back();
  EXPECT_EQ(text(communicator_of(group, shipped_tables())->ring), "1 x 24");
}

TEST(Search, NeedsADevice) {
  EXPECT_FALSE(communicator_of({}, shipped_tables()));
}

}  // namespace foreshard::comm::nccl::nccl_search_test
