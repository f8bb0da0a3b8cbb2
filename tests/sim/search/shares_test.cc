// Unequal shares of the batch: how it is divided, and what a search makes of it.
#include "sim/search/shares.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/sim/search/written_study.h"
#include "tests/test.h"

#include "sim/search/search.h"
#include "sim/simulate/simulate.h"
#include "sim/study/run.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search::shares_test {

std::vector<FlopsPerSecond> rates(const std::vector<double>& of_ranks) {
  std::vector<FlopsPerSecond> all;
  all.reserve(of_ranks.size());
  for (const double one : of_ranks) all.push_back(FlopsPerSecond::from_base(1e12 * one));
  return all;
}

Strategy eight_by_data(std::int64_t data, std::int64_t batch) {
  Strategy strategy;
  strategy.tensor_parallel = 8;
  strategy.data_parallel = data;
  strategy.zero_stage = 1;
  strategy.global_batch = batch;
  return strategy;
}

// 40 micro-batches on four ranks, by hand.
TEST(BatchShares, AreAsTheSpeeds) {
  struct Row {
    std::vector<double> speeds;
    std::size_t most;
    std::size_t found;
    std::vector<std::vector<std::int64_t>> first;
  };
  const std::vector<Row> rows{
      // 5 and 15 take 5 time units, then 5.33, then 5.67, beside 6 of [6, 14].
      {{1, 1, 3, 3}, 3, 3, {{5, 15}, {4, 16}, {3, 17}}},
      // Each rank is named where neighbours differ.
      {{3, 1, 3, 1}, 1, 1, {{15, 5, 15, 5}}},
      // One rank of four has half the rate, and 40 = 3 x 13 + 1, 3 x 12 + 4, 3 x 11 + 7.
      {{2, 2, 1, 2}, 9, 3, {{12, 12, 4, 12}}},
      // 40 / 9 = 4.44 time units at least. At 4.5 they would have taken 4, 9 and twice 13, which is
      // 39; at 4.67, twice 14 and 12 of the others; then 5 time units.
      {{1, 2, 3, 3}, 3, 3, {{3, 9, 14, 14}, {4, 8, 14, 14}, {1, 9, 15, 15}}}};
  const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 40}");
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.speeds));
    const auto found =
        with_batch_shares(eight_by_data(4, 40), study.model, rates(row.speeds), 64, row.most);
    ASSERT_EQ(found.size(), row.found);
    for (std::size_t i = 0; i < row.first.size(); ++i)
      EXPECT_EQ(found[i].batch_shares, row.first[i]);
    for (const Strategy& one : found) EXPECT_TRUE(faults_in(one, study.model, 64).empty());
  }
}

TEST(BatchShares, NeedSpeedsAndRanksThatMeetAtTheEnd) {
  const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 40}");
  Strategy strategy = eight_by_data(4, 40);
  EXPECT_TRUE(with_batch_shares(strategy, study.model, rates({1, 1, 1, 1}), 64, 3).empty());
  strategy.zero_stage = 3;
  EXPECT_TRUE(with_batch_shares(strategy, study.model, rates({1, 1, 3, 3}), 64, 3).empty());
  EXPECT_TRUE(with_batch_shares(strategy, study.model, rates({1, 2, 3, 3}), 64, 3).empty());
}

// By a rank of each kind: what it takes, and when that ends.
using Taken = std::vector<std::int64_t>;
double end_of(const Taken& taken, const std::vector<int>& speeds) {
  double end = 0;
  for (std::size_t k = 0; k < taken.size(); ++k)
    end = std::max(end, static_cast<double>(taken[k]) / speeds[k]);
  return end;
}

// All divisions of `left` among the kinds that have no share yet.
void go_through(const std::vector<int>& ranks, std::int64_t left, Taken& taken,
                std::vector<Taken>& all) {
  if (taken.size() == ranks.size()) {
    if (left == 0) all.push_back(taken);
    return;
  }
  const int own = ranks[taken.size()];
  for (std::int64_t share = 1; share * own <= left; ++share) {
    taken.push_back(share);
    go_through(ranks, left - share * own, taken, all);
    taken.pop_back();
  }
}

// Of all divisions in which the slowest take less than of equal shares, those that end the soonest,
// each once, the soonest first.
RC_GTEST_PROP(BatchShares, AreTheSoonestOfAllDivisions, ()) {
  const auto kinds = *rc::gen::inRange<std::size_t>(2, 5);
  const auto ranks = *rc::gen::container<std::vector<int>>(kinds, rc::gen::inRange(1, 4));
  const std::int64_t share = *rc::gen::inRange(1, 9);
  std::vector<int> speeds;
  std::vector<double> by_rank;
  for (const int count : ranks) {
    speeds.push_back((speeds.empty() ? 0 : speeds.back()) + *rc::gen::inRange(1, 6));
    by_rank.insert(by_rank.end(), static_cast<std::size_t>(count), speeds.back());
  }
  const auto data = std::ssize(by_rank);
  std::vector<Taken> all;
  Taken none;
  go_through(ranks, share * data, none, all);
  std::erase_if(all, [&](const Taken& taken) { return taken.front() >= share; });
  std::vector<double> ends;
  ends.reserve(all.size());
  for (const Taken& taken : all) ends.push_back(end_of(taken, speeds));
  std::ranges::sort(ends);
  if (ends.size() > kMostDivisionsTried) ends.resize(kMostDivisionsTried);

  static const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 40}");
  const auto found = with_batch_shares(eight_by_data(data, share * data), study.model,
                                       rates(by_rank), 8 * data, kMostDivisionsTried);
  RC_ASSERT(found.size() == ends.size());
  std::set<Taken> once;
  for (std::size_t i = 0; i < found.size(); ++i) {
    Taken taken;
    std::int64_t rank = 0;
    for (const int count : ranks) {
      taken.push_back(found[i].batch_share_of(rank));
      for (int n = 0; n < count; ++n) RC_ASSERT(found[i].batch_share_of(rank++) == taken.back());
    }
    RC_ASSERT(std::ranges::find(all, taken) != all.end());
    RC_ASSERT(once.insert(taken).second);
    RC_ASSERT(std::abs(end_of(taken, speeds) / ends[i] - 1) < 1e-12);
  }
}

// Sixty-four speeds in a batch of 65,536 have more divisions than anything could go through.
TEST(BatchShares, OfManySpeedsAreFoundAtOnce) {
  const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 40}");
  std::vector<double> speeds(64);
  double sum = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    sum += speeds[i] = 1 + 0.01 * static_cast<double>(i);
  const auto found = with_batch_shares(eight_by_data(64, 65'536), study.model, rates(speeds), 512,
                                       kMostDivisionsTried);
  ASSERT_EQ(found.size(), kMostDivisionsTried);
  const double ideal = 65'536 / sum;
  for (std::int64_t rank = 0; rank < 64; ++rank) {
    const auto taken = static_cast<double>(found[0].batch_share_of(rank));
    EXPECT_NEAR(taken / speeds[static_cast<std::size_t>(rank)] / ideal, 1, 2e-3);
  }
}

// A device of half the speed slows the one data-parallel rank that it is of.
TEST(BatchShares, GoByTheSlowestDeviceOfARank) {
  const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 8, data_parallel: 2}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const auto of_devices = rates_of(study, cluster, {study.pool, {}});
  ASSERT_EQ(of_devices.size(), 16U);
  EXPECT_EQ(of_devices[0], of_devices[7]);
  EXPECT_GT(of_devices[8], of_devices[7]);
  auto devices = rates(std::vector<double>(16, 2));
  devices[3] = devices[3] / 2;
  EXPECT_EQ(rates_of_data_ranks(eight_by_data(2, 8), devices), rates({1, 2}));
}

// On alike devices the step ends with the ranks that take the most, which do what they do where
// all take as many; the others wait for them.
TEST(BatchShares, TakeAsLongAsTheLargest) {
  const auto study = study_of("{extends: two-dgx-h100, name: two}", "llama2-13b",
                              "{global_batch: 64, framework: megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  Strategy strategy = study.strategy;
  strategy.tensor_parallel = 4;
  strategy.pipeline_parallel = 2;
  strategy.data_parallel = 2;
  strategy.zero_stage = 1;
  strategy.global_batch = 8 + 3;
  strategy.batch_shares = {8, 3};
  const auto prediction_of = [&](const Strategy& one) {
    const auto program = value_of(lower::lower(study.model, one, {.launch_time = 5_us}));
    return value_of(sim::simulate(cluster, program, study.communication, {}));
  };
  const auto unequal = prediction_of(strategy);
  const auto equal = prediction_of(with_equal_shares(strategy, 8));
  EXPECT_NEAR(unequal.step / equal.step, 1, 1e-3);
  EXPECT_NEAR(unequal.model_tflops_per_device / equal.model_tflops_per_device, 11.0 / 16, 1e-3);
}

TEST(BatchShares, WinWhereReplicasLieOnUnequalNodes) {
  const auto study = study_of(kMixed, "llama2-13b", "{global_batch: 64, framework: megatron-lm}");
  SearchOptions options{.simulate = 6, .certify = 0, .front = 0};
  options.space = {.tensor_parallel = {8},
                   .pipeline_parallel = {1},
                   .data_parallel = {2},
                   .micro_batch = {1},
                   .zero_stage = {1}};
  const auto found = value_of(run_search(study, options));
  const Simulated& best = found.simulated.front();
  ASSERT_EQ(best.strategy.batch_shares.size(), 2U) << in_words(best.strategy);
  EXPECT_LT(best.strategy.batch_shares.front(), best.strategy.batch_shares.back());
  options.space.uneven = false;
  const auto equal = value_of(run_search(study, options));
  EXPECT_TRUE(equal.simulated.front().strategy.batch_shares.empty());
  EXPECT_LT(best.step, equal.simulated.front().step * 0.8);
}

// Nodes of three speeds: each kind has a share of its own, which beats all in which they take as
// many, on all nodes or on some.
TEST(BatchShares, WinWhereReplicasLieOnThreeKindsOfNodes) {
  const auto study = study_of(
      "{name: three, groups: [{node: dgx-a100-80gb}, {node: dgx-h100}, {node: dgx-b200}], fabric: "
      "{kind: single-switch}}",
      "llama2-13b", "{global_batch: 96, framework: megatron-lm, cuda_graphs: [attention, mlp]}");
  SearchOptions options{.simulate = 6, .certify = 0, .front = 0};
  options.space = {
      .tensor_parallel = {8}, .pipeline_parallel = {1}, .micro_batch = {1}, .zero_stage = {1}};
  const auto found = value_of(run_search(study, options));
  const Simulated& best = found.simulated.front();
  const auto& shares = best.strategy.batch_shares;
  ASSERT_EQ(shares.size(), 3U) << in_words(best.strategy);
  EXPECT_LT(shares[0], shares[1]);
  EXPECT_LT(shares[1], shares[2]);
  options.space.uneven = false;
  const auto equal = value_of(run_search(study, options));
  EXPECT_TRUE(equal.simulated.front().strategy.batch_shares.empty());
  EXPECT_LT(best.step, equal.simulated.front().step);
}

// Two slow devices of sixteen: pipelines are cut around them, so replicas of one stage have poor
// estimates; with unequal shares they are the best all the same.
TEST(BatchShares, AreTriedWhereTheyGainTheMost) {
  const auto study = study_of(
      "{name: two-slow, groups: [{nodes: 2, node: dgx-h100}], fabric: {kind: single-switch}, "
      "degraded: [{devices: node0/gpu1, speed: 0.5}, {devices: node0/gpu5, speed: 0.5}]}",
      "gpt-1.7b", "{global_batch: 512, framework: megatron-lm}");
  SearchOptions options{.simulate = 8, .certify = 0, .front = 0};
  options.space.level = 1;
  const auto found = value_of(run_search(study, options));
  options.space.tensor_parallel = {1};
  options.space.pipeline_parallel = {1};
  options.space.micro_batch = {1};
  const auto replicas = value_of(run_search(study, options));
  EXPECT_FALSE(replicas.simulated.front().strategy.batch_shares.empty());
  EXPECT_LE(found.simulated.front().step, replicas.simulated.front().step);
}

TEST(BatchShares, AreNotGivenToASearch) {
  const auto study =
      study_of(kMixed, "llama2-13b", "{global_batch: 8, data_parallel: 2, batch_shares: [5, 3]}");
  EXPECT_THAT(message_of(run_search(study, {})), HasSubstr("a search divides the batch itself"));
}

}  // namespace foreshard::search::shares_test
