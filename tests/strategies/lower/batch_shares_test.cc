// Data-parallel ranks that take unequal numbers of micro-batches: who does what, counted by hand.

#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

using program::Program;
using program::Role;

Strategy shared(std::vector<std::int64_t> shares) {
  Strategy s;
  s.tensor_parallel = 2;
  s.pipeline_parallel = 2;
  s.data_parallel = 4;
  s.micro_batch = 2;
  s.zero_stage = 1;
  s.global_batch = 0;
  const std::int64_t ranks = s.data_parallel / static_cast<std::int64_t>(shares.size());
  for (const std::int64_t one : shares) s.global_batch += 2 * ranks * one;
  s.batch_shares = std::move(shares);
  s.framework.value.vocabulary_multiple = 1;
  return s;
}

Program shared_step(const Strategy& of) {
  return value_of(lower(tiny_gpt(), of, {.launch_time = 5_us}));
}

// Micro-batches for which a role makes calls.
std::int32_t micro_batches_of(const Role& role) {
  std::int32_t most = 0;
  for (const program::Call& call : role.calls) most = std::max(most, call.micro_batch);
  return most + 1;
}

// Ranks are tensor fastest, then data: 0 1 | 2 3 | 4 5 | 6 7 of stage 0 are data ranks 0 to 3.
TEST(BatchShares, GiveEachGroupOfRanksItsOwnMicroBatches) {
  const Program program = shared_step(shared({3, 1}));
  ASSERT_TRUE(program::verify(program).ok()) << program::verify(program).error().message;
  ASSERT_EQ(program.roles.size(), 4u);
  EXPECT_EQ(program.roles[0].name, "stage 0, 3 micro-batches");
  EXPECT_THAT(program.roles[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(program.roles[1].name, "stage 0, 1 micro-batch");
  EXPECT_THAT(program.roles[1].ranks, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(program.roles[2].name, "stage 1, 3 micro-batches");
  EXPECT_THAT(program.roles[3].ranks, ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(micro_batches_of(program.roles[0]), 3);
  EXPECT_EQ(micro_batches_of(program.roles[1]), 1);
  // 2 ranks x 3 + 2 ranks x 1 micro-batches of 2 sequences of 4 tokens.
  EXPECT_EQ(program.totals.samples, 16);
  EXPECT_EQ(program.totals.tokens, 64);
}

TEST(BatchShares, OfEachRankAreWrittenInTheirOrder) {
  const Program program = shared_step(shared({2, 1, 1, 3}));
  ASSERT_TRUE(program::verify(program).ok()) << program::verify(program).error().message;
  ASSERT_EQ(program.roles.size(), 6u);
  EXPECT_THAT(program.roles[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(program.roles[1].ranks, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(program.roles[2].ranks, ElementsAre(6, 7));
}

// What a rank does is what it does where all take as many, and what it holds.
TEST(BatchShares, LeaveARankWhatItDoesWithEqualOnes) {
  const Strategy strategy = shared({3, 1});
  const Program unequal = shared_step(strategy);
  for (const std::int64_t share : {3, 1}) {
    const Program equal = shared_step(with_equal_shares(strategy, share));
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const Role& own = unequal.roles[2 * stage + (share == 3 ? 0 : 1)];
      const Role& other = equal.roles[stage];
      EXPECT_EQ(own.memory, other.memory);
      ASSERT_EQ(own.calls.size(), other.calls.size());
      for (std::size_t i = 0; i < own.calls.size(); ++i) {
        EXPECT_EQ(unequal.blocks[own.calls[i].block.index()].tasks,
                  equal.blocks[other.calls[i].block.index()].tasks);
        EXPECT_EQ(own.calls[i].after, other.calls[i].after);
      }
    }
  }
}

TEST(BatchShares, FollowPlansOfTheirOwn) {
  EXPECT_THAT(message_of(plan_of(tiny_gpt(), shared({3, 1}))),
              HasSubstr("follow plans of their own"));
}

std::string fault_of(const Strategy& strategy) {
  const auto faults = faults_in(strategy, tiny_gpt(), 64);
  if (faults.empty()) return "";
  return faults.front().key + ": " + faults.front().message + "; " + faults.front().help;
}

TEST(BatchShares, AreOfTheWholeBatchAndOfAllRanks) {
  EXPECT_EQ(fault_of(shared({3, 1})), "");
  Strategy one = shared({3, 1});
  one.global_batch = 20;
  EXPECT_EQ(fault_of(one),
            "batch_shares: 2 ranks of each group x micro_batch 2 x [3, 1] = 16 sequences, and "
            "global_batch is 20; global_batch: 16");
  one = shared({3, 1});
  one.batch_shares = {1, 2, 3};
  EXPECT_THAT(fault_of(one), HasSubstr("4 data-parallel ranks do not divide into 3 equal groups"));
  one.batch_shares = {4, 0};
  EXPECT_THAT(fault_of(one), HasSubstr("each rank takes at least one micro-batch"));
  one.batch_shares = {2, 2};
  EXPECT_THAT(fault_of(one), HasSubstr("all ranks take as many"));
}

TEST(BatchShares, AreOfRanksThatMeetAtTheEndOfTheStepAlone) {
  Strategy one = shared({3, 1});
  one.pipeline_parallel = 1;
  one.zero_stage = 3;
  EXPECT_THAT(fault_of(one), HasSubstr("(ZeRO 2 and 3) meet in each micro-batch"));
  one = shared({4, 3});
  one.schedule = "interleaved";
  one.virtual_stages = 2;
  EXPECT_THAT(fault_of(one), HasSubstr("of the ranks that take 3 micro-batches: "));
  one = shared({4, 2});
  one.schedule = "interleaved";
  one.virtual_stages = 2;
  EXPECT_EQ(fault_of(one), "");
}

}  // namespace
}  // namespace foreshard::lower
