#include "validate/calibrate/pooling.h"

#include "tests/test.h"

namespace foreshard::calibrate {
namespace {

double squared(const Distance& distance, const std::array<double, 3>& a,
               const std::array<double, 3>& b) {
  const std::array<const double*, 2> blocks{a.data(), b.data()};
  std::array<double, 3> residuals{};
  EXPECT_TRUE(distance.Evaluate(blocks.data(), residuals.data(), nullptr));
  double sum = 0;
  for (const double one : residuals) sum += one * one;
  return sum;
}

// Covariance of a family of two with own 1 and together 1: [2 1; 1 2], its inverse
// 1/3 [2 -1; -1 2]. The third number is alone, with standard deviation 2.
const Distance kDistance(3, {{.members = {0, 2}, .own = 1, .together = 1},
                             {.members = {1}, .own = 2, .together = 0}});

TEST(Distance, IsThatOfTheCovariance) {
  EXPECT_NEAR(squared(kDistance, {1, 0, 1}, {0, 0, 0}), 2.0 / 3, 1e-12);  // together: cheap
  EXPECT_NEAR(squared(kDistance, {1, 0, -1}, {0, 0, 0}), 2.0, 1e-12);     // apart: dear
  EXPECT_NEAR(squared(kDistance, {1, 0, 0}, {0, 0, 0}), 2.0 / 3, 1e-12);
  EXPECT_NEAR(squared(kDistance, {0, 4, 0}, {0, 0, 0}), 4.0, 1e-12);
  EXPECT_NEAR(squared(kDistance, {5, 6, 7}, {5, 6, 7}), 0.0, 1e-12);
}

// The second number is expected 3 above: 4 is 1 off, half a standard deviation.
TEST(Distance, IsFromWhereTheNumbersAreExpected) {
  const Distance distance(3, {{.members = {0, 1, 2}, .own = 2, .together = 0}}, {0, 3, 0});
  EXPECT_NEAR(squared(distance, {5, 9, 7}, {5, 5, 7}), 0.25, 1e-12);
  EXPECT_NEAR(squared(distance, {5, 8, 7}, {5, 5, 7}), 0, 1e-12);
}

TEST(Distance, KnowsItsSlopes) {
  std::array<double, 3> a{0.3, -0.2, 0.8};
  std::array<double, 3> b{0.1, 0.5, -0.4};
  std::array<double, 9> of_a{}, of_b{};
  std::array<double, 3> before{}, after{};
  std::array<const double*, 2> blocks{a.data(), b.data()};
  std::array<double*, 2> slopes{of_a.data(), of_b.data()};
  ASSERT_TRUE(kDistance.Evaluate(blocks.data(), before.data(), slopes.data()));
  for (std::size_t block = 0; block < 2; ++block)
    for (std::size_t j = 0; j < 3; ++j) {
      double& moved = block == 0 ? a[j] : b[j];
      moved += 1e-6;
      ASSERT_TRUE(kDistance.Evaluate(blocks.data(), after.data(), nullptr));
      moved -= 1e-6;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR((block == 0 ? of_a : of_b)[i * 3 + j], (after[i] - before[i]) / 1e-6, 1e-6);
    }
}

}  // namespace
}  // namespace foreshard::calibrate
