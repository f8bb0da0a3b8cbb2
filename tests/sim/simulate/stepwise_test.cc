// Stepwise collectives without a Program: hand-worked times, folded against unfolded on every
// message, and both against the engine's run of the written-out messages.
#include "sim/simulate/stepwise.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "tests/sim/simulate/random_cluster.h"
#include "tests/sim/simulate/small.h"

#include "sim/engine/workload.h"
#include "topology/cluster_config.h"

namespace foreshard::sim {
namespace {

using comm::CollectiveKind;

comm::Participants everybody(const ClusterView& cluster, std::size_t count) {
  comm::Participants group{.cluster = &cluster, .devices = {}};
  for (std::size_t i = 0; i < count; ++i)
    group.devices.push_back(DeviceId(static_cast<std::int64_t>(i)));
  return group;
}

double relative(Seconds a, Seconds b) {
  const double scale = std::max(a.in_base(), b.in_base());
  return scale > 0 ? std::abs(a.in_base() - b.in_base()) / scale : 0;
}

// Finish times of the messages of all lanes, step by step, one flow each.
std::vector<Seconds> by_messages(std::string_view algorithm, CollectiveKind kind, Bytes bytes,
                                 const comm::Participants& group) {
  const auto form = comm::lane_form(algorithm, kind, group);
  EXPECT_TRUE(form) << form.error().message;
  const ClusterView& cluster = *group.cluster;
  engine::Workload workload;
  for (const Link& link : cluster.links()) workload.add_resource(link.bandwidth.in_base());
  const auto lanes = static_cast<std::int32_t>(form->lanes.size());
  for (std::int32_t step = 0; step < form->steps; ++step) {
    for (const comm::Lane& lane : form->lanes) {
      const auto route = cluster.route(group.devices[static_cast<std::size_t>(lane.from)],
                                       group.devices[static_cast<std::size_t>(lane.to)]);
      engine::Shape shape{.usages = {}, .occupations = {}};
      for (const RoutedLink& routed : route->links)
        shape.usages.push_back(
            {.resource = engine::ResourceId(routed.link.value()), .weight = routed.share});
      const auto id = workload.add_activity({.shape = workload.add_shape(std::move(shape)),
                                             .latency = route->latency,
                                             .work = bytes.in_base() * lane.part,
                                             .release_from = {},
                                             .release_lag = {}});
      for (const comm::LaneDependency& after : lane.after)
        if (after.steps_before <= step)
          workload.add_edge(engine::ActivityId((step - after.steps_before) * lanes + after.lane),
                            id);
    }
  }
  const auto times = engine::run_fluid(workload);
  EXPECT_TRUE(times);
  return times->finish;
}

// Every message of every step, three ways. Returns the messages of one folded step.
std::int32_t expect_all_alike(std::string_view algorithm, CollectiveKind kind, Bytes bytes,
                              const comm::Participants& group) {
  const auto folded = stepwise_times(algorithm, kind, bytes, group, {.every_message = true});
  const auto unfolded =
      stepwise_times(algorithm, kind, bytes, group, {.fold = false, .every_message = true});
  EXPECT_TRUE(folded && unfolded);
  if (!folded || !unfolded) return 0;
  const auto written = by_messages(algorithm, kind, bytes, group);
  const auto lanes = static_cast<std::int32_t>(folded->class_of_lane.size());
  EXPECT_EQ(folded->messages(), std::ssize(written));
  for (std::int32_t step = 0; step < folded->steps; ++step) {
    for (std::int32_t lane = 0; lane < lanes; ++lane) {
      const Seconds a = folded->finish_of(step, lane);
      EXPECT_LT(relative(a, unfolded->finish_of(step, lane)), 1e-9);
      EXPECT_LT(relative(a, written[static_cast<std::size_t>(step * lanes + lane)]), 1e-9)
          << "step " << step << ", lane " << lane;
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_LT(relative(folded->time, *std::ranges::max_element(written)), 1e-9);
  return folded->classes;
}

// Six steps, each 1 us and a quarter of 4 MB at 100 GB/s.
TEST(Stepwise, RingTakesTwoRoundsOfSteps) {
  const ClusterView cluster = star(4);
  const auto times =
      stepwise_times("ring", CollectiveKind::kAllReduce, 4_MB, everybody(cluster, 4));
  ASSERT_TRUE(times);
  EXPECT_LT(relative(times->time, 66_us), 1e-12);
  EXPECT_EQ(times->classes, 1);
  EXPECT_EQ(times->folded_messages(), 6);
  EXPECT_EQ(times->messages(), 24);
}

TEST(Stepwise, OneMemberTakesNoTime) {
  const ClusterView cluster = star(2);
  const auto times =
      stepwise_times("ring", CollectiveKind::kAllReduce, 4_MB, everybody(cluster, 1));
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->time, 0_s);
}

TEST(Stepwise, UnknownAlgorithmIsSaid) {
  const ClusterView cluster = star(2);
  const auto times =
      stepwise_times("ping", CollectiveKind::kAllReduce, 4_MB, everybody(cluster, 2));
  ASSERT_FALSE(times);
  EXPECT_NE(times.error().message.find("unknown algorithm 'ping'"), std::string::npos);
}

// Nodes of 4 behind NICs, in pods of 2 nodes: a period of the ring is a pod.
TEST(Stepwise, RingAcrossLeavesHasThePeriodOfAPod) {
  NodeConfig node;
  node.gpus = 4;
  node.nvlink.emplace();
  node.nvlink->bandwidth.value = 100_GB_s;
  node.nics.emplace();
  node.nics->count = 4;
  node.nics->bandwidth.value = 25_GB_s;
  ClusterConfig config;
  config.name = "pods";
  config.nodes = 12;
  config.node = yaml::Ref<NodeConfig>{node, ""};
  config.fabric.kind = "rail-fat-tree";
  config.fabric.nodes_per_pod = 2;
  const auto cluster = build_cluster(config);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(expect_all_alike("ring", CollectiveKind::kAllReduce, 8_MB, everybody(*cluster, 48)), 8);
  // 5 nodes: two pods and a half, so nothing repeats.
  EXPECT_EQ(expect_all_alike("ring", CollectiveKind::kAllReduce, 8_MB, everybody(*cluster, 20)),
            20);
}

TEST(Stepwise, EveryMessageOf1024RanksIsTheSameFoldedAndNot) {
  const ClusterView cluster = star(1024);
  const auto group = everybody(cluster, 1024);
  const auto folded =
      stepwise_times("ring", CollectiveKind::kAllReduce, 1_GB, group, {.every_message = true});
  const auto unfolded = stepwise_times("ring", CollectiveKind::kAllReduce, 1_GB, group,
                                       {.fold = false, .every_message = true});
  ASSERT_TRUE(folded && unfolded);
  EXPECT_EQ(folded->classes, 1);
  double worst = 0;
  for (std::int32_t step = 0; step < folded->steps; ++step)
    for (std::int32_t lane = 0; lane < 1024; ++lane)
      worst =
          std::max(worst, relative(folded->finish_of(step, lane), unfolded->finish_of(step, lane)));
  EXPECT_LT(worst, 1e-9);
  EXPECT_LT(relative(folded->time, 2046 * (1_us + 1_GB / 1024 / 100_GB_s)), 1e-9);
}

// Random groups on random clusters, in rank order or not, with one node of another kind or not.
TEST(Stepwise, FoldingChangesNoMessage) {
  struct Case {
    std::string_view algorithm;
    CollectiveKind kind;
  };
  constexpr std::array kCases{
      Case{"ring", CollectiveKind::kAllReduce},     Case{"ring", CollectiveKind::kAllGather},
      Case{"ring", CollectiveKind::kReduceScatter}, Case{"tree", CollectiveKind::kAllReduce},
      Case{"pairwise", CollectiveKind::kAllToAll},  Case{"chain", CollectiveKind::kBroadcast}};
  int folded_cases = 0;
  int shared_cases = 0;
  constexpr int kRuns = 200;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    std::mt19937 random(seed);
    const Case& what = kCases[seed % kCases.size()];
    const std::int64_t devices = std::array{8, 12, 16, 24}[random() % 4];
    const ClusterView cluster =
        random_cluster(random, devices,
                       {.routing = random() % 4 == 0 ? Routing::kEcmpHash : Routing::kSpread,
                        .one_slow_node = random() % 3 == 0});
    auto group = everybody(cluster, static_cast<std::size_t>(devices) - random() % 3);
    if (random() % 3 == 0) std::ranges::shuffle(group.devices, random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(what.algorithm) + " of " +
                 std::to_string(group.devices.size()));
    const std::int32_t classes = expect_all_alike(what.algorithm, what.kind, 10_MB, group);
    const auto times = stepwise_times(what.algorithm, what.kind, 10_MB, group);
    folded_cases += classes < std::ssize(times->class_of_lane) ? 1 : 0;
    shared_cases += times->shares_links ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%d cases, %d fold, %d share links\n", kRuns, folded_cases, shared_cases);
  EXPECT_GT(folded_cases, kRuns / 4);
  EXPECT_GT(shared_cases, kRuns / 10);
}

}  // namespace
}  // namespace foreshard::sim
