
#include "tests/test.h"

#include "sim/study/run.h"
#include "strategies/program/ir/expand.h"
#include "validate/compare/timeline.h"

namespace foreshard::compare {
namespace {

study::StudyRun pipeline() {
  const std::string file = FORESHARD_SOURCE_DIR "/configs/studies/host-pp2.yaml";
  auto study = value_of(study::load_study({.study = file}, shipped_options()));
  return value_of(study::run_study(study, {.timeline = true}));
}

// Four micro-batches cross one boundary forward and backward: 8 transfers, each with a send on one
// side and a receive on the other, which end together.
TEST(Arrivals, AreTheFinishesOfTheRanksCommunications) {
  const study::StudyRun run = pipeline();
  std::vector<std::vector<Seconds>> of(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto arrivals =
        value_of(arrivals_of(run.program, run.prediction, static_cast<std::int64_t>(rank)));
    const auto& role =
        run.program.roles[run.program.roles[0].ranks[0] == static_cast<std::int32_t>(rank) ? 0 : 1];
    EXPECT_EQ(static_cast<std::int64_t>(arrivals.seconds.size()),
              program::count_instances(run.program, role));
    for (const auto& time : arrivals.seconds)
      if (time) of[rank].push_back(*time);
    std::ranges::sort(of[rank]);
    EXPECT_GE(of[rank].size(), 8u);
    EXPECT_GT(of[rank].front(), 0_s);
    EXPECT_LE(of[rank].back(), run.prediction.step);
  }
  EXPECT_EQ(of[0], of[1]);
}

TEST(Arrivals, RefuseARankThatIsNotThere) {
  const study::StudyRun run = pipeline();
  EXPECT_THAT(message_of(arrivals_of(run.program, run.prediction, 2)),
              HasSubstr("no rank 2; the Program has 2, from 0 on"));
}

}  // namespace
}  // namespace foreshard::compare
