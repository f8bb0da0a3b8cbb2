#include "sim/search/cuts.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/test.h"

namespace foreshard::search {
namespace {

// Stages whose layers take so many seconds each; no ends, and memory for all.
CutProblem problem_of(std::int64_t layers, const std::vector<double>& layer_times) {
  CutProblem problem;
  problem.kind_of_layer.assign(static_cast<std::size_t>(layers), 0);
  for (const double time : layer_times)
    problem.stages.push_back(
        {.layer = {Seconds::from_base(time)}, .ends = Seconds{}, .most = layers});
  return problem;
}

// 19 layers of 1 s, an embedding of 0.1 s and a head of 3 s: with 6 s at most, the last stage has
// 3 layers and the others 16. Of (5, 5, 6), (5, 6, 5) and (6, 5, 5), the front has the fewest.
TEST(NearBestCuts, CountsTheHead) {
  CutProblem problem = problem_of(19, {1, 1, 1, 1});
  problem.stages.front().ends = 0.1_s;
  problem.stages.back().ends = 3_s;
  const auto cuts = near_best_cuts(problem);
  ASSERT_FALSE(cuts.empty());
  EXPECT_THAT(cuts.front(), ElementsAre(5, 5, 6, 3));
  EXPECT_EQ(longest_stage(problem, cuts.front()), 6_s);
  EXPECT_EQ(longest_stage(problem, {5, 5, 5, 4}), 7_s);
}

// 40 layers, of which one stage takes 29 s each for 11: 40 / (1 + 29 / 11) = 11.
TEST(NearBestCuts, GivesFastDevicesMoreLayers) {
  EXPECT_THAT(near_best_cuts(problem_of(40, {29, 11})).front(), ElementsAre(11, 29));
}

// The last 4 of 8 layers take 3 s, the others 1: 16 s are 8 and 8 only behind the sixth... 1 1 1 1
// 3 is 7 s, 3 3 3 is 9 s; one layer more in front would be 10 and 6.
TEST(NearBestCuts, CountsKindsOfLayers) {
  CutProblem problem = problem_of(8, {1, 1});
  problem.kind_of_layer = {0, 0, 0, 0, 1, 1, 1, 1};
  for (CutProblem::Stage& stage : problem.stages) stage.layer = {1_s, 3_s};
  EXPECT_THAT(near_best_cuts(problem).front(), ElementsAre(5, 3));
}

TEST(NearBestCuts, LeavesNoStageWithMoreThanItHasMemoryFor) {
  CutProblem problem = problem_of(12, {1, 1, 1});
  problem.stages.front().most = 2;
  EXPECT_THAT(near_best_cuts(problem).front(), ElementsAre(2, 5, 5));
  problem.stages[1].most = problem.stages[2].most = 4;
  EXPECT_THAT(near_best_cuts(problem), IsEmpty());
}

TEST(NearBestCuts, HasNoneOfMoreStagesThanLayers) {
  EXPECT_THAT(near_best_cuts(problem_of(2, {1, 1, 1})), IsEmpty());
}

// Two stages of two chunks, 10 layers, a head of 2 s on the last piece, which the second stage has:
// 6 and 4 + 2.
TEST(NearBestCuts, MovesLayersBetweenChunks) {
  CutProblem problem = problem_of(10, {1, 1});
  problem.chunks = 2;
  problem.stages.back().ends = 2_s;
  const Cut cut = near_best_cuts(problem).front();
  ASSERT_EQ(cut.size(), 4U);
  EXPECT_EQ(cut[0] + cut[2], 6);
  EXPECT_EQ(longest_stage(problem, cut), 6_s);
  problem.placement = schedule::StagePlacement::kV;  // the head is on the first stage
  EXPECT_EQ(longest_stage(problem, {3, 2, 2, 3}), 6_s);
}

// The least longest stage of all cuts.
std::optional<Seconds> best_of_all(const CutProblem& problem) {
  std::optional<Seconds> best;
  const auto layers = std::ssize(problem.kind_of_layer);
  Cut cut;
  const auto visit = [&](auto& self, std::int64_t left) -> void {
    const std::size_t stage = cut.size();
    if (stage == problem.stages.size()) {
      if (left != 0) return;
      const Seconds time = longest_stage(problem, cut);
      if (!best || time < *best) best = time;
      return;
    }
    for (std::int64_t n = 1; n <= std::min(left, problem.stages[stage].most); ++n) {
      cut.push_back(n);
      self(self, left - n);
      cut.pop_back();
    }
  };
  visit(visit, layers);
  return best;
}

// The third layer is dear for all stages but the last one: the first ends before what it could
// hold, so that the second has a layer too.
TEST(NearBestCuts, LeaveADearLayerToTheStageThatCanHoldIt) {
  const CutProblem problem{.kind_of_layer = {0, 0, 1, 0},
                           .stages = {{.layer = {1_s, 9_s}, .ends = {}, .most = 8},
                                      {.layer = {1_s, 9_s}, .ends = {}, .most = 8},
                                      {.layer = {5_s, 2_s}, .ends = {}, .most = 8}}};
  for (const Cut& cut : near_best_cuts(problem)) EXPECT_EQ(cut, (Cut{1, 1, 2}));
  EXPECT_EQ(near_best_cuts(problem).size(), 1U);
}

RC_GTEST_PROP(NearBestCuts, AreAsShortAsTheBestOfAll, ()) {
  const auto stages = *rc::gen::inRange(1, 6);
  const auto layers = *rc::gen::inRange(1, 12);
  CutProblem problem;
  for (int i = 0; i < layers; ++i) problem.kind_of_layer.push_back(*rc::gen::inRange(0, 2));
  for (int i = 0; i < stages; ++i)
    problem.stages.push_back({.layer = {Seconds::from_base(*rc::gen::inRange(1, 9)),
                                        Seconds::from_base(*rc::gen::inRange(1, 9))},
                              .ends = Seconds::from_base(*rc::gen::inRange(0, 9)),
                              .most = *rc::gen::inRange(1, 8)});
  const auto best = best_of_all(problem);
  const auto cuts = near_best_cuts(problem);
  RC_ASSERT(cuts.empty() == !best.has_value());
  for (const Cut& cut : cuts) {
    RC_ASSERT(std::accumulate(cut.begin(), cut.end(), std::int64_t{0}) == layers);
    RC_ASSERT(longest_stage(problem, cut) == *best);
    for (std::size_t s = 0; s < cut.size(); ++s)
      RC_ASSERT(cut[s] >= 1 && cut[s] <= problem.stages[s].most);
  }
}

}  // namespace
}  // namespace foreshard::search
