#include "sim/study/measured_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::study {
namespace measured_times_test {

using testing::ElementsAre;
using testing::HasSubstr;

LoadedStudy loaded(const std::string& study) {
  auto result = load_study({.study = study}, {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

TEST(MeasuredTimes, AreReadFromATable) {
  const auto times = read_measured_times(
      "kernel,operation,bytes,ranks,time_us,source\n"
      "gemm 128x512x256 bf16,,,,84.5,mine\n"
      ",all_reduce,64 MiB,8,412,\n"
      ",receive,1048576,2,30,\n",
      "ops.csv");
  ASSERT_TRUE(times) << times.error().message;
  ASSERT_EQ(times->rows.size(), 3U);
  EXPECT_EQ(times->rows[0].kernel->kernel, "gemm 128x512x256 bf16");
  EXPECT_NEAR(times->rows[0].kernel->time / 1_us, 84.5, 1e-9);
  EXPECT_EQ(times->rows[1].collective->bytes, 64_MiB);
  EXPECT_EQ(times->rows[1].collective->ranks, 8);
  EXPECT_EQ(times->rows[2].collective->operation, "send");
  const auto again = read_measured_times(to_csv(*times), "ops.csv");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_csv(*again), to_csv(*times));
}

std::string fault(const std::string& text) {
  const auto times = read_measured_times(text, "ops.csv");
  return times ? "accepted" : times.error().message;
}

TEST(MeasuredTimes, NameTheFaultAndItsLine) {
  const std::string head = "kernel,operation,bytes,ranks,time_us\n";
  EXPECT_THAT(fault("kernel,tme_us\n"), HasSubstr("ops.csv:1: unknown column 'tme_us'; there are"));
  EXPECT_THAT(fault("kernel\na\n"), HasSubstr("ops.csv:1: has no column 'time_us'"));
  EXPECT_THAT(fault(head), HasSubstr("has no row"));
  EXPECT_THAT(fault(head + ",,,,1\n"), HasSubstr("ops.csv:2: names neither"));
  EXPECT_THAT(fault(head + "a,all_reduce,1,2,1\n"), HasSubstr("names both"));
  EXPECT_THAT(fault(head + "gem 1x1x1 bf16,,,,1\n"), HasSubstr("'gem 1x1x1 bf16' is not a kernel"));
  EXPECT_THAT(fault(head + "gemm 1x1x1 bf16,,4,,1\n"), HasSubstr("bytes: belongs to operations"));
  EXPECT_THAT(fault(head + ",reduce,1,2,1\n"), HasSubstr("'reduce' is no collective"));
  EXPECT_THAT(fault(head + ",all_reduce,big,2,1\n"), HasSubstr("bytes: 'big' is no size"));
  EXPECT_THAT(fault(head + ",all_reduce,1 MiB,,1\n"), HasSubstr("ranks: is missing"));
  EXPECT_THAT(fault(head + ",all_reduce,1 MiB,2.5,1\n"), HasSubstr("ranks: '2.5' is no whole"));
  EXPECT_THAT(fault(head + ",all_reduce,1 MiB,2,-1\n"), HasSubstr("time_us: '-1' is no positive"));
  EXPECT_THAT(fault(head + ",all_reduce,1 MiB,2,1\n,all_reduce,1 MiB,2,3\n"),
              HasSubstr("ops.csv:3: 'all_reduce of 1 MiB over 2 ranks' stands in line 2 already"));
}

// Every kernel and collective twice as slow as the model has them: so is the step, as far as it is
// made of them alone, and all of its critical path rests on what was given.
TEST(MeasuredTimes, TakeThePlaceOfTheModels) {
  LoadedStudy study = loaded("gpt-1.3b-h200");
  study.strategy.framework.value.host_time = 0_s;
  const auto before = run_study(study, {});
  ASSERT_TRUE(before) << before.error().message;
  const DeviceType device = *study.cluster.node_groups().front().node->device;
  MeasuredTimes times{.file = "ops.csv"};
  std::set<std::string> seen;
  for (const program::Block& block : before->program.blocks)
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
  const auto after = run_study(study, {});
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NEAR(after->prediction.step / before->prediction.step, 2, 0.05);
  Seconds itself{};
  for (const sim::CriticalUse& use : after->prediction.critical_uses)
    if (use.itself) itself += use.time;
  EXPECT_GT(itself / after->prediction.step, 0.95);
  EXPECT_TRUE(unused_in(times, after->program).empty());
}

// An all-reduce that the study does takes the given time alone; others stay.
TEST(MeasuredTimes, OfACollectiveAreItsIdleTime) {
  LoadedStudy study = loaded("gpt-39.1b-h100-32");
  const auto before = run_study(study, {});
  ASSERT_TRUE(before) << before.error().message;
  const auto& uses = before->prediction.collectives;
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
  const auto after = run_study(study, {});
  ASSERT_TRUE(after) << after.error().message;
  for (const auto& use : after->prediction.collectives)
    if (use.what == found->what && use.bytes == found->bytes) {
      EXPECT_NEAR(use.idle_time / found->idle_time, 3, 1e-6);
    }
  EXPECT_GT(after->prediction.step, before->prediction.step);
  EXPECT_THAT(unused_in(times, after->program),
              ElementsAre("ops.csv:3: no task is 'all_gather of 1 B over 3 ranks'"));
}

}  // namespace measured_times_test
}  // namespace foreshard::study
