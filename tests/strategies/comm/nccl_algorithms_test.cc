// What NCCL's younger algorithms put on links, worked out by hand; which of them are taken.

#include "base/yaml/loader.h"
#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/choose.h"
#include "strategies/comm/internal/rounds.h"
#include "strategies/comm/sweep.h"
#include "topology/cluster_config.h"

namespace foreshard::comm::nccl_algorithms_test {

using enum program::CollectiveKind;

double load_of(const ClusterView& cluster, const Pattern& pattern, const char* from,
               const char* to) {
  FlatCollective flat;
  flat.loads = pattern.loads;
  return load_between(cluster, flat, from, to);
}

// Eight members: everyone gives 1/8 to the switch and takes all of it.
TEST(Nvls, GathersThroughTheSwitch) {
  const auto cluster = star(8);
  const auto gather = value_of(nvls_all_gather(everyone(cluster)));
  EXPECT_DOUBLE_EQ(load_of(cluster, gather, "gpu3", "hub"), 0.125);
  EXPECT_DOUBLE_EQ(load_of(cluster, gather, "hub", "gpu3"), 1);
  const auto scatter = value_of(nvls_reduce_scatter(everyone(cluster)));
  EXPECT_DOUBLE_EQ(load_of(cluster, scatter, "gpu3", "hub"), 1);
  EXPECT_DOUBLE_EQ(load_of(cluster, scatter, "hub", "gpu3"), 0.125);
}

// Two nodes of four: 1 + 1/4 to the node's switch. Between two nodes both trees have one edge, so
// each head sends 1/4 up one tree's half and down the other's: 1/8 + 1/8.
TEST(NvlsTree, SendsHeadsPartsBetweenNodes) {
  const auto cluster = rails(2, 4);
  const auto pattern = value_of(nvls_tree_all_reduce(everyone(cluster)));
  EXPECT_DOUBLE_EQ(load_of(cluster, pattern, "gpu0.1", "hub0"), 1.25);
  EXPECT_DOUBLE_EQ(load_of(cluster, pattern, "hub1", "gpu1.3"), 1.25);
  EXPECT_DOUBLE_EQ(load_of(cluster, pattern, "nic0.2", "leaf2"), 0.25);
  EXPECT_DOUBLE_EQ(pattern.path.network, 2);
  EXPECT_EQ(nvls_tree_all_reduce(everyone(star(4))).error().code, Error::Code::kUnsupported);
  EXPECT_EQ(nvls_tree_all_reduce(everyone(rails(4, 1))).error().code, Error::Code::kUnsupported);
}

// With sums in the network a head's adapter carries its quarter once each way, however many nodes.
TEST(Collnet, NeedsAndUsesSwitchesThatAdd) {
  for (const std::int32_t nodes : {2, 3, 8}) {
    const auto cluster = rails(nodes, 4, true);
    for (auto* pattern_of :
         {collnet_chain_all_reduce, collnet_direct_all_reduce, nvls_all_reduce}) {
      const auto pattern = value_of(pattern_of(everyone(cluster)));
      EXPECT_DOUBLE_EQ(load_of(cluster, pattern, "nic1.2", "leaf2"), 0.25);
      EXPECT_DOUBLE_EQ(load_of(cluster, pattern, "leaf2", "nic1.2"), 0.25);
      EXPECT_DOUBLE_EQ(pattern.path.network, 1);
    }
    // Chains: a member passes on all parts but that which starts (or ends) at it: 2 x 3/4.
    EXPECT_DOUBLE_EQ(
        load_of(cluster, *collnet_chain_all_reduce(everyone(cluster)), "gpu0.1", "hub0"), 1.5);
    EXPECT_DOUBLE_EQ(
        load_of(cluster, *collnet_direct_all_reduce(everyone(cluster)), "gpu0.1", "hub0"), 1.5);
    const auto plain = rails(nodes, 4);
    for (auto* pattern_of :
         {collnet_chain_all_reduce, collnet_direct_all_reduce, nvls_all_reduce}) {
      EXPECT_THAT(error_of(pattern_of(everyone(plain))),
                  Fails(Error::Code::kUnsupported, HasSubstr("do not add")));
    }
  }
}

// Six members, distances 4, 2, 1: one's own chunk; those of members 0 places back (v = 0 of 0, 4
// with v + 2 < 6); then v = 0, 2, 4.
TEST(Pat, SendsFarFirst) {
  const auto rounds = internal::far_first_all_gather(6);
  ASSERT_EQ(rounds.rounds.size(), 3u);
  const auto counts = [&](std::size_t round) { return rounds.rounds[round][5].chunk_count; };
  EXPECT_THAT((std::vector{counts(0), counts(1), counts(2)}), ElementsAre(1, 1, 3));
  const internal::RoundMessage& last = rounds.rounds[2][5];
  EXPECT_EQ(last.to, 0);
  EXPECT_EQ(last.first_chunk, 5);
  EXPECT_EQ((last.first_chunk + last.chunk_step) % 6, 3);
  EXPECT_EQ((last.first_chunk + 2 * last.chunk_step) % 6, 1);
}

// 8 members: 3 rounds of halving, 3 of doubling, against 14 steps of the ring; as many bytes.
TEST(HalvingDoubling, TakesLogarithmicallyManyRounds) {
  const auto cluster = star(8);
  const auto pattern = value_of(halving_doubling_all_reduce(everyone(cluster)));
  EXPECT_DOUBLE_EQ(pattern.path.nvlink, 6);
  EXPECT_DOUBLE_EQ(pattern.sent_per_member, 2 * 7.0 / 8);
  EXPECT_NEAR(load_of(cluster, pattern, "gpu0", "hub"), 2 * 7.0 / 8, 1e-12);
}

// Two nodes of four. All-reduce: 2 x 3/4 inside, 2 x 1/2 of a quarter between. All-to-all: 3/4
// inside; 1/2 between, on the member's own rail.
TEST(Hierarchical, StaysOnTheRail) {
  const auto cluster = rails(2, 4);
  const auto reduce = value_of(hierarchical_all_reduce(everyone(cluster)));
  EXPECT_DOUBLE_EQ(load_of(cluster, reduce, "gpu0.1", "hub0"), 1.5);
  EXPECT_DOUBLE_EQ(load_of(cluster, reduce, "nic0.1", "leaf1"), 0.25);
  const auto exchange = value_of(hierarchical_all_to_all(everyone(cluster)));
  EXPECT_DOUBLE_EQ(load_of(cluster, exchange, "gpu0.1", "hub0"), 0.75);
  EXPECT_DOUBLE_EQ(load_of(cluster, exchange, "nic0.1", "leaf1"), 0.5);
  EXPECT_DOUBLE_EQ(load_of(cluster, exchange, "leaf1", "spine"), 0);
  EXPECT_DOUBLE_EQ(exchange.path.network, 1);
}

Parameters shipped() {
  return value_of(yaml::Loader(shipped_options()).read_ref<Parameters>("nccl"));
}

AlgorithmOverride choice(const std::string& operation, const std::string& algorithm) {
  AlgorithmOverride made;
  made.operation = operation;
  made.algorithm = algorithm;
  return made;
}

TEST(Choices, OverrideTheTunerInTheirRange) {
  const auto cluster = star(8);
  Parameters parameters = shipped();
  parameters.choices.push_back(choice("all_reduce", "tree"));
  parameters.choices.back().protocol = Protocol::kSimple;
  parameters.choices.back().from_bytes = 1_MiB;
  parameters.choices.back().to_bytes = 2_MiB;
  const auto selector = AlgorithmSelector::of(kAllReduce, everyone(cluster), parameters);
  ASSERT_TRUE(selector);
  const auto name = [&](Bytes bytes) {
    const auto form = selector->choose(bytes);
    return std::string(form->algorithm) + " " + std::string(form->protocol);
  };
  EXPECT_EQ(name(1_MiB), "tree Simple");
  EXPECT_EQ(name(2_MiB), "tree Simple");
  EXPECT_NE(name(1_GiB), "tree Simple");
  EXPECT_NE(name(1_KiB), "tree Simple");
  EXPECT_DOUBLE_EQ(*selector->time(1_MiB) / 1_us,
                   selector->choose(1_MiB)->idle_time(1_MiB, cluster) / 1_us);
  // Of other sizes of groups nothing is said.
  parameters.choices.back().from_ranks = 9;
  EXPECT_TRUE(AlgorithmSelector::of(kAllReduce, everyone(cluster), parameters)->takes_fastest());
}

// Half of the channels carry half of the bytes per second, where they have no rate of their own,
// and hold half of the multiprocessors.
TEST(Choices, SetChannels) {
  const auto cluster = star(8);
  Parameters parameters = shipped();
  for (FormParameters& form : parameters.forms) form.channel_rate = FormParameters{}.channel_rate;
  parameters.choices.push_back(choice("all_gather", "ring"));
  parameters.choices.back().protocol = Protocol::kSimple;
  const auto whole =
      *AlgorithmSelector::of(kAllGather, everyone(cluster), parameters)->choose(1_GiB);
  parameters.choices.back().channels = static_cast<std::int64_t>(whole.channels) / 2;
  const auto half =
      *AlgorithmSelector::of(kAllGather, everyone(cluster), parameters)->choose(1_GiB);
  EXPECT_NEAR(half.idle_rate(cluster) / whole.idle_rate(cluster), 0.5, 1e-9);
  EXPECT_NEAR(half.sm_share / whole.sm_share, 0.5, 1e-9);
}

// Ten channels of 20 GB/s on a link of 100 GB/s: of 800 MB each member sends 700, in 7 ms; four
// channels take 8.75 ms, one 35 ms. Less than channel_bytes, one channel has it all in any case:
// 700 kB at 20 GB/s. The hops' 7 x 2 us of wire come on top.
TEST(Choices, ChannelsKeepTheirRates) {
  const auto cluster = star(8);
  Parameters parameters{.name = "test", .forms = {}};
  FormParameters form;
  form.algorithm = "ring";
  form.channels = 10;
  form.channel_rate = 20_GB_s;
  form.channel_bytes = 1_MB;
  parameters.forms.push_back(form);
  parameters.choices.push_back(choice("all_gather", "ring"));
  for (const auto& [channels, large] : {std::pair{10, 7000.0}, {4, 8750.0}, {1, 35000.0}}) {
    parameters.choices.back().channels = channels;
    const auto selector = AlgorithmSelector::of(kAllGather, everyone(cluster), parameters);
    ASSERT_TRUE(selector);
    EXPECT_NEAR((*selector->time(800_MB) - 14_us) / 1_us, large, 1e-6);
    EXPECT_NEAR((*selector->time(800_kB) - 14_us) / 1_us, 35, 1e-6);
    for (const Bytes bytes : {800_MB, 800_kB})
      EXPECT_DOUBLE_EQ(*selector->time(bytes) / 1_us,
                       selector->choose(bytes)->idle_time(bytes, cluster) / 1_us);
  }
}

TEST(Choices, ThatDevicesCannotObeyAreErrors) {
  const auto cluster = rails(2, 1);
  Parameters parameters = shipped();
  parameters.choices.push_back(choice("all_reduce", "nvls"));
  EXPECT_THAT(error_of(predict(kAllReduce, 1_MiB, everyone(cluster), parameters)),
              Fails(Error::Code::kInvalidInput,
                    AllOf(HasSubstr("'nvls' was chosen"), HasSubstr("ring LL"))));
}

TEST(Choices, AreCheckedWhenRead) {
  yaml::Loader loader(shipped_options());
  const auto fault = [&](const std::string& text) {
    const auto read = loader.read_text<Parameters>("extends: nccl\n" + text, "mine.yaml");
    return message_of(read);
  };
  EXPECT_EQ(fault("choices:\n  - {operation: all_reduce, algorithm: tree, to_nodes: 4}\n"),
            "accepted");
  EXPECT_THAT(fault("choices:\n  - {operation: allreduce, algorithm: tree}\n"),
              HasSubstr("unknown operation 'allreduce'"));
  EXPECT_THAT(fault("choices:\n  - {operation: all_gather, algorithm: tree}\n"),
              HasSubstr("'tree' does no all_gather; there are ring"));
  EXPECT_THAT(fault("choices:\n  - {operation: all_reduce, algorithm: ring, from_bytes: 2 MiB, "
                    "to_bytes: 1 MiB}\n"),
              HasSubstr("to_bytes is less than from_bytes"));
}

// NCCL's tuner decides by its own times: our time is that of what it takes.
TEST(Tuner, TakesWhatNcclWouldTake) {
  const auto cluster = star(8);
  Parameters parameters = shipped();
  parameters.tuner = TunerKind::kNccl;
  EXPECT_FALSE(
      value_of(AlgorithmSelector::of(kAllGather, everyone(cluster), parameters)).takes_fastest());
  for (const Bytes bytes : {1_KiB, 1_MiB, 1_GiB}) {
    const auto rows = value_of(sweep(kAllGather, everyone(cluster), parameters, {bytes}));
    const SweepRow& row = rows.front();
    ASSERT_TRUE(row.nccl);
    EXPECT_EQ(row.taken.algorithm, row.nccl->algorithm);
    EXPECT_EQ(row.taken.protocol, name_of(row.nccl->protocol));
  }
}

// Two A100 servers with four adapters of 25 GB/s. A tree would cross the network with 1/4 of the
// bytes an adapter in each direction where a ring crosses with 15/32, and by our times it takes
// less; NCCL's tuner thinks little of trees and takes the ring (nccl_estimate_test.cc has its
// times by hand). The protocol is that of least time. One node, and a transport whose plugin has a
// tuner, are left to our times.
TEST(Tuner, TakesNcclsAlgorithmBetweenNodes) {
  const auto taken = [](const std::string& node, TunerKind tuner, std::int32_t ranks) {
    const auto config =
        value_of(yaml::Loader(shipped_options())
                     .read_text<ClusterConfig>("{nodes: 2, node: " + node + "}", "cluster.yaml"));
    const auto cluster = *build_cluster(config);
    Parameters parameters = shipped();
    parameters.tuner = tuner;
    const auto selector = AlgorithmSelector::of(kAllReduce, first(cluster, ranks), parameters);
    EXPECT_TRUE(selector);
    const auto form = *selector->choose(64_MiB);
    EXPECT_EQ(selector->takes_fastest(),
              tuner == TunerKind::kFastest || ranks <= 8 || node.find("efa") != std::string::npos);
    return std::string(form.algorithm);
  };
  constexpr auto kOurs = TunerKind::kFastest;
  constexpr auto kNccls = TunerKind::kBetweenNodes;
  EXPECT_EQ(taken("hgx-a100-4x200g", kOurs, 16), "tree");
  EXPECT_EQ(taken("hgx-a100-4x200g", kNccls, 16), "ring");
  EXPECT_EQ(taken("hgx-a100-4x200g", kNccls, 8), taken("hgx-a100-4x200g", kOurs, 8));
  const std::string efa = "{extends: hgx-a100-4x200g, nics: {transport: efa}}";
  EXPECT_EQ(taken(efa, kNccls, 16), taken(efa, kOurs, 16));
}

// 2 x 7/8 of an all-reduce, 7/8 of a gather, as nccl-tests have it; sizes from 1 to 16 by 2.
TEST(Sweep, CountsAsNcclTestsDo) {
  EXPECT_DOUBLE_EQ(bus_factor(kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(kBroadcast, 8), 1);
  EXPECT_THAT(sizes_between(1_KiB, 4_KiB, 2), ElementsAre(1_KiB, 2_KiB, 4_KiB));
  const auto cluster = star(8);
  const auto rows = value_of(sweep(kAllReduce, everyone(cluster), ideal_parameters(), {1_GB}));
  EXPECT_NEAR(rows.front().bus_rate / rows.front().algorithm_rate, 1.75, 1e-12);
  EXPECT_TRUE(rows.front().taken.bottleneck.valid());
  EXPECT_TRUE(rows.front().runner_up);
  EXPECT_FALSE(rows.front().nccl);
}

}  // namespace foreshard::comm::nccl_algorithms_test
