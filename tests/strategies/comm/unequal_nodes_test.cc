// Nodes with unequal numbers of members: as many rings and trees as the smallest node has adapters.
#include <cstdio>

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/choose.h"
#include "topology/cluster_config.h"

namespace foreshard::comm::unequal_nodes_test {

using enum program::CollectiveKind;

constexpr std::array<std::pair<int, int>, 9> kPairs{
    {{8, 7}, {8, 6}, {8, 5}, {8, 4}, {8, 3}, {8, 1}, {7, 4}, {4, 3}, {3, 2}}};

yaml::Loader catalogue() {
  return yaml::Loader(shipped_options());
}

ClusterView built(const std::string& text) {
  yaml::Loader loader = catalogue();
  return value_of(build_cluster(value_of(loader.read_text<ClusterConfig>(text, "cluster.yaml"))));
}

ClusterView two_dgx_h100() {
  return built("{nodes: 2, node: dgx-h100, fabric: {kind: single-switch}}");
}

/// The first `a` members of node 0 and the first `b` of node 1, of nodes of 8.
Participants members(const ClusterView& cluster, int a, int b) {
  Participants group{.cluster = &cluster, .devices = {}};
  for (int i = 0; i < a; ++i) group.devices.emplace_back(i);
  for (int i = 0; i < b; ++i) group.devices.emplace_back(8 + i);
  return group;
}

FlatCollective form_of(std::string_view algorithm, CollectiveKind kind, const Participants& group,
                       const Parameters& parameters) {
  const auto forms = flat_forms(kind, group, parameters);
  EXPECT_TRUE(forms) << (forms ? "" : forms.error().message);
  if (forms)
    for (const FlatCollective& form : *forms)
      if (form.algorithm == algorithm && (form.protocol.empty() || form.protocol == "Simple"))
        return form;
  ADD_FAILURE() << "no form " << algorithm;
  return {};
}

// By hand: a ring over p = a + b members passes (p-1)/p of its bytes over each hop in every round
// (one; two of an all-reduce), and b rings, b <= a, share the bytes B, each with an adapter of the
// smaller node to itself: rounds x (p-1)/p x B / b at the adapter's 400 Gbit/s x 0.978 = 48.9 GB/s.
TEST(UnequalNodes, HaveOneRingPerAdapterOfTheSmallerNode) {
  const ClusterView cluster = two_dgx_h100();
  const Bytes bytes = 16_GiB;
  for (const auto& [kind, rounds] :
       {std::pair(kAllReduce, 2), std::pair(kAllGather, 1), std::pair(kReduceScatter, 1)}) {
    for (const auto& [a, b] : kPairs) {
      SCOPED_TRACE(std::string(name_of(kind)) + " of " + std::to_string(a) + " + " +
                   std::to_string(b));
      const double p = a + b;
      const Seconds expected = rounds * (p - 1) / p / b * bytes / (0.978 * 50_GB_s);
      const auto form = form_of("ring", kind, members(cluster, a, b), ideal_parameters());
      EXPECT_NEAR(form.idle_time(bytes, cluster) / expected, 1, 0.002);
    }
  }
}

// With NCCL's numbers: as long as among b + b members, but for the part (p-1)/p of the bytes that
// grows with the members. Latencies of more hops remain.
TEST(UnequalNodes, TakeAsLongAsEqualOnesOfTheSmallerCount) {
  const ClusterView cluster = two_dgx_h100();
  yaml::Loader loader = catalogue();
  const auto nccl = value_of(loader.read_ref<Parameters>("nccl"));
  const Bytes bytes = 16_GiB;
  std::printf("%-15s %7s %12s %12s %8s %14s\n", "16 GiB", "members", "ms", "expected", "ratio",
              "best form, ms");
  for (const auto kind : {kAllReduce, kAllGather, kReduceScatter}) {
    for (const auto& [a, b] : kPairs) {
      SCOPED_TRACE(std::string(name_of(kind)) + " of " + std::to_string(a) + " + " +
                   std::to_string(b));
      const auto part = [](double p) { return (p - 1) / p; };
      const auto time = [&](int x, int y) {
        return form_of("ring", kind, members(cluster, x, y), nccl).idle_time(bytes, cluster);
      };
      const Seconds expected = time(b, b) * (part(a + b) / part(b + b));
      const double ratio = time(a, b) / expected;
      const auto best = value_of(predict(kind, bytes, members(cluster, a, b), nccl));
      std::printf("%-15s %5d+%d %12.3f %12.3f %8.4f %14.3f\n", std::string(name_of(kind)).c_str(),
                  a, b, time(a, b) / 1_ms, expected / 1_ms, ratio, best.time / 1_ms);
      EXPECT_GT(ratio, 1 / 1.02);
      EXPECT_LT(ratio, 1.02);
      EXPECT_LE(best.time, time(a, b));
    }
  }
}

// What every form loads: no adapter has more than one of b rings or trees. A tree of two nodes has
// one edge, which its half of the bytes crosses up and down: 1/b of the bytes per adapter.
TEST(UnequalNodes, LoadNoAdapterTwice) {
  const ClusterView cluster = two_dgx_h100();
  for (const auto& [a, b] : kPairs) {
    SCOPED_TRACE(std::to_string(a) + " + " + std::to_string(b));
    const double p = a + b;
    const std::map<std::pair<std::string_view, CollectiveKind>, double> most{
        {{"ring", kAllReduce}, 2 * (p - 1) / p / b},
        {{"ring", kAllGather}, (p - 1) / p / b},
        {{"ring", kReduceScatter}, (p - 1) / p / b},
        {{"tree", kAllReduce}, 1.0 / b},
        {{"chain", kBroadcast}, 1.0 / b}};
    for (const auto& [what, load] : most) {
      const auto form =
          form_of(what.first, what.second, members(cluster, a, b), ideal_parameters());
      double largest = 0;
      for (const LinkLoad& of : form.loads)
        if (cluster.links()[of.link.index()].kind == LinkKind::kNetwork)
          largest = std::max(largest, of.bytes_per_byte);
      EXPECT_NEAR(largest, load, 1e-12) << what.first << " " << name_of(what.second);
    }
  }
}

// Three nodes, on a fabric of rails: the smallest counts, and every ring keeps to its rail.
TEST(UnequalNodes, KeepTheirRailsOnThreeNodes) {
  const ClusterView cluster = rails(3, 4);
  Participants group{.cluster = &cluster, .devices = {}};
  for (const int device : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) group.devices.emplace_back(device);
  const auto form = form_of("ring", kAllGather, group, ideal_parameters());
  for (const LinkLoad& load : form.loads) {
    const Link& link = cluster.links()[load.link.index()];
    EXPECT_NE(cluster.vertices()[link.to.index()].name, "spine");
    if (link.kind == LinkKind::kNetwork) {
      EXPECT_NEAR(load.bytes_per_byte, 10.0 / 11 / 3, 1e-12);
    }
  }
}

// Nodes of 8 and of 7 GPUs, as YAML says it, are like 8 and 7 members of nodes of 8.
TEST(UnequalNodes, MayBeNodesOfUnequalSizes) {
  const ClusterView whole = two_dgx_h100();
  const ClusterView cluster = built(R"(
groups:
  - {nodes: 1, node: dgx-h100}
  - {nodes: 1, node: {extends: dgx-h100, gpus: 7, nics: {count: 7}}}
fabric: {kind: single-switch}
)");
  ASSERT_EQ(cluster.devices().size(), 15u);
  for (const auto kind : {kAllReduce, kAllGather, kReduceScatter})
    EXPECT_EQ(
        form_of("ring", kind, everyone(cluster), ideal_parameters()).idle_time(1_GiB, cluster),
        form_of("ring", kind, members(whole, 8, 7), ideal_parameters()).idle_time(1_GiB, whole));
}

// 16 nodes of 8, the last with 7: 127 members are too many to be routed one by one for ranking, but
// the small node is not among the first.
TEST(UnequalNodes, AreRankedWithTheirSmallestNode) {
  const ClusterView cluster = built("{nodes: 16, node: dgx-h100, fabric: {kind: single-switch}}");
  Participants group = everyone(cluster);
  group.devices.pop_back();
  const auto exact = AlgorithmSelector::of(kAllGather, group, ideal_parameters());
  const auto ranked = AlgorithmSelector::representative(kAllGather, group, ideal_parameters());
  ASSERT_TRUE(exact && ranked);
  EXPECT_EQ(*ranked->time(1_GiB), *exact->time(1_GiB));
}

// Eight GPUs with adapters of 200 Gbit/s, and four with adapters of 400: NCCL finds 8 channels of
// 24 GB/s on the one and 4 of 48 on the other, which it copies, since they are few and above 25
// GB/s (src/graph/search.cc, ncclTopoDupChannels). By hand: 8 rings over p = 12 members, each with
// an adapter of the large node to itself, 0.978 x 25 GB/s, two to an adapter of the small one.
TEST(UnequalNodes, MeetWithCopiesWhereAdaptersOfTheSmallNodeAreFast) {
  const auto pair_of = [](const std::string& large, int gpus, const std::string& small) {
    return built("groups:\n  - {nodes: 1, node: {extends: dgx-h100, nics: {bandwidth: " + large +
                 "}}}\n  - {nodes: 1, node: {extends: dgx-h100, gpus: " + std::to_string(gpus) +
                 ", nics: {count: " + std::to_string(gpus) + ", bandwidth: " + small +
                 "}}}\nfabric: {kind: single-switch}\n");
  };
  const auto rate_of = [](const ClusterView& cluster, CollectiveKind kind,
                          std::string_view algorithm) {
    return form_of(algorithm, kind, everyone(cluster), ideal_parameters()).idle_rate(cluster);
  };
  const double nic = 0.978 * 25;
  const auto fast = pair_of("200 Gbit/s", 4, "400 Gbit/s");
  EXPECT_NEAR(rate_of(fast, kAllReduce, "ring") / 1_GB_s, 8 * nic / (2 * 11.0 / 12), 1e-6);
  EXPECT_NEAR(rate_of(fast, kAllGather, "ring") / 1_GB_s, 8 * nic / (11.0 / 12), 1e-6);
  EXPECT_NEAR(rate_of(fast, kBroadcast, "chain") / 1_GB_s, 8 * nic, 1e-6);
  // Copied once: two members offer four.
  const auto two = pair_of("200 Gbit/s", 2, "400 Gbit/s");
  EXPECT_NEAR(rate_of(two, kAllReduce, "ring") / 1_GB_s, 4 * nic / (2 * 9.0 / 10), 1e-6);
  // The other way round the small node's adapters are slow, and are not copied.
  const auto slow = pair_of("400 Gbit/s", 4, "200 Gbit/s");
  EXPECT_NEAR(rate_of(slow, kAllReduce, "ring") / 1_GB_s, 4 * nic / (2 * 11.0 / 12), 1e-6);
}

}  // namespace foreshard::comm::unequal_nodes_test
