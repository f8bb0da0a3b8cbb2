#include "strategies/parallelism/expert_load.h"

#include "tests/test.h"

#include "strategies/graph/model.h"

namespace foreshard {
namespace {

Model mixture(std::int64_t experts, std::int64_t chosen) {
  Model model;
  model.layers = 4;
  model.experts = experts;
  model.experts_per_token = chosen;
  return model;
}

// Two ranks hold 0.6 and 0.4 of the tokens: 1.2 times the even half. Four hold one expert each.
TEST(ExpertLoad, TheBusiestRankDecides) {
  const std::vector<double> shares{0.4, 0.2, 0.3, 0.1};
  EXPECT_DOUBLE_EQ(busiest_rank(shares, 1), 1);
  EXPECT_DOUBLE_EQ(busiest_rank(shares, 2), 1.2);
  EXPECT_DOUBLE_EQ(busiest_rank(shares, 4), 1.6);
}

// Measured by layer: the mean of 1.2 and 1.4.
TEST(ExpertLoad, OfMeasuredLayersIsTheirMean) {
  ExpertLoad load;
  load.layers = {{0.4, 0.2, 0.3, 0.1}, {0.4, 0.3, 0.2, 0.1}};
  EXPECT_THAT(drawn_loads(load, mixture(4, 1), 2), ElementsAre(testing::DoubleEq(1.3)));
}

// 1, 1/2, 1/3, 1/4 of 25/12: shares of 12/25, 6/25, 4/25 and 3/25. On ranks of one expert each the
// busiest has 4 x 12/25, however they are drawn.
TEST(ExpertLoad, OfZipfIsThatOfItsMostPopularExpert) {
  const ExpertLoad load{.zipf = 1.0, .draws = 7};
  const auto loads = drawn_loads(load, mixture(4, 1), 4);
  ASSERT_EQ(loads.size(), 7U);
  for (const double one : loads) EXPECT_DOUBLE_EQ(one, 1.92);
  EXPECT_DOUBLE_EQ(mean_load(load, mixture(4, 1), 4), 1.92);
}

// A token that makes two choices chooses an expert once: none has more than half of all choices.
// With all four chosen, the load is even.
TEST(ExpertLoad, NoExpertIsChosenTwiceByAToken) {
  const ExpertLoad load{.zipf = 3.0, .draws = 1};
  EXPECT_DOUBLE_EQ(mean_load(load, mixture(4, 2), 4), 2);
  EXPECT_DOUBLE_EQ(mean_load(load, mixture(4, 4), 4), 1);
}

// Pairs of the shares above: the most popular one with another: 18/25, 16/25 or 15/25 of a rank.
TEST(ExpertLoad, DrawsWhereThePopularExpertsLie) {
  const auto loads = drawn_loads({.zipf = 1.0, .draws = 2000}, mixture(4, 1), 2);
  EXPECT_TRUE(std::ranges::is_sorted(loads));
  EXPECT_GE(loads.front(), 2 * 0.60 - 1e-9);
  EXPECT_LE(loads.back(), 2 * 0.72 + 1e-9);
  EXPECT_NEAR(mean_load({.zipf = 1.0, .draws = 2000}, mixture(4, 1), 2),
              2 * (0.72 + 0.64 + 0.60) / 3, 0.005);
}

TEST(ExpertLoad, IsRepeatable) {
  const ExpertLoad load{.zipf = 0.7, .draws = 3, .seed = 5};
  EXPECT_EQ(drawn_loads(load, mixture(64, 8), 8), drawn_loads(load, mixture(64, 8), 8));
  EXPECT_EQ(drawn_loads({}, mixture(64, 8), 8), std::vector<double>{1});
}

}  // namespace
}  // namespace foreshard
