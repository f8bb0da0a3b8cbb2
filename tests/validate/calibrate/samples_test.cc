#include "validate/calibrate/samples.h"

#include "tests/test.h"

#include "validate/measurement/measurement.h"

namespace foreshard::calibrate {
namespace {

using program::CollectiveKind;

// By hand: of 10, 10, 11, 11, 12, 12 and 50 ms the median is 11 ms; deviations from it are 0, 0, 1,
// 1, 1, 1, 39: their median is 1 ms, so 5 x 1.4826 ms is the limit, and 50 ms an outlier. The
// others have quartiles 10.25 and 11.75 ms: the notch is 1.57 x 1.5 / sqrt(6) = 0.961 ms.
TEST(Spread, LeavesOutOutliersAndGivesTheNotch) {
  const Spread spread = spread_of({10_ms, 12_ms, 11_ms, 50_ms, 11_ms, 12_ms, 10_ms});
  EXPECT_NEAR(spread.median / 1_ms, 11, 1e-12);
  EXPECT_EQ(spread.count, 6);
  EXPECT_EQ(spread.outliers, 1);
  EXPECT_NEAR(spread.high / 1_ms, 11.961, 1e-3);
  EXPECT_NEAR(spread.low / 1_ms, 10.039, 1e-3);
}

TEST(Spread, OfOneTimeIsThatTime) {
  const Spread spread = spread_of({3_us});
  EXPECT_EQ(spread.low, 3_us);
  EXPECT_EQ(spread.high, 3_us);
}

// Two ranks: a kernel, then an all-reduce, alone; then both at a time on two streams.
MeasuredRun small_run() {
  const Kernel kernel = Gemm{.m = 8, .n = 8, .k = 8, .dtype = DType::kFp32};
  const program::Communication reduce{
      .kind = CollectiveKind::kAllReduce, .group = program::AxisGroup{{0}, {}}, .bytes = 4_KiB};
  MeasuredRun run;
  auto& p = run.program;
  p.name = "small";
  p.mesh = {{"rank", 2}};
  p.streams = {{"compute"}, {"other"}};
  p.blocks = {{"alone",
               {{.name = "multiply", .body = kernel, .stream = program::StreamId{0}},
                {.name = "reduce", .body = reduce, .stream = program::StreamId{0}, .after = {0}}}},
              {"together",
               {{.name = "multiply", .body = kernel, .stream = program::StreamId{0}},
                {.name = "reduce", .body = reduce, .stream = program::StreamId{1}}}}};
  p.roles = {{.name = "all",
              .ranks = {0, 1},
              .calls = {{.block = program::BlockId{0}}, {.block = program::BlockId{1}}}}};
  auto& m = run.measurement;
  m.program = p.name;
  m.fingerprint = measure::fingerprint_of(p);
  const auto task = [](Seconds start, Seconds finish) {
    return measure::TaskTimes{.start = start,
                              .finish = finish,
                              .low = finish - start,
                              .median = finish - start,
                              .high = finish - start};
  };
  // Rank 1 is later to the first all-reduce: it takes from 3 ms, when rank 1 came, to 5 ms, when
  // rank 0 is done.
  m.ranks = {
      {.rank = 0, .tasks = {task(0_s, 2_ms), task(2_ms, 5_ms), task(5_ms, 7_ms), task(5_ms, 8_ms)}},
      {.rank = 1,
       .tasks = {task(0_s, 3_ms), task(3_ms, 4.9_ms), task(5_ms, 7_ms), task(5_ms, 8_ms)}}};
  return run;
}

TEST(Samples, TakeCollectivesFromTheLastStartToTheLastFinishAndAlone) {
  const auto samples = value_of(samples_of({small_run()}));
  ASSERT_EQ(samples.kernels.size(), 1U);
  EXPECT_EQ(samples.kernels[0].time.count + samples.kernels[0].time.outliers, 4);
  EXPECT_NEAR(samples.kernels[0].time.median / 1_ms, 2, 1e-12);
  ASSERT_EQ(samples.collectives.size(), 1U);
  EXPECT_NEAR(samples.collectives[0].time.median / 1_ms, 2, 1e-12);
  EXPECT_EQ(samples.collectives[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(samples.overlapped, 1);
}

// What was measured of all members together is more than their medians tell.
TEST(Samples, TakeWhatWasMeasuredOfAllMembersTogether) {
  MeasuredRun run = small_run();
  for (auto& rank : run.measurement.ranks) rank.tasks[1].lasted = 1.7_ms;
  EXPECT_NEAR(value_of(samples_of({run})).collectives[0].time.median / 1_ms, 1.7, 1e-12);
}

TEST(Samples, ARunIsOfItsProgram) {
  MeasuredRun run = small_run();
  run.program.blocks[0].tasks[0].body = Gemm{.m = 9, .n = 8, .k = 8, .dtype = DType::kFp32};
  EXPECT_THAT(message_of(samples_of({run})),
              HasSubstr("it measures another Program: its fingerprint is"));
}

}  // namespace
}  // namespace foreshard::calibrate
