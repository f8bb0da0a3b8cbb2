#include "sim/search/internal/peaks.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/strategies/plan/tiny_parts.h"

namespace foreshard::search {
namespace {

// Per stage: the passes through layers whose activations are kept at once.
std::vector<std::int32_t> kept(const char* schedule, std::int64_t stages, std::int64_t chunks,
                               std::int64_t micro_batches) {
  Strategy strategy = plan::tiny_strategy(stages, micro_batches);
  strategy.schedule = schedule;
  strategy.virtual_stages = chunks;
  const plan::StepPlan plan = plan::planned(
      plan::tiny_parts(strategy, static_cast<std::int32_t>(stages * chunks)), strategy);
  std::vector<std::int32_t> most;
  for (const plan::Role& role : plan.roles) {
    most.push_back(0);
    for (const Load& load : loads_of(plan, role, false))
      most.back() = std::max(most.back(), load.kept[1]);
  }
  return most;
}

// 1F1B: min(p - s, m).
TEST(Loads, OfOneForwardOneBackward) {
  EXPECT_EQ(kept("1f1b", 4, 1, 8), (std::vector<std::int32_t>{4, 3, 2, 1}));
  EXPECT_EQ(kept("1f1b", 4, 1, 2), (std::vector<std::int32_t>{2, 2, 2, 1}));
}

TEST(Loads, OfGpipeKeepAll) {
  EXPECT_EQ(kept("gpipe", 4, 1, 8), (std::vector<std::int32_t>{8, 8, 8, 8}));
}

// Interleaved: min(2 (p - 1 - s) + (v - 1) p + 1, m v) passes of a chunk each.
TEST(Loads, OfInterleavedKeepTheWarmUpAndOne) {
  EXPECT_EQ(kept("interleaved", 4, 2, 8), (std::vector<std::int32_t>{11, 9, 7, 5}));
  EXPECT_EQ(kept("interleaved", 4, 2, 4), (std::vector<std::int32_t>{8, 8, 7, 5}));
}

// ZB-H1: from a forward pass to its weight gradients, min(p, m) on every stage; on the last one,
// all but the one that runs wait for their weight gradients alone.
TEST(Loads, OfZeroBubbleCountWhatWaitsForWeightGradients) {
  Strategy strategy = plan::tiny_strategy(4, 8);
  strategy.schedule = "zb-h1";
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 4), strategy);
  for (const plan::Role& role : plan.roles) {
    std::int32_t both = 0;
    std::int32_t held = 0;
    for (const Load& load : loads_of(plan, role, false)) {
      both = std::max(both, load.kept[1] + load.held[1]);
      held = std::max(held, load.held[1]);
    }
    EXPECT_EQ(both, 4) << role.name;
    EXPECT_GE(held, 1) << role.name;
  }
}

// ZeRO 3: the layer that runs and the one that is gathered are whole; the gradient that is reduced
// and the one that is computed too.
TEST(Loads, OfFullyShardedParametersHaveTwoWholeLayers) {
  Strategy strategy = plan::tiny_strategy(1, 1);
  plan::set_data(strategy, 2, 3);
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 4), strategy);
  BlockCounts whole{};
  BlockCounts gradient{};  // of the one bucket that each unit has
  for (const Load& load : loads_of(plan, plan.roles.front(), false)) {
    for (std::size_t b = 0; b < kBlocks; ++b) {
      whole[b] = std::max(whole[b], load.whole[b]);
      gradient[b] = std::max(gradient[b], load.gradient[0][b]);
    }
  }
  EXPECT_EQ(whole, (BlockCounts{1, 2, 1}));
  EXPECT_EQ(gradient, (BlockCounts{1, 2, 1}));
}

// 3 layers of 10 bytes each are kept; a pass works with 5 forward, 7 backward.
TEST(Peak, IsThatOfTheFirstBackwardPass) {
  const Strategy strategy = plan::tiny_strategy(1, 1);
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 3), strategy);
  const auto loads = loads_of(plan, plan.roles.front(), false);
  std::array<BlockBytes, kBlocks> bytes{};
  bytes[1] = {.kept = 10_B, .work = {5_B, 7_B}};
  EXPECT_EQ(peak(loads, bytes), 37_B);
  // With its last task off the compute stream, the work and what was kept outlive the pass.
  bytes[1].trails = {false, true};
  EXPECT_EQ(peak(loads, bytes), 20_B + 7_B + 17_B);
}

}  // namespace
}  // namespace foreshard::search
