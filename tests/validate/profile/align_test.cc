
#include "tests/test.h"

#include "validate/profile/match.h"

namespace foreshard::profile {
namespace {

// As many of both: each takes its own, however far off the times are.
TEST(Alignment, PairsWhatComesInTheSameNumber) {
  const auto found = aligned({{10_us}, {100_us}, {1_ms}}, {30_us, 90_us, 4_ms});
  EXPECT_THAT(found.task_of, ElementsAre(0, 1, 2));
  EXPECT_NEAR(found.cost, 1.0986 + 0.1054 + 1.3863, 1e-3);  // ln 3, ln (10 / 9), ln 4
}

// Three projections, one of which did not run: 10, 100, 10 us expected, 100 and 10 us measured.
// Leaving out the first costs 2.5; to pair it with 100 us, and so on, would cost 2 + 2 + 2.5.
TEST(Alignment, LeavesOutATaskThatHasNoUnit) {
  EXPECT_THAT(aligned({{10_us}, {100_us}, {10_us}}, {100_us, 10_us}).task_of, ElementsAre(1, 2));
}

TEST(Alignment, LeavesOutAUnitThatNoTaskMayTake) {
  EXPECT_THAT(aligned({{10_us}, {100_us}}, {10_us, 5_us, 100_us}).task_of, ElementsAre(0, -1, 1));
}

// A task of 40 us may be up to four kernels; they make up 40 us.
TEST(Alignment, JoinsUnitsThatATaskIsMadeOf) {
  EXPECT_THAT(aligned({{40_us, 4}, {100_us}}, {10_us, 12_us, 9_us, 11_us, 100_us}).task_of,
              ElementsAre(0, 0, 0, 0, 1));
}

TEST(Alignment, OfNothingIsNothing) {
  EXPECT_THAT(aligned({}, {1_us}).task_of, ElementsAre(-1));
  EXPECT_TRUE(aligned({{1_us}}, {}).task_of.empty());
}

// Property: units stay in order, and no task has more than it may.
TEST(Alignment, KeepsTheOrder) {
  std::vector<Expected> tasks;
  std::vector<Seconds> units;
  std::uint32_t state = 1;
  const auto draw = [&] { return (state = state * 1664525U + 1013904223U) >> 24; };
  for (int i = 0; i < 300; ++i) tasks.push_back({(1.0 + draw()) * 1_us, 1 + draw() % 3});
  for (int i = 0; i < 500; ++i) units.push_back((1.0 + draw()) * 1_us);
  std::vector<std::int64_t> taken(tasks.size());
  std::int32_t last = 0;
  for (const std::int32_t task : aligned(tasks, units).task_of) {
    if (task < 0) continue;
    EXPECT_GE(task, last);
    last = task;
    ++taken[static_cast<std::size_t>(task)];
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) EXPECT_LE(taken[i], tasks[i].most);
}

}  // namespace
}  // namespace foreshard::profile
