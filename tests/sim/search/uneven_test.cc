// Searches whose answer has unequal stages or an order of ranks of its own.
#include <nlohmann/json.hpp>

#include "tests/sim/search/written_study.h"
#include "tests/test.h"

#include "sim/search/cuts.h"
#include "sim/search/search.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {
namespace {

constexpr const char* kWideHead =
    "{name: nineteen, layers: 19, hidden: 4096, heads: 32, ffn: 16384, vocabulary: 256000, "
    "sequence: 2048, tied_embeddings: false}";

// tp2 pp2 dp4 with ZeRO 1 and layers [11, 29] takes about 2.1 s; equal stages 3.0 s.
TEST(UnevenStages, GiveTheFasterOfTwoNodesMoreLayers) {
  const study::LoadedStudy study =
      study_of(kMixed, "llama2-13b", "{global_batch: 32, framework: megatron-lm}");
  const auto found = value_of(run_search(study, {.simulate = 10, .certify = 0}));
  // Of those that divide the batch equally; one that does not may be better still.
  const auto equal = std::ranges::find_if(
      found.simulated, [](const Simulated& one) { return one.strategy.batch_shares.empty(); });
  ASSERT_NE(equal, found.simulated.end());
  EXPECT_LE(found.simulated.front().step, equal->step);
  const Simulated& best = *equal;
  EXPECT_TRUE(best.fits);
  EXPECT_LE(best.step, 2.1_s) << in_words(best.strategy);
  ASSERT_GT(best.strategy.layers_per_stage.size(), 1U) << in_words(best.strategy);
  EXPECT_LT(best.strategy.layers_per_stage.front(), best.strategy.layers_per_stage.back());
  RecordProperty("best", in_words(best.strategy));
}

// Behind the last stage is the product with a vocabulary of 256,000: it has fewer layers.
TEST(UnevenStages, LeaveRoomForTheHead) {
  const study::LoadedStudy study =
      study_of("two-dgx-h100", kWideHead, "{global_batch: 64, framework: megatron-lm}");
  SearchSpace space{.tensor_parallel = {4}, .pipeline_parallel = {4}, .virtual_stages = {1}};
  const auto found = value_of(run_search(study, {.space = space, .simulate = 10, .certify = 0}));
  EXPECT_EQ(found.misfits.count("pipeline_parallel"), 0U);
  const Strategy& best = found.simulated.front().strategy;
  ASSERT_EQ(best.layers_per_stage.size(), 4U);
  EXPECT_LT(best.layers_per_stage.back(), best.layers_per_stage.front()) << in_words(best);
  EXPECT_GE(best.layers_per_stage[2], best.layers_per_stage[0]) << in_words(best);
}

// Four nodes with 8 x 200 Gbit/s share gradients over all of them; with 8 x 10 Gbit/s, stages lie
// across the nodes, and the ranks that share gradients inside. Where sizes are given, the order of
// the study, which has pipelines inside and data across, gives way to the other one.
TEST(Placement, FollowsTheNetwork) {
  const auto study_with = [](const std::string& bandwidth) {
    return study_of(
        "{name: four, nodes: 4, node: {extends: dgx-a100-80gb, nics: {count: 8, "
        "bandwidth: " +
            bandwidth + "}}, fabric: {kind: single-switch}}",
        "llama2-13b",
        "{global_batch: 64, framework: megatron-lm, rank_order: [tensor, pipeline, "
        "data]}");
  };
  const study::LoadedStudy slow = study_with("10 Gbit/s");
  const SearchSpace space{.micro_batch = {1, 2}, .recompute = {Recompute::kNone}};
  const SearchOptions options{.space = space, .simulate = 6, .certify = 0, .front = 0};
  const auto on_fast = run_search(study_with("200 Gbit/s"), options);
  const auto on_slow = run_search(slow, options);
  ASSERT_TRUE(on_fast && on_slow);
  EXPECT_EQ(on_fast->simulated.front().strategy.pipeline_parallel, 1);
  const Strategy& best = on_slow->simulated.front().strategy;
  EXPECT_EQ(best.pipeline_parallel, 4) << in_words(best);
  EXPECT_EQ(best.rank_order, (std::vector<std::string>{"tensor", "data", "pipeline"}));

  SearchOptions given = options;
  given.space.tensor_parallel = {2};
  given.space.pipeline_parallel = {4};
  given.space.data_parallel = {4};
  given.space.uneven = false;
  const auto found = value_of(run_search(slow, given));
  EXPECT_EQ(found.simulated.front().strategy.rank_order.back(), "pipeline");
  given.space.rank_order = {{"tensor", "pipeline", "data"}};
  const auto other = value_of(run_search(slow, given));
  EXPECT_GT(other.simulated.front().step / found.simulated.front().step, 1.05);
  EXPECT_THAT(in_words(other.simulated.front().strategy),
              HasSubstr("ranks by tensor, pipeline, data"));
}

// DualPipe's successor on 8 stages of two pieces, tokens to 64 ranks by deepep beside other passes:
// the layout of the report is one of the space, and ranked.
TEST(DeepSeekV3, HasItsPublishedLayoutInTheSpace) {
  const auto study =
      value_of(study::load_study({.study = "deepseek-v3-h800-2048"}, shipped_options()));
  SearchOptions options{.simulate = 1, .certify = 0, .front = 0};
  options.space = {.tensor_parallel = {1},
                   .pipeline_parallel = {8},
                   .data_parallel = {256},
                   .expert_parallel = {64},
                   .micro_batch = {1},
                   .virtual_stages = {2},
                   .zero_stage = {1},
                   .recompute = {Recompute::kSelective}};
  options.space.rank_order = {study.strategy.rank_order};
  options.space.schedule = {"dualpipe-v"};
  options.space.overlap_experts = true;
  options.space.layers_per_stage = study.strategy.layers_per_stage;
  const auto space = enumerate(options.space, study.strategy, study.model, study.pool.size());
  ASSERT_EQ(space.candidates.size(), 1U);
  EXPECT_EQ(knobs_of(space.candidates.front()), knobs_of(study.strategy));
  const auto found = value_of(run_search(study, options));
  ASSERT_EQ(found.simulated.size(), 1U);
  const Simulated& one = found.simulated.front();
  EXPECT_TRUE(one.fits);
  EXPECT_NEAR(one.estimate.step / one.step, 1, 0.15);
  EXPECT_LE(one.estimate.bound, one.step);
}

// Of all cuts of a strategy in two, none is simulated as faster than those that are tried.
TEST(UnevenStages, AreNotBeatenByAnyOtherCut) {
  const study::LoadedStudy study =
      study_of(kMixed, "llama2-13b", "{global_batch: 32, framework: megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const sim::SimulatedCost cost(cluster, study.communication);
  Estimator estimator(study.model, cluster, study.pool.devices, cost);
  Cutter cutter(study.model, estimator);
  Strategy strategy = study.strategy;
  strategy.tensor_parallel = 2;
  strategy.pipeline_parallel = 2;
  strategy.data_parallel = 4;
  strategy.zero_stage = 1;
  const auto step_of = [&](const Strategy& one) -> std::optional<Seconds> {
    auto program = lower::lower(study.model, one, {});
    if (!program) return std::nullopt;
    const auto simulated =
        sim::simulate(cluster, study::with_launch_times(*std::move(program), cluster),
                      study.communication, {.critical_path = false});
    return simulated ? std::optional(simulated->step) : std::nullopt;
  };
  std::optional<Seconds> tried;
  for (const Strategy& one : cutter.with_cuts(strategy, study.pool.size())) {
    const auto step = step_of(one);
    if (step && (!tried || *step < *tried)) tried = step;
  }
  ASSERT_TRUE(tried);
  for (std::int64_t first = 8; first <= 20; ++first) {
    strategy.layers_per_stage = {first, study.model.layers - first};
    EXPECT_GE(value_of(step_of(strategy)), *tried * (1 - 0.01)) << first;
  }
}

}  // namespace
}  // namespace foreshard::search
