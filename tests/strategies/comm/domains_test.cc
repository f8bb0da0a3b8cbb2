// Rings on meshes of several nodes, and sums in the switches of racks: loads worked out by hand,
// and times against published runs of nccl-tests and rccl-tests.

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/choose.h"
#include "topology/cluster_config.h"

namespace foreshard::comm::domains_test {

using enum program::CollectiveKind;

ClusterView cluster_of(const std::string& text) {
  yaml::Loader loader(shipped_options());
  return value_of(build_cluster(value_of(loader.read_text<ClusterConfig>(text, "cluster.yaml"))));
}

std::string meshes(int nodes, const std::string& node) {
  return "{nodes: " + std::to_string(nodes) + ", node: " + node +
         ", fabric: {kind: single-switch}}";
}

// Loads of the links of one kind: how many there are, the least and the most.
struct Spread {
  std::size_t links = 0;
  double least = 1e300;
  double most = 0;
};
Spread live_sets_of(LinkKind kind, const ClusterView& cluster, const Pattern& pattern) {
  Spread spread;
  for (const LinkLoad& load : pattern.loads) {
    if (cluster.links()[load.link.index()].kind != kind) continue;
    ++spread.links;
    spread.least = std::min(spread.least, load.bytes_per_byte);
    spread.most = std::max(spread.most, load.bytes_per_byte);
  }
  return spread;
}

// Eight GPUs, each joined to seven others: seven rings, of which each link carries one. An
// all-reduce sends 2 x 7/8 of the bytes on each of 8 hops: 14 in all on 56 links.
TEST(MeshRings, OfOneNodeUseEveryLinkAlike) {
  const auto cluster = cluster_of(meshes(1, "mi300x-8gpu"));
  const auto pattern = value_of(ring_all_reduce(everyone(cluster)));
  const Spread links = live_sets_of(LinkKind::kNvLink, cluster, pattern);
  EXPECT_EQ(links.links, 56u);
  EXPECT_NEAR(links.least, 0.25, 1e-12);
  EXPECT_NEAR(links.most, 0.25, 1e-12);
}

// Eight rings of seven hops a node: 56 hops on 56 links, and one on each adapter. Of n nodes each
// hop carries 2 x (8n - 1)/8n of an eighth of the bytes; of an odd number too, where a ring changes
// rails.
TEST(MeshRings, OfSeveralNodesUseEveryLinkAndAdapterAlike) {
  for (const int nodes : {2, 3, 4}) {
    const auto cluster = cluster_of(meshes(nodes, "mi300x-8gpu"));
    const auto pattern = value_of(ring_all_reduce(everyone(cluster)));
    const double hop = 2 * (8.0 * nodes - 1) / (8.0 * nodes) / 8;
    const Spread links = live_sets_of(LinkKind::kNvLink, cluster, pattern);
    EXPECT_EQ(links.links, 56u * static_cast<std::size_t>(nodes));
    EXPECT_NEAR(links.least, hop, 1e-12);
    EXPECT_NEAR(links.most, hop, 1e-12);
    EXPECT_NEAR(live_sets_of(LinkKind::kNetwork, cluster, pattern).most, hop, 1e-12);
    EXPECT_DOUBLE_EQ(pattern.ways, 8);
  }
}

// A tree's chain of each of eight channels: seven hops, down and up, of a sixteenth in two trees.
TEST(MeshTrees, UseEveryLinkAlike) {
  for (const int nodes : {1, 2}) {
    const auto cluster = cluster_of(meshes(nodes, "mi300x-8gpu"));
    const auto pattern = value_of(tree_all_reduce(everyone(cluster)));
    const Spread links = live_sets_of(LinkKind::kNvLink, cluster, pattern);
    EXPECT_EQ(links.links, 56u * static_cast<std::size_t>(nodes));
    EXPECT_NEAR(links.least, 0.25, 1e-12);
    EXPECT_NEAR(links.most, 0.25, 1e-12);
  }
}

// An NVL72 rack has 32 heads, each with an adapter: two racks send 1/64 of the bytes up and down
// each of two trees through it. With 18 adapters for 72 GPUs there are 18 heads, one for each.
TEST(Racks, HaveAHeadForEachAdapterAndAtMost32) {
  const std::string few = "{extends: gb200-nvl72, nics: {count: 18}}";
  for (const auto& [node, heads] : {std::pair<std::string, double>{"gb200-nvl72", 32}, {few, 18}}) {
    const auto cluster = cluster_of(meshes(2, node));
    const auto pattern = value_of(nvls_tree_all_reduce(everyone(cluster)));
    const Spread adapters = live_sets_of(LinkKind::kNetwork, cluster, pattern);
    EXPECT_EQ(adapters.links, static_cast<std::size_t>(4 * heads)) << node;  // in, out, 2 racks
    EXPECT_NEAR(adapters.least, 1 / heads, 1e-12);
    EXPECT_NEAR(adapters.most, 1 / heads, 1e-12);
    const Spread links = live_sets_of(LinkKind::kNvLink, cluster, pattern);
    EXPECT_NEAR(links.least, 1, 1e-12);
    EXPECT_NEAR(links.most, 1 + 1 / heads, 1e-12);
  }
}

// Two GPUs and two adapters under one PCIe switch: each GPU may use both, and both are heads.
TEST(Racks, HaveAHeadForEachOfTheAdaptersThatGpusShare) {
  const auto cluster = cluster_of(
      meshes(2, "{extends: dgx-h100, gpus: 4, nics: {count: 4}, pcie: {switches: 2, sockets: 1}}"));
  EXPECT_DOUBLE_EQ(value_of(nvls_tree_all_reduce(everyone(cluster))).ways, 4);
}

// Channels pass on chunks of one head after another, of half the size from four racks on: half the
// rate.
TEST(Racks, MoveHalfTheChunksFromFourOn) {
  const auto rate = [](int racks) {
    const auto cluster =
        cluster_of(meshes(racks, "{extends: gb200-nvl72, gpus: 64, nics: {count: 64}}"));
    return nvls_tree_all_reduce(everyone(cluster))->channel_part;
  };
  EXPECT_DOUBLE_EQ(rate(2), 1);
  EXPECT_DOUBLE_EQ(rate(3), 1);
  EXPECT_DOUBLE_EQ(rate(4), 0.5);
}

// A gather has a head for each member: NCCL takes a ring where there are more than 32.
TEST(Racks, GatherThroughTheSwitchAmongAtMost32) {
  EXPECT_TRUE(nvls_all_gather(everyone(star(32))));
  EXPECT_EQ(error_of(nvls_all_gather(everyone(star(33)))).code, Error::Code::kUnsupported);
}

struct Measured {
  Bytes bytes;
  Seconds time;
};
struct Run {
  std::string cluster;
  std::vector<Measured> rows;
  double median;  // Of |time / measured - 1|, at most.
  double worst;
  const char* algorithm = "";  // Empty: the library's choice.
};

void expect_near(const Run& run) {
  const auto cluster = cluster_of(run.cluster);
  const auto shipped = value_of(yaml::Loader(shipped_options()).read_ref<Parameters>("nccl"));
  Parameters parameters = shipped;
  if (*run.algorithm != '\0') {
    AlgorithmOverride choice;
    choice.operation = "all_reduce";
    choice.algorithm = run.algorithm;
    parameters.choices.push_back(choice);
  }
  std::vector<double> errors;
  for (const auto& [bytes, measured] : run.rows) {
    const auto forecast = value_of(predict(kAllReduce, bytes, everyone(cluster), parameters));
    errors.push_back(std::abs(forecast.time / measured - 1));
    EXPECT_LT(errors.back(), run.worst)
        << run.cluster << ": " << bytes / 1_MiB << " MiB in " << forecast.time / 1_us << " us";
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], run.median) << run.cluster;
}

constexpr const char* kRackOf64 = "{extends: gb200-nvl72, gpus: 64, nics: {count: 64}}";

// coreweave/nccl-tests, README: 72 GB200 of one rack, and 64 each of two (NCCL 2.26.2, InfiniBand).
TEST(MeasuredRacks, OfInfiniband) {
  expect_near({"{nodes: 1, node: gb200-nvl72, fabric: {kind: single-switch}}",
               {{512_MiB, 1806.7_us},
                {1_GiB, 3108.8_us},
                {2_GiB, 5589.1_us},
                {4_GiB, 10094_us},
                {8_GiB, 20299_us}},
               0.12,
               0.15});
  expect_near({meshes(2, kRackOf64),
               {{512_MiB, 2156.8_us},
                {1_GiB, 3574.4_us},
                {2_GiB, 6264_us},
                {4_GiB, 11469_us},
                {8_GiB, 21493_us},
                {16_GiB, 42067_us}},
               0.12,
               0.15});
}

// The same of 20 racks: 151 and 405 GB/s, 2 x 1439/1440 of the bytes over the time.
TEST(MeasuredRacks, OfTwenty) {
  expect_near(
      {"{nodes: 20, node: gb200-nvl72, fabric: {kind: rail-fat-tree, levels: 2, "
       "nodes_per_pod: 8}}",
       {{512_MiB, 7106_us}, {16_GiB, 84780_us}},
       0.12,
       0.15});
}

// oracle-quickstart/oci-hpc-oke, README: 64 each of two racks (NCCL 2.29.2, RoCE). The run's 1 GiB,
// which took as long as its 2 GiB, is left out.
TEST(MeasuredRacks, OfRoce) {
  const std::string node =
      "{extends: gb200-nvl72, gpus: 64, nics: {count: 64, bandwidth: 400 Gbit/s, transport: roce}}";
  const std::string cluster = meshes(2, node);
  expect_near({cluster,
               {{8_B, 183.82_us},
                {16_KiB, 202.63_us},
                {256_KiB, 231.46_us},
                {4_MiB, 314.13_us},
                {32_MiB, 503.72_us},
                {128_MiB, 976.1_us}},
               0.3,
               1.0 / 3});
  expect_near({cluster,
               {{512_MiB, 2592.03_us},
                {2_GiB, 7758.06_us},
                {4_GiB, 13341.2_us},
                {8_GiB, 25812.5_us},
                {16_GiB, 50409.2_us},
                {32_GiB, 99744.6_us}},
               0.15,
               0.2});
}

// nccl-tests with NCCL_ALGO=tree: three nodes of 4 and of 8 GB200, 234 and 485 GB/s; five of 4
// H100, 150 GB/s. The times are 2 (p-1)/p of the bytes over these.
TEST(MeasuredTrees, OverTheNetwork) {
  const auto gb200 = [](const std::string& gpus) {
    return meshes(3, "{extends: gb200-nvl72, gpus: " + gpus + ", nics: {count: " + gpus + "}}");
  };
  expect_near({gb200("4"), {{16_GiB, 134.6_ms}}, 0.05, 0.05, "tree"});
  expect_near({gb200("8"), {{16_GiB, 67.9_ms}}, 0.05, 0.05, "tree"});
  const std::string h100 =
      "{extends: dgx-h100, gpus: 4, nics: {count: 4}, pcie: {switches: 4, sockets: 1}}";
  expect_near({meshes(5, h100), {{1_GiB, 13.6_ms}}, 0.1, 0.1, "tree"});
}

// rccl-tests of eight MI300X of one virtual machine (one process); ROCm/rocm-systems, pull request
// 9406: two nodes of eight MI350X, here MI355X, before and after its tuning.
TEST(MeasuredMeshes, OfMi300xAndMi350x) {
  expect_near({"{nodes: 1, node: mi300x-8gpu, fabric: {kind: single-switch}}",
               {{8_B, 45.92_us},
                {64_KiB, 55.4_us},
                {1_MiB, 65.38_us},
                {8_MiB, 88.1_us},
                {16_MiB, 152.7_us},
                {32_MiB, 244.8_us},
                {64_MiB, 431.9_us},
                {128_MiB, 801.4_us}},
               0.12,
               0.2});
  const std::string two = meshes(2, "mi355x-8gpu");
  expect_near({two, {{128_MiB, 1095_us}, {128_MiB, 1009_us}, {64_MiB, 661_us}}, 0.2, 0.25});
}

}  // namespace foreshard::comm::domains_test
