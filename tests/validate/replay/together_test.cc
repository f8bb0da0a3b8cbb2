
#include "tests/test.h"

#include "validate/replay/statistics.h"

namespace foreshard::replay {
namespace {

// Three ranks: a kernel, then an all-reduce of all.
program::Program three_ranks() {
  program::Program program;
  program.mesh = {{"data", 3}};
  program.streams = {{"compute"}};
  program.blocks = {{"block",
                     {{"gemm", Kernel(Gemm{.m = 8, .n = 8, .k = 8}), program::StreamId(0), {}},
                      {"grads",
                       program::Communication{.group = program::AxisGroup{{0}, {}}, .bytes = 1_MiB},
                       program::StreamId(0),
                       {}}}}};
  program.roles = {{.name = "all", .ranks = {0, 1, 2}, .calls = {{.block = program::BlockId(0)}}}};
  return program;
}

// What a rank sends whose all-reduces began and ended at these milliseconds, by repeat.
std::string part(const RankPlan& plan, const std::array<double, 3>& start,
                 const std::array<double, 3>& finish) {
  Samples samples(2);
  for (std::size_t i = 0; i < 3; ++i)
    samples.add({.total = finish[i] * 1_ms,
                 .start = {0_s, start[i] * 1_ms},
                 .finish = {start[i] * 1_ms, finish[i] * 1_ms}});
  return communications_of(plan, samples);
}

// In milliseconds      rank 0   rank 1   rank 2    last start   last finish   lasted
//   repeat 1          1 to 6   2 to 7   4 to 5         4             7          3
//   repeat 2          5 to 7   1 to 7   1 to 9         5             9          4
//   repeat 3          1 to 8   3 to 4   2 to 5         3             8          5
// The members' own medians are 5, 5 and 3 ms; from the last of their median starts (2) to the last
// of their median finishes (7) it is 5 ms.
TEST(CommunicationDurations, LastsFromTheLastStartToTheLastFinish) {
  const program::Program program = three_ranks();
  const std::array<std::array<double, 3>, 3> starts{{{1, 5, 1}, {2, 1, 3}, {4, 1, 2}}};
  const std::array<std::array<double, 3>, 3> finishes{{{6, 7, 8}, {7, 7, 4}, {5, 9, 5}}};
  CommunicationDurations together;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const auto plan = value_of(plan_rank(program, rank));
    const auto r = static_cast<std::size_t>(rank);
    EXPECT_TRUE(together.add(rank, part(plan, starts[r], finishes[r])));
  }
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    std::vector<measure::TaskTimes> tasks(2);
    together.fill(rank, tasks);
    EXPECT_FALSE(tasks[0].lasted);
    ASSERT_TRUE(tasks[1].lasted);
    EXPECT_NEAR(*tasks[1].lasted / 1_ms, 4, 1e-9);
  }
}

TEST(CommunicationDurations, RefusesWhatIsNoPart) {
  const program::Program program = three_ranks();
  const auto plan = value_of(plan_rank(program, 0));
  const std::string whole = part(plan, {1, 2, 3}, {2, 3, 4});
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    CommunicationDurations together;
    EXPECT_FALSE(together.add(0, whole.substr(0, cut))) << cut;
  }
  CommunicationDurations together;
  ASSERT_TRUE(together.add(0, whole));
  Samples fewer(2);
  fewer.add({.total = 1_ms, .start = {0_s, 0_s}, .finish = {1_ms, 1_ms}});
  EXPECT_FALSE(together.add(1, communications_of(plan, fewer)));
}

}  // namespace
}  // namespace foreshard::replay
