// Break-even along a numeric axis, by hand and against a count of changes of sign.
#include "sim/sweep/crossings.h"

#include "tests/test.h"

namespace foreshard::sweep::crossings_test {

Outcome takes(double step_s) {
  Outcome outcome;
  outcome.status = PointStatus::kOk;
  outcome.figures.emplace();
  outcome.figures->step = step_s * 1_s;
  outcome.figures->training_steps = 1;
  return outcome;
}

// Times of a grid, its last axis fastest; negative: the point does not run.
Results grid_of(std::vector<AxisNames> axes, const std::vector<double>& times) {
  Results results;
  results.question.axes = std::move(axes);
  results.question.train = "1B tokens";
  for (const double time : times) {
    Outcome outcome = takes(time);
    if (time < 0) {
      outcome.status = PointStatus::kInfeasible;
      outcome.figures.reset();
    }
    results.outcomes.emplace_back(std::move(outcome));
  }
  return results;
}

std::vector<Crossing> crossings_in(const Results& results) {
  return crossings_of(results, ranking_of(results));
}

// The example of the header: 10 against 12 at 16 nodes, 8 against 7 at 32; c is never the best.
TEST(Crossings, ByHand) {
  const auto found = crossings_in(
      grid_of({{.name = "nodes", .values = {"16", "32"}}, {.name = "x", .values = {"a", "b", "c"}}},
              {10, 12, 13, 8, 7, 7.5}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].along, 0U);
  EXPECT_EQ(found[0].between, 1U);
  EXPECT_EQ(found[0].first, 0U);
  EXPECT_EQ(found[0].then, 1U);
  EXPECT_NEAR(found[0].at, 16 + 16 * 2.0 / 3, 1e-9);
  EXPECT_EQ(found[0].unit, "");
  EXPECT_TRUE(found[0].best);
  // a against c: 3 ahead, then 0.5 behind.
  EXPECT_EQ(found[1].then, 2U);
  EXPECT_NEAR(found[1].at, 16 + 16 * 3 / 3.5, 1e-9);
  EXPECT_FALSE(found[1].best);
}

// Values stand in any order; what does not run is passed over; where both are the same is that.
TEST(Crossings, GoesByTheNumbersAndTheirUnit) {
  const AxisNames rates{.name = "rate", .values = {"800 Gbit/s", "100 Gbit/s", "400 Gbit/s"}};
  const AxisNames x{.name = "x", .values = {"a", "b"}};
  const auto across = crossings_in(grid_of({rates, x}, {4, 1, 5, 8, -1, 3}));
  ASSERT_EQ(across.size(), 1U);
  EXPECT_EQ(across[0].low, 1U);
  EXPECT_EQ(across[0].high, 0U);
  EXPECT_NEAR(across[0].at, 450, 1e-9);
  EXPECT_EQ(across[0].unit, "Gbit/s");
  const auto same = crossings_in(grid_of({rates, x}, {4, 1, 5, 8, 3, 3}));
  ASSERT_EQ(same.size(), 1U);
  EXPECT_NEAR(same[0].at, 400, 1e-9);
  EXPECT_TRUE(crossings_in(grid_of({rates, x}, {4, 4, 5, 5, 3, 3})).empty());
}

TEST(Crossings, AreOfNumericAxesAlone) {
  for (const auto& values :
       {std::vector<std::string>{"one", "two"}, {"1 GB", "2 TB"}, {"1", "x"}, {"1,024", "2,024"}})
    EXPECT_TRUE(crossings_in(grid_of({{.name = "nodes", .values = values},
                                      {.name = "x", .values = {"a", "b"}}},
                                     {1, 2, 2, 1}))
                    .empty());
}

// Of each choice it is the best over the third axis.
TEST(Crossings, LeavesFurtherAxesFree) {
  const auto found = crossings_in(grid_of({{.name = "nodes", .values = {"1", "2"}},
                                           {.name = "x", .values = {"a", "b"}},
                                           {.name = "y", .values = {"p", "q"}}},
                                          {9, 4, 6, 8, 5, 7, 3, 9}));
  // x: a takes 4 against 6, then 5 against 3. y: p takes 6 against 4, then 3 against 7.
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0].at, 1.5, 1e-9);
  EXPECT_EQ(found[1].between, 2U);
  EXPECT_EQ(found[1].first, 1U);
  EXPECT_NEAR(found[1].at, 1 + 2.0 / 6, 1e-9);
}

// Of many choices, only where the best one changes: here the first falls from best to worst, and
// the last rises.
TEST(Crossings, OfManyChoicesAreThoseOfTheBest) {
  AxisNames x{.name = "x", .values = {}};
  std::vector<double> times;
  constexpr std::size_t kMany = kMostPaired + 4;
  for (std::size_t i = 0; i < kMany; ++i) {
    x.values.push_back("choice " + std::string(i, 'i'));
    times.push_back(1.0 + static_cast<double>(i));
  }
  for (std::size_t i = 0; i < kMany; ++i) times.push_back(1.0 + static_cast<double>(kMany - i));
  const auto found = crossings_in(grid_of({{.name = "n", .values = {"1", "2"}}, x}, times));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 0U);
  EXPECT_EQ(found[0].then, kMany - 1);
  EXPECT_TRUE(found[0].best);
}

// Property: as many as the sign of the difference changes, between the values where it does, and
// each choice is better on its side; also on grids with holes.
TEST(Crossings, AreTheChangesOfSign) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t kValues = 7;
    AxisNames along{.name = "n", .values = {}};
    for (std::size_t i = 0; i < kValues; ++i) along.values.push_back(std::to_string(10 * i));
    std::vector<double> times;
    for (std::size_t i = 0; i < 2 * kValues; ++i)
      times.push_back(random() % 6 == 0 ? -1.0 : 1.0 + static_cast<double>(random() % 1000));
    std::size_t changes = 0;
    std::vector<bool> a_is_better;
    for (std::size_t i = 0; i < kValues; ++i) {
      if (times[2 * i] < 0 || times[2 * i + 1] < 0 || times[2 * i] == times[2 * i + 1]) continue;
      a_is_better.push_back(times[2 * i] < times[2 * i + 1]);
    }
    for (std::size_t i = 1; i < a_is_better.size(); ++i)
      if (a_is_better[i] != a_is_better[i - 1]) ++changes;
    const auto found = crossings_in(grid_of({along, {.name = "x", .values = {"a", "b"}}}, times));
    ASSERT_EQ(found.size(), changes);
    for (const Crossing& one : found) {
      EXPECT_LT(times[2 * one.low + one.first], times[2 * one.low + one.then]);
      EXPECT_GT(times[2 * one.high + one.first], times[2 * one.high + one.then]);
      EXPECT_GE(one.at, 10.0 * static_cast<double>(one.low));
      EXPECT_LE(one.at, 10.0 * static_cast<double>(one.high));
    }
  }
}

}  // namespace foreshard::sweep::crossings_test
