#include "sim/study/measured_times.h"

#include "tests/test.h"

#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::study::measured_times_test {

LoadedStudy loaded(const std::string& study) {
  return value_of(load_study({.study = study}, shipped_options()));
}

TEST(MeasuredTimes, AreReadFromATable) {
  const auto times =
      value_of(read_measured_times("kernel,operation,bytes,ranks,time_us,source\n"
                                   "gemm 128x512x256 bf16,,,,84.5,mine\n"
                                   ",all_reduce,64 MiB,8,412,\n"
                                   ",receive,1048576,2,30,\n",
                                   "ops.csv"));
  ASSERT_EQ(times.rows.size(), 3U);
  EXPECT_EQ(times.rows[0].kernel->kernel, "gemm 128x512x256 bf16");
  EXPECT_NEAR(times.rows[0].kernel->time / 1_us, 84.5, 1e-9);
  EXPECT_EQ(times.rows[1].collective->bytes, 64_MiB);
  EXPECT_EQ(times.rows[1].collective->ranks, 8);
  EXPECT_EQ(times.rows[2].collective->operation, "send");
  EXPECT_EQ(to_csv(value_of(read_measured_times(to_csv(times), "ops.csv"))), to_csv(times));
}

// Every kernel and collective twice as slow as the model has them: so is the step, as far as it is
// made of them alone, and all of its critical path rests on what was given.
TEST(MeasuredTimes, TakeThePlaceOfTheModels) {
  LoadedStudy study = loaded("gpt-1.3b-h200");
  study.strategy.framework.value.host_time = 0_s;
  const auto before = value_of(run_study(study, {}));
  const DeviceType device = *study.cluster.node_groups().front().node->device;
  MeasuredTimes times{.file = "ops.csv"};
  std::set<std::string> seen;
  for (const program::Block& block : before.program.blocks)
    for (const program::Task& task : block.tasks)
      if (const auto* kernel = std::get_if<Kernel>(&task.body))
        if (seen.insert(describe(*kernel)).second)
          times.rows.push_back(
              {.line = times.rows.size() + 2,
               .kernel = MeasuredKernel{.kernel = describe(*kernel),
                                        .time = 2 * time_of(*kernel, device).total(),
                                        .low = {},
                                        .high = {},
                                        .burst = false,
                                        .source = {}}});
  apply(times, study.cluster, study.communication);
  const auto after = value_of(run_study(study, {}));
  EXPECT_NEAR(after.prediction.step / before.prediction.step, 2, 0.05);
  Seconds itself{};
  for (const sim::CriticalUse& use : after.prediction.critical_uses)
    if (use.itself) itself += use.time;
  EXPECT_GT(itself / after.prediction.step, 0.95);
  EXPECT_TRUE(unused_in(times, after.program).empty());
}

// An all-reduce that the study does takes the given time alone; others stay.
TEST(MeasuredTimes, OfACollectiveAreItsIdleTime) {
  LoadedStudy study = loaded("gpt-39.1b-h100-32");
  const auto before = value_of(run_study(study, {}));
  const auto& uses = before.prediction.collectives;
  const auto found = std::ranges::find_if(uses, [](const auto& use) {
    return use.what.find("over tensor, 4 ranks") != std::string::npos;
  });
  ASSERT_NE(found, uses.end());
  const std::string operation = found->what.substr(0, found->what.find(' '));
  MeasuredTimes times{.file = "ops.csv"};
  times.rows.push_back({.line = 2,
                        .collective = comm::MeasuredCollective{.operation = operation,
                                                               .bytes = found->bytes,
                                                               .ranks = 4,
                                                               .time = 3 * found->idle_time}});
  times.rows.push_back({.line = 3,
                        .collective = comm::MeasuredCollective{
                            .operation = "all_gather", .bytes = 1_B, .ranks = 3, .time = 1_s}});
  apply(times, study.cluster, study.communication);
  const auto after = value_of(run_study(study, {}));
  for (const auto& use : after.prediction.collectives)
    if (use.what == found->what && use.bytes == found->bytes) {
      EXPECT_NEAR(use.idle_time / found->idle_time, 3, 1e-6);
    }
  EXPECT_GT(after.prediction.step, before.prediction.step);
  EXPECT_THAT(unused_in(times, after.program),
              ElementsAre("ops.csv:3: no task is 'all_gather of 1 B over 3 ranks'"));
}

}  // namespace foreshard::study::measured_times_test
