// Summary statistics by hand, then against a direct count of pairs.

#include <rapidcheck.h>

#include "tests/test.h"

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {
namespace {

std::vector<Pair> pairs_of(const std::vector<std::pair<double, double>>& values) {
  std::vector<Pair> pairs;
  pairs.reserve(values.size());
  for (const auto& [measured, predicted] : values)
    pairs.push_back({.measured = measured, .predicted = predicted, .low = {}, .high = {}});
  return pairs;
}

// Errors of +10, -20, +30 and 0 %: mean magnitude 60 / 4, mean 20 / 4, middle ones 10 and 20,
// ceil(0.9 x 4) = the 4th smallest.
TEST(Statistics, ByHand) {
  const Statistics s = statistics_of(pairs_of({{10, 11}, {10, 8}, {100, 130}, {5, 5}}));
  EXPECT_EQ(s.pairs, 4);
  EXPECT_NEAR(*s.mape_pct, 15, 1e-9);
  EXPECT_NEAR(*s.bias_pct, 5, 1e-9);
  EXPECT_NEAR(*s.median_ape_pct, 15, 1e-9);
  EXPECT_NEAR(*s.p90_ape_pct, 30, 1e-9);
  EXPECT_FALSE(s.interval_coverage_pct);
}

TEST(Statistics, NinetiethPercentileIsTheNearestRank) {
  std::vector<std::pair<double, double>> values;
  for (int i = 1; i <= 20; ++i) values.emplace_back(100, 100 + i);  // errors of 1 to 20 %
  EXPECT_NEAR(*statistics_of(pairs_of(values)).p90_ape_pct, 18, 1e-9);
  EXPECT_NEAR(*statistics_of(pairs_of({{100, 107}})).p90_ape_pct, 7, 1e-9);
}

TEST(Statistics, CoverageCountsRowsWithAnInterval) {
  const std::vector<Pair> pairs = {{.measured = 10, .predicted = 9, .low = 8, .high = 10},
                                   {.measured = 10, .predicted = 8, .low = 7, .high = 9},
                                   {.measured = 10, .predicted = 8, .low = {}, .high = {}}};
  EXPECT_NEAR(*statistics_of(pairs).interval_coverage_pct, 50, 1e-9);
}

TEST(Statistics, OfNothing) {
  const Statistics s = statistics_of({});
  EXPECT_EQ(s.pairs, 0);
  EXPECT_FALSE(s.mape_pct);
  EXPECT_FALSE(s.kendall_tau);
}

// Measured 1 2 3 4, predicted 1 3 2 4: of six pairs one is turned round, (5 - 1) / 6.
TEST(KendallTau, ByHand) {
  EXPECT_NEAR(*kendall_tau(pairs_of({{3, 2}, {1, 1}, {4, 4}, {2, 3}})), 4.0 / 6, 1e-12);
  EXPECT_NEAR(*kendall_tau(pairs_of({{1, 5}, {2, 6}, {3, 7}})), 1, 1e-12);
  EXPECT_NEAR(*kendall_tau(pairs_of({{1, 7}, {2, 6}, {3, 5}})), -1, 1e-12);
}

// Measured 1 1 2, predicted 1 2 2: the pairs are tied by measurement, concordant, and tied by
// prediction. tau = 1 / sqrt((3 - 1) (3 - 1)).
TEST(KendallTau, WithTies) {
  EXPECT_NEAR(*kendall_tau(pairs_of({{1, 1}, {1, 2}, {2, 2}})), 0.5, 1e-12);
}

TEST(KendallTau, SaysNothingWithoutTwoDifferentValues) {
  EXPECT_FALSE(kendall_tau(pairs_of({{1, 1}})));
  EXPECT_FALSE(kendall_tau(pairs_of({{1, 1}, {1, 2}})));
  EXPECT_FALSE(kendall_tau(pairs_of({{1, 1}, {2, 1}})));
}

TEST(KendallTau, EqualsACountOfAllPairs) {
  EXPECT_TRUE(rc::check("tau-b", [] {
    const auto size = *rc::gen::inRange<std::size_t>(2, 40);
    const auto numbers = *rc::gen::container<std::vector<int>>(2 * size, rc::gen::inRange(1, 12));
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < size; ++i)
      pairs.push_back({.measured = static_cast<double>(numbers[2 * i]),
                       .predicted = static_cast<double>(numbers[2 * i + 1]),
                       .low = {},
                       .high = {}});
    double agreement = 0;
    double measured = 0;
    double predicted = 0;
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto sign = [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; };
        const int a = sign(pairs[i].measured - pairs[j].measured);
        const int b = sign(pairs[i].predicted - pairs[j].predicted);
        agreement += a * b;
        measured += a != 0;
        predicted += b != 0;
      }
    }
    const auto tau = kendall_tau(pairs);
    if (measured == 0 || predicted == 0) {
      RC_ASSERT(!tau);
    } else {
      RC_ASSERT(tau);
      RC_ASSERT(std::abs(*tau - agreement / std::sqrt(measured * predicted)) < 1e-9);
    }
  }));
}

}  // namespace
}  // namespace foreshard::accuracy
