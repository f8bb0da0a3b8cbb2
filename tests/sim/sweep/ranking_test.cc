// Rank, fronts and goal, by hand and against an enumeration of all pairs.
#include "sim/sweep/ranking.h"

#include "tests/test.h"

namespace foreshard::sweep {
namespace {

// A training of 1,000 steps.
Outcome runs(double step_s, double usd, double headroom_gib) {
  StepFigures step;
  step.step = step_s * 1_s;
  step.tokens = 1e6;
  step.samples = 1e3;
  step.usd = usd / 1000 * 1_USD;
  step.energy = usd * 1_J;
  step.training_steps = 1000;
  step.capacity = 80_GiB;
  step.peak = 80_GiB - headroom_gib * 1_GiB;
  Outcome outcome;
  outcome.status = PointStatus::kOk;
  outcome.figures = step;
  return outcome;
}

Outcome lacks(Bytes missing) {
  Outcome outcome;
  outcome.status = PointStatus::kInfeasible;
  outcome.missing = missing;
  return outcome;
}

Results results_of(const std::vector<Outcome>& outcomes, std::optional<Goal> goal = {}) {
  Results results;
  results.question.axes.push_back({.name = "case", .values = {}});
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    results.question.axes[0].values.push_back(std::to_string(i));
    results.outcomes.emplace_back(outcomes[i]);
  }
  results.question.train = "1B tokens";
  results.question.goal = goal;
  if (goal) results.question.rank = goal->minimise;
  return results;
}

TEST(Ranking, ByHand) {
  // 0 is fastest, 2 cheapest, 1 between; 3 is beaten by 1 but for its room; 4 by all.
  const Results results = results_of(
      {runs(1, 900, 1), runs(2, 500, 1), runs(4, 300, 1), runs(3, 600, 9), runs(9, 990, 1)});
  const Ranking ranking = ranking_of(results);
  EXPECT_THAT(ranking.ranked, ElementsAre(0, 1, 3, 2, 4));
  EXPECT_THAT(ranking.on_front, ElementsAre(true, true, true, false, false));
  EXPECT_THAT(ranking.on_room_front, ElementsAre(true, true, true, true, false));
  EXPECT_FALSE(ranking.closest);
}

TEST(Ranking, WithoutAPriceThereIsNoFront) {
  Outcome free = runs(1, 1, 1);
  free.figures->usd.reset();
  Results results = results_of({free, runs(2, 5, 1)});
  results.question.rank = Measure::kUsd;
  const Ranking ranking = ranking_of(results);
  EXPECT_THAT(ranking.ranked, ElementsAre(1, 0));
  EXPECT_THAT(ranking.on_front, ElementsAre(false, true));
}

// 10 % around 2 s and 1 s: [1.8, 2.2] and [0.9, 1.1] are apart, [0.9, 1.1] and 1.15 s' are not.
Outcome uncertain(double step_s, double usd) {
  Outcome outcome = runs(step_s, usd, 1);
  outcome.figures->low = 0.9 * outcome.figures->step;
  outcome.figures->high = 1.1 * outcome.figures->step;
  return outcome;
}

TEST(Ranking, CountsWhatAMachineMayOrderOtherwise) {
  Results results = results_of({uncertain(1, 100), uncertain(1.15, 300), uncertain(2, 105)});
  EXPECT_EQ(ranking_of(results).overlapping, 1);
  // Money is as far off as time: [90, 110], [94.5, 115.5] and [270, 330].
  results.question.rank = Measure::kUsd;
  EXPECT_EQ(ranking_of(results).overlapping, 1);
  const auto interval =
      interval_of(figures_of(*results.outcomes[2], Work::kTraining), Measure::kUsd);
  EXPECT_NEAR(interval.low, 94.5, 1e-9);
  EXPECT_NEAR(interval.high, 115.5, 1e-9);
}

TEST(Ranking, NamesOptionsWithoutAPrice) {
  Outcome free = runs(1, 1, 1);
  free.figures->usd.reset();
  Results results = results_of({free, runs(2, 5, 1)});
  EXPECT_THAT(ranking_of(results).unknown, IsEmpty());
  EXPECT_THAT(ranking_of(results).off_front, ElementsAre(0));
  results.question.rank = Measure::kUsd;
  EXPECT_THAT(ranking_of(results).unknown, ElementsAre(0));
  // Where nothing has a price there is no front that could leave it out.
  EXPECT_THAT(ranking_of(results_of({free})).off_front, IsEmpty());
}

// 1,000 steps of 1 s [0.9, 1.1]: a goal of 950 s is missed, but may be met; one of 1,050 s is met,
// but may be missed; one of 1,200 s is met for certain.
TEST(Goal, SaysWhereItsLimitIsWithinAnInterval) {
  const auto verdict = [](double within) {
    const Goal goal{.train = {}, .within = within * 1_s, .budget = {}, .minimise = Measure::kUsd};
    return *ranking_of(results_of({uncertain(1, 100)}, goal)).verdict;
  };
  EXPECT_TRUE(verdict(950).missed.at(0).may_meet);
  EXPECT_FALSE(verdict(850).missed.at(0).may_meet);
  EXPECT_TRUE(verdict(1050).may_miss);
  EXPECT_FALSE(verdict(1200).may_miss);
}

TEST(Ranking, NamesTheClosestWhereNothingRuns) {
  EXPECT_EQ(ranking_of(results_of({lacks(9_GiB), lacks(2_GiB), lacks(5_GiB)})).closest, 1);
}

// 1,000 steps of 86.4 s are a day.
TEST(Goal, TakesTheCheapestThatIsInTime) {
  const Goal goal{.train = {}, .within = 86400_s, .budget = {}, .minimise = Measure::kUsd};
  const Ranking ranking = ranking_of(
      results_of({runs(50, 900, 1), runs(86, 500, 1), runs(87, 300, 1), runs(100, 100, 1)}, goal));
  ASSERT_TRUE(ranking.verdict);
  EXPECT_THAT(ranking.verdict->met, ElementsAre(1, 0));
  ASSERT_EQ(ranking.verdict->missed.size(), 2U);
  EXPECT_EQ(ranking.verdict->missed[0].point, 2U);
  EXPECT_NEAR(ranking.verdict->missed[0].late / 1_s, 600, 1e-6);
}

TEST(Goal, SaysHowFarNothingMeetsIt) {
  const Goal goal{.train = {}, .within = 1000_s, .budget = 100_USD, .minimise = Measure::kTime};
  Outcome free = runs(0.5, 1, 1);
  free.figures->usd.reset();
  const Ranking ranking = ranking_of(results_of({runs(3, 90, 1), runs(0.9, 150, 1), free}, goal));
  EXPECT_TRUE(ranking.verdict->met.empty());
  ASSERT_EQ(ranking.verdict->missed.size(), 3U);
  EXPECT_EQ(ranking.verdict->missed[0].point, 1U);  // 50 % over, against 200 % late
  EXPECT_NEAR(ranking.verdict->missed[0].over / 1_USD, 50, 1e-9);
  EXPECT_TRUE(ranking.verdict->missed[2].unknown);
}

// Property: the front is what no other point beats, and the goal's answer the least of those that
// keep it, on grids of few distinct values, so that ties occur.
TEST(Ranking, IsThatOfAnEnumeration) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return 1.0 + static_cast<double>(random() % most); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Outcome> outcomes;
    for (int i = 0; i < 12; ++i) outcomes.push_back(runs(draw(6), draw(6), draw(3)));
    const Goal goal{.train = {}, .within = 4000_s, .budget = {}, .minimise = Measure::kUsd};
    const Results results = results_of(outcomes, goal);
    const Ranking ranking = ranking_of(results);
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const StepFigures& one = *outcomes[i].figures;
      bool front = true, room_front = true;
      for (const Outcome& each : outcomes) {
        const StepFigures& other = *each.figures;
        const bool no_worse = other.step <= one.step && *other.usd <= *one.usd;
        const bool better = other.step < one.step || *other.usd < *one.usd;
        const bool room = other.headroom() >= one.headroom();
        if (no_worse && better) front = false;
        if (no_worse && room && (better || other.headroom() > one.headroom())) room_front = false;
      }
      EXPECT_EQ(ranking.on_front[i], front);
      EXPECT_EQ(ranking.on_room_front[i], room_front);
      if (one.step > 4_s) continue;
      const auto key = [&](std::size_t k) {
        return std::tuple(*outcomes[k].figures->usd, outcomes[k].figures->step, k);
      };
      if (!best || key(i) < key(*best)) best = i;
    }
    ASSERT_EQ(ranking.verdict->met.empty(), !best);
    if (best) {
      EXPECT_EQ(ranking.verdict->met.front(), *best);
    }
  }
}

TEST(Outcome, ReadsBackAsItself) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> any(0, 1e12);
  for (int i = 0; i < 200; ++i) {
    Outcome outcome = runs(any(random), any(random), 7);
    outcome.why = "a \"why\"\nof two lines, \xc3\xa9";
    outcome.settings = {{"strategy.tensor_parallel", "8"}, {"use", "[\"node0\"]"}};
    if (i % 2 == 0) outcome.figures->usd.reset();
    EXPECT_EQ(value_of(outcome_in(text_of(outcome))), outcome);
  }
  const auto infeasible = lacks(3_GiB);
  EXPECT_EQ(*outcome_in(text_of(infeasible)), infeasible);
  for (const char* text : {"", "{}", "[]", "{\"status\": \"fine\"}", "null"})
    EXPECT_FALSE(outcome_in(text)) << text;
}

TEST(Question, ReadsBackAsItself) {
  Question question;
  question.name = "q";
  question.axes = {{"a", {"1", "2"}}, {"b", {"x"}}};
  question.train = "2T tokens";
  question.goal =
      Goal{.train = {}, .within = 60 * 86400_s, .budget = {}, .minimise = Measure::kKwh};
  question.rank = Measure::kKwh;
  EXPECT_EQ(text_of(value_of(question_in(text_of(question)))), text_of(question));
  for (const char* text : {"", "{}", "{\"axes\": []}", "3"})
    EXPECT_FALSE(question_in(text)) << text;
}

}  // namespace
}  // namespace foreshard::sweep
