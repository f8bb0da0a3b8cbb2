// Step plans as text, by hand first.

#include "tests/golden/golden.h"
#include "tests/strategies/plan/tiny_parts.h"
#include "tests/test.h"

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {
namespace {

TEST(StepPlan, OfOneStageIsForwardBackwardOptimizer) {
  const Strategy strategy = tiny_strategy(1, 3);
  EXPECT_EQ(to_text(planned(tiny_parts(strategy, 2), strategy)),
            "tiny\n"
            "states over data(1): nothing is cut\n"
            "stage 0: embedding, layers 0..1, head\n"
            " F0\n"
            "   0 forward embedding, layers 0..1, head +kept\n"
            " B0\n"
            "   1 backward head, layers 1..0, embedding -kept\n"
            " F1, B1 to F2, B2: as F0, B0\n"
            " end\n"
            "   6 optimizer < 5\n");
}

// The last micro-batch's backward pass is divided, so that each unit's gradients are reduced beside
// the next unit; the first forward pass is divided, so that each unit waits for its own parameters.
TEST(StepPlan, Of1F1BWithASharedOptimizer) {
  Strategy strategy = tiny_strategy(2, 2);
  set_data(strategy, 4, 1);
  strategy.framework.value.overlap_parameter_gather = true;
  strategy.framework.value.pipeline_transfers = PipelineTransfers::kOverlapped;
  EXPECT_EQ(to_text(planned(tiny_parts(strategy, 2), strategy)),
            "tiny\n"
            "states over data(4): cut optimizer; gather at the start of the step; reduce in the "
            "last micro-batch\n"
            "stage 0: embedding, layer 0\n"
            "   0 gather embedding\n"
            "   1 gather layer 0\n"
            " F0\n"
            "   2 forward embedding < 0 +kept\n"
            "   3 forward layer 0 < 1 +kept\n"
            "   4 send layer_out -> stage 1 < 3\n"
            " F1\n"
            "   5 forward embedding, layer 0 +kept\n"
            "   6 send layer_out -> stage 1 < 5\n"
            " B0\n"
            "   7 receive d.layer_out <- stage 1\n"
            "   8 backward layer 0, embedding < 7 -kept\n"
            " B1\n"
            "   9 receive d.layer_out <- stage 1\n"
            "  10 backward layer 0 < 9 -kept\n"
            "  11 reduce layer 0 < 10\n"
            "  12 backward embedding -kept\n"
            "  13 reduce embedding < 12\n"
            " end\n"
            "  14 optimizer < 12 13\n"
            "stage 1: layer 1, head\n"
            "   0 gather layer 1\n"
            "   1 gather head\n"
            " F0\n"
            "   2 receive layer_out <- stage 0\n"
            "   3 forward layer 1 < 0 2 +kept\n"
            "   4 forward head < 1 +kept\n"
            " B0\n"
            "   5 backward head, layer 1 -kept\n"
            "   6 send d.layer_out -> stage 0 < 5\n"
            " F1\n"
            "   7 receive layer_out <- stage 0\n"
            "   8 forward layer 1, head < 7 +kept\n"
            " B1\n"
            "   9 backward head -kept\n"
            "  10 reduce head < 9\n"
            "  11 backward layer 1 -kept\n"
            "  12 reduce layer 1 < 11\n"
            "  13 send d.layer_out -> stage 0 < 11\n"
            " end\n"
            "  14 optimizer < 11 12\n");
}

// ZB-H1 of two stages and micro-batches: F0 F1 I0 W0 I1 W1, and F0 I0 F1 I1 W0 W1. The embedding,
// through which nothing flows back, runs whole beside the gradients of inputs. Gradients are
// reduced behind those of the weights.
TEST(StepPlan, OfZeroBubbleHoldsWhatWeightGradientsRead) {
  Strategy strategy = tiny_strategy(2, 2);
  set_data(strategy, 2, 0);
  strategy.schedule = "zb-h1";
  EXPECT_EQ(to_text(planned(tiny_parts(strategy, 2), strategy)),
            "tiny\n"
            "states over data(2): nothing is cut; reduce in the last micro-batch\n"
            "stage 0: embedding, layer 0\n"
            " F0\n"
            "   0 forward embedding +kept\n"
            "   1 forward layer 0 +kept +kept-for-weight\n"
            "   2 send layer_out -> stage 1 < 1\n"
            " F1: as F0\n"
            " I0\n"
            "   6 receive d.layer_out <- stage 1\n"
            "   7 backward-input layer 0 < 6 +held -kept\n"
            "   8 backward embedding -kept\n"
            " W0\n"
            "   9 backward-weight layer 0 < 7 -kept-for-weight -held\n"
            " I1\n"
            "  10 receive d.layer_out <- stage 1\n"
            "  11 backward-input layer 0 < 10 +held -kept\n"
            "  12 backward embedding -kept\n"
            "  13 reduce embedding < 12\n"
            " W1\n"
            "  14 backward-weight layer 0 < 11 -kept-for-weight -held\n"
            "  15 reduce layer 0 < 14\n"
            " end\n"
            "  16 optimizer < 14 15\n"
            "stage 1: layer 1, head\n"
            " F0\n"
            "   0 receive layer_out <- stage 0\n"
            "   1 forward layer 1, head < 0 +kept +kept-for-weight\n"
            " I0\n"
            "   2 backward-input head, layer 1 +held -kept\n"
            "   3 send d.layer_out -> stage 0 < 2\n"
            " F1, I1: as F0, I0\n"
            " W0\n"
            "   8 backward-weight head, layer 1 < 2 -kept-for-weight -held\n"
            " W1\n"
            "   9 backward-weight head < 6 -kept-for-weight -held\n"
            "  10 reduce head < 9\n"
            "  11 backward-weight layer 1 -kept-for-weight -held\n"
            "  12 reduce layer 1 < 11\n"
            " end\n"
            "  13 optimizer < 11 12\n");
}

// Pieces 0 and 3 on stage 0, 1 and 2 on stage 1: there the V turns, and nothing is sent. Of the
// three crossings two are sent over, forward and backward.
TEST(StepPlan, OfAVSendsNothingWhereItTurns) {
  Strategy strategy = tiny_strategy(2, 3);
  strategy.schedule = "zb-v";
  strategy.virtual_stages = 2;
  const StepPlan plan = planned(tiny_parts(strategy, 4), strategy);
  EXPECT_EQ(plan.roles[0].chunks[1].piece, 3);
  EXPECT_EQ(plan.roles[1].chunks[1].piece, 2);
  EXPECT_TRUE(plan.crossings[1].is_local());
  EXPECT_TRUE(plan.crossings[2].returns);
  std::int64_t sends = 0;
  for (const Role& role : plan.roles)
    sends += std::ranges::count(role.actions, ActionKind::kSend, &Action::kind);
  EXPECT_EQ(sends, 3 * 2 * 2);
}

// Two units are whole at a time: layer 0 is gathered beside the embedding, and layer 1 when the
// embedding has ended.
TEST(StepPlan, OfFullyShardedParametersGathersOneLayerAhead) {
  Strategy strategy = tiny_strategy(1, 1);
  set_data(strategy, 2, 3);
  strategy.mode = Mode::kForward;
  EXPECT_EQ(to_text(planned(tiny_parts(strategy, 3), strategy)),
            "tiny\n"
            "states over data(2): cut parameters, gradients, optimizer; gather before use\n"
            "stage 0: embedding, layers 0..2, head\n"
            " F0\n"
            "   0 gather embedding +whole\n"
            "   1 gather layer 0 +whole\n"
            "   2 forward embedding < 0 -whole\n"
            "   3 gather layer 1 < 2 +whole\n"
            "   4 forward layer 0 < 1 -whole\n"
            "   5 gather layer 2 < 4 +whole\n"
            "   6 forward layer 1 < 3 -whole\n"
            "   7 gather head < 6 +whole\n"
            "   8 forward layer 2 < 5 -whole\n"
            "   9 forward head < 7 -whole\n");
}

// As FSDP2 runs a step: forward the next unit is asked for behind the pass of the one before, and
// backward ahead of it, in the order of the passes. The head stays whole for its backward pass,
// ahead of which the last layer is asked for: no gather waits for the head's reduction.
TEST(StepPlan, OfFullyShardedParametersGoesThroughAllUnits) {
  Strategy strategy = tiny_strategy(1, 1);
  set_data(strategy, 2, 3);
  strategy.framework.value.shards.forward_prefetch = Prefetch::kPost;
  EXPECT_EQ(to_text(planned(tiny_parts(strategy, 2), strategy)),
            "tiny\n"
            "states over data(2): cut parameters, gradients, optimizer; gather before use; reduce "
            "every micro-batch\n"
            "stage 0: embedding, layers 0..1, head\n"
            " F0\n"
            "   0 gather embedding +whole\n"
            "   1 forward embedding < 0 +kept -whole\n"
            "   2 gather layer 0 +whole\n"
            "   3 forward layer 0 < 2 +kept -whole\n"
            "   4 gather layer 1 < 1 +whole\n"
            "   5 forward layer 1 < 4 +kept -whole\n"
            "   6 gather head < 3 +whole\n"
            "   7 forward head < 6 +kept\n"
            " B0\n"
            "   8 gather layer 1 < 5 +whole\n"
            "   9 backward head < 6 7 +gradient -kept -whole\n"
            "  10 reduce head < 9 -gradient\n"
            "  11 gather layer 0 < 9 +whole\n"
            "  12 backward layer 1 < 8 9 +gradient -kept -whole\n"
            "  13 reduce layer 1 < 12 -gradient\n"
            "  14 gather embedding < 12 +whole\n"
            "  15 backward layer 0 < 10 11 12 +gradient -kept -whole\n"
            "  16 reduce layer 0 < 15 -gradient\n"
            "  17 backward embedding < 13 14 15 +gradient -kept -whole\n"
            "  18 reduce embedding < 17 -gradient\n"
            " end\n"
            "  19 optimizer < 17 18\n");
}

TEST(StepPlan, SaysWhereTheHostAsksForParameters) {
  Strategy strategy = tiny_strategy(1, 1);
  set_data(strategy, 2, 3);
  strategy.framework.value.shards.forward_prefetch = Prefetch::kNone;
  strategy.framework.value.shards.backward_prefetch = Prefetch::kPost;
  expect_golden("plans/zero-3.txt", to_text(planned(tiny_parts(strategy, 3), strategy)));
}

TEST(StepPlan, OfAnInterleavedPipelineReceivesOneSlotAhead) {
  Strategy strategy = tiny_strategy(2, 4);
  strategy.schedule = "interleaved";
  strategy.virtual_stages = 2;
  strategy.framework.value.pipeline_host_sync = true;
  expect_golden("plans/interleaved.txt", to_text(planned(tiny_parts(strategy, 4), strategy)));
}

// Hosts that wait inside passes issue a receive behind the send of the slot before the last.
TEST(StepPlan, OfARingWhoseHostsWaitInsidePostsReceives) {
  Strategy strategy = tiny_strategy(2, 4);
  strategy.schedule = "interleaved";
  strategy.virtual_stages = 2;
  PlannedModel parts = tiny_parts(strategy, 4);
  for (Block& block : parts.blocks) block.host_waits = true;
  expect_golden("plans/interleaved_waiting_hosts.txt", to_text(planned(parts, strategy)));
}

TEST(StepPlan, OfBlockingTransfersWaitsForSends) {
  Strategy strategy = tiny_strategy(2, 2);
  strategy.framework.value.pipeline_host_sync = true;
  strategy.framework.value.pass_host_sync = true;
  expect_golden("plans/blocking.txt", to_text(planned(tiny_parts(strategy, 2), strategy)));
}

// Where only interleaved schedules overlap transfers, others block and let hosts wait, but for a
// CUDA graph of the whole step.
TEST(StepPlan, OfTransfersThatOverlapIfInterleaved) {
  Strategy strategy = tiny_strategy(2, 2);
  const auto text = [&](PipelineTransfers transfers) {
    strategy.framework.value.pipeline_transfers = transfers;
    return to_text(planned(tiny_parts(strategy, 4), strategy));
  };
  strategy.framework.value.pipeline_host_sync = true;
  const std::string blocking = text(PipelineTransfers::kBlocking);
  EXPECT_THAT(blocking, HasSubstr("sync"));
  EXPECT_EQ(text(PipelineTransfers::kOverlappedIfInterleaved), blocking);
  EXPECT_THAT(text(PipelineTransfers::kOverlapped), Not(HasSubstr("sync")));

  strategy.cuda_graphs = {Capture::kStep};
  EXPECT_THAT(text(PipelineTransfers::kBlocking), Not(HasSubstr("sync")));
  strategy.cuda_graphs = {};

  strategy.schedule = "interleaved";
  strategy.virtual_stages = 2;
  EXPECT_EQ(text(PipelineTransfers::kOverlappedIfInterleaved),
            text(PipelineTransfers::kOverlapped));
}

// One stage reduces the shared table once, when the embedding's backward pass has ended; its
// gradient begins with the head's.
TEST(StepPlan, OfATiedEmbeddingInOneStage) {
  Strategy strategy = tiny_strategy(1, 1);
  set_data(strategy, 2, 2);
  PlannedModel parts = tiny_parts(strategy, 1);
  parts.tie = TiedWeights{.first_unit = 0, .others = {2, 1}, .over = {1}, .elements = 40};
  const StepPlan plan = planned(parts, strategy);
  expect_golden("plans/tied.txt", to_text(plan));
  EXPECT_EQ(plan.roles.front().elements(), 50 + 100 + 10);
}

TEST(StepPlan, OfATiedEmbeddingOnTwoStagesAddsUpBothCopies) {
  Strategy strategy = tiny_strategy(3, 1);
  PlannedModel parts = tiny_parts(strategy, 3);
  parts.tie = TiedWeights{.first_unit = 0, .others = {4, 1}, .over = {1}, .elements = 40};
  parts.blocks[1].groups.push_back({.over = {1}, .also_partial = {0}, .elements = 7});
  const StepPlan plan = planned(parts, strategy);
  expect_golden("plans/tied-3-stages.txt", to_text(plan));
  EXPECT_EQ(plan.roles.front().elements(), 50 + 107);
  EXPECT_EQ(plan.roles.back().elements(), 107 + 50);
}

// A table of 40 that a layer and the head read, too (a module that predicts one more token, and a
// tied output projection): each role has it once, reduced with the first of its units there, and
// the last one is the first to add to it.
TEST(StepPlan, OfATableThatSeveralUnitsBehindRead) {
  Strategy one = tiny_strategy(1, 1);
  set_data(one, 2, 2);
  PlannedModel parts = tiny_parts(one, 1);
  parts.tie = TiedWeights{.first_unit = 0, .others = {1, 2}, .over = {1}, .elements = 40};
  const StepPlan on_one = planned(parts, one);
  EXPECT_EQ(on_one.roles.front().elements(), 50 + 60 + 10);
  std::map<std::int32_t, std::pair<std::int64_t, std::int32_t>> buckets;  // by first unit
  for (const Bucket& bucket : on_one.buckets)
    if (bucket.opened_by != bucket.units.front().first)
      buckets[bucket.units.front().first] = {bucket.elements, bucket.opened_by};
  EXPECT_EQ(buckets, (decltype(buckets){{0, {50, 2}}}));

  Strategy two = tiny_strategy(2, 1);
  set_data(two, 2, 2);
  parts = tiny_parts(two, 2);
  parts.tie = TiedWeights{.first_unit = 0, .others = {2, 2}, .over = {1}, .elements = 40};
  const StepPlan on_two = planned(parts, two);
  EXPECT_EQ(on_two.roles.front().elements(), 50 + 100);
  EXPECT_EQ(on_two.roles.back().elements(), 100 + 10);
  buckets.clear();
  for (const Bucket& bucket : on_two.buckets)
    if (bucket.opened_by != bucket.units.front().first)
      buckets[bucket.units.front().first] = {bucket.elements, bucket.opened_by};
  EXPECT_EQ(buckets, (decltype(buckets){{2, {100, 3}}}));
  EXPECT_EQ(std::ranges::count_if(
                on_two.copies, [](const GradientCopies& copies) { return copies.elements == 40; }),
            1);
}

TEST(StepPlan, RefusesWhatTheScheduleDoesNotDo) {
  Strategy strategy = tiny_strategy(2, 3);
  strategy.schedule = "interleaved";
  strategy.virtual_stages = 2;
  EXPECT_EQ(error_of(make_plan(tiny_parts(strategy, 4), strategy)).code,
            Error::Code::kInvalidInput);
}

// 4,000 slots are a few lines, because they repeat.
TEST(StepPlan, IsShortAsText) {
  const Strategy strategy = tiny_strategy(4, 2000);
  const std::string text = to_text(planned(tiny_parts(strategy, 8), strategy));
  EXPECT_LT(std::ranges::count(text, '\n'), 100) << text;
}

}  // namespace
}  // namespace foreshard::plan
