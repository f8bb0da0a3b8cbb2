#include "sim/search/internal/peaks.h"

#include "tests/strategies/plan/tiny_parts.h"
#include "tests/test.h"

#include "sim/search/internal/shape.h"

namespace foreshard::search {
namespace {

std::vector<LiveSet> live_sets_of(const plan::StepPlan& plan, const plan::Role& role) {
  std::vector<std::int32_t> own;  // each unit stands for itself
  for (const plan::Chunk& chunk : role.chunks) own.push_back(chunk.units.first);
  return live_sets_of(passes_of(plan, role, own, false), labels_of(plan.parts));
}

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
    for (const LiveSet& live_set : live_sets_of(plan, role))
      most.back() = std::max(most.back(), live_set.kept[1]);
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
    for (const LiveSet& live_set : live_sets_of(plan, role)) {
      both = std::max(both, live_set.kept[1] + live_set.held[1]);
      held = std::max(held, live_set.held[1]);
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
  for (const LiveSet& live_set : live_sets_of(plan, plan.roles.front())) {
    for (std::size_t b = 0; b < kBlocks; ++b) {
      whole[b] = std::max(whole[b], live_set.whole[b]);
      gradient[b] = std::max(gradient[b], live_set.gradient[0][b]);
    }
  }
  EXPECT_EQ(whole, (BlockCounts{1, 2, 1}));
  EXPECT_EQ(gradient, (BlockCounts{1, 2, 1}));
}

// Four chunks of a layer stand for one another: what is kept of each counts as that of the first.
TEST(Passes, OfLikeChunksAreThoseOfOne) {
  Strategy strategy = plan::tiny_strategy(2, 4);
  strategy.schedule = "interleaved";
  strategy.virtual_stages = 4;
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 16), strategy);
  const StageClasses classes = classes_of(plan, {0, 0});
  const Labels labels = labels_of(plan.parts);
  for (std::size_t stage = 0; stage < plan.roles.size(); ++stage) {
    const auto& first_like =
        classes.all[static_cast<std::size_t>(classes.of_stage[stage])].first_like;
    const StagePasses passes = passes_of(plan, plan.roles[stage], first_like, false);
    const auto most = [](const std::vector<LiveSet>& live_sets) {
      std::int32_t kept = 0;
      for (const LiveSet& live_set : live_sets) kept = std::max(kept, live_set.kept[1]);
      return kept;
    };
    EXPECT_EQ(most(live_sets_of(passes, labels)), most(live_sets_of(plan, plan.roles[stage])));
    for (const PassForm& pass : passes.all)
      EXPECT_NE(std::ranges::find(first_like, pass.units.first), first_like.end());
  }
}

// A shared form with other labels has the live sets of a plan whose units have those blocks.
TEST(Passes, AreThoseOfAnyLabels) {
  Strategy strategy = plan::tiny_strategy(2, 4);
  plan::set_data(strategy, 2, 1);
  const plan::PlannedModel parts = plan::tiny_parts(strategy, 8);
  plan::PlannedModel other = parts;  // every second layer is of a block of its own
  other.blocks.push_back(other.blocks[1]);
  const auto last = static_cast<std::int32_t>(other.blocks.size()) - 1;
  for (std::size_t unit = 1; unit + 1 < other.units.size(); unit += 2)
    other.units[unit].block = last;
  const plan::StepPlan shared = plan::planned(parts, strategy);
  const plan::StepPlan plain = plan::planned(other, strategy);
  for (std::size_t stage = 0; stage < shared.roles.size(); ++stage) {
    const plan::Role& role = shared.roles[stage];
    const std::vector<std::int32_t> own{role.chunks.front().units.first};
    EXPECT_EQ(live_sets_of(passes_of(shared, role, own, false), labels_of(other)),
              live_sets_of(plain, plain.roles[stage]));
  }
}

LiveBytes largest(const std::vector<LiveSet>& live_sets,
                  const std::array<BlockBytes, kBlocks>& bytes) {
  LiveBytes all;
  for (const LiveSet& live_set : live_sets) all.include(live_of(live_set, bytes));
  return all;
}

// 3 layers of 10 bytes each are kept; a pass works with 5 forward, 7 backward.
TEST(Peak, IsThatOfTheFirstBackwardPass) {
  const Strategy strategy = plan::tiny_strategy(1, 1);
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 3), strategy);
  const auto live_sets = live_sets_of(plan, plan.roles.front());
  std::array<BlockBytes, kBlocks> bytes{};
  bytes[1] = {.kept = 10_B, .work = {5_B, 7_B}};
  EXPECT_EQ(largest(live_sets, bytes).most, 37_B);
  EXPECT_EQ(largest(live_sets, bytes).least, 37_B);
  // With its last task off the compute stream, too: a unit waits for what ends the one before it.
  bytes[1].has_tail = {false, true};
  EXPECT_EQ(largest(live_sets, bytes).most, 37_B);
  EXPECT_EQ(largest(live_sets, bytes).least, 37_B);
}

// The first stage of two, four micro-batches: behind the backward pass of the first one's embedding
// comes the forward pass of the third, which does not wait for what ends it. Its work and what was
// kept outlive it, unless the host launches the next one too late.
TEST(Peak, HasWhatOutlivesThePassOfAnotherMicroBatch) {
  const Strategy strategy = plan::tiny_strategy(2, 4);
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 2), strategy);
  const auto live_sets = live_sets_of(plan, plan.roles.front());
  std::array<BlockBytes, kBlocks> bytes{};
  bytes[0] = {.kept = 10_B, .work = {5_B, 7_B}};
  EXPECT_EQ(largest(live_sets, bytes).most, 20_B + 7_B);
  bytes[0].has_tail = {false, true};
  EXPECT_EQ(largest(live_sets, bytes).most, 20_B + 5_B + 17_B);
  EXPECT_EQ(largest(live_sets, bytes).least, 20_B + 7_B);
}

// Of gathered parameters, those of the pass itself; of gradients, none.
TEST(Peak, LeavesOutWhatIsForOtherPassesWhereHostsAreLate) {
  std::array<BlockBytes, kBlocks> bytes{};
  bytes[1] = {.whole = 100_B, .work = {5_B}};
  bytes[1].gradient[0] = 1000_B;
  LiveSet live_set{.pass = {.block = 1}};
  live_set.whole[1] = 1;
  EXPECT_FALSE(depends_on_others(live_set));
  EXPECT_EQ(live_of(live_set, bytes).least, live_of(live_set, bytes).most);
  live_set.whole[1] = 2;
  EXPECT_TRUE(depends_on_others(live_set));
  live_set.gradient[0][1] = 1;
  EXPECT_EQ(live_of(live_set, bytes).most, 1205_B);
  EXPECT_EQ(live_of(live_set, bytes).least, 105_B);
}

}  // namespace
}  // namespace foreshard::search
