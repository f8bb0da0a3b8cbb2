#include "validate/replay/statistics.h"

#include "tests/test.h"

namespace foreshard::replay {
namespace {

using program::Program;

// Instances: a kernel of 100 ms, one of 0.5 ms (less than 1 % of the step), a communication.
Program sample() {
  Program program;
  program.mesh = {{"data", 1}};
  program.streams = {{"compute"}};
  const auto gemm = [](const std::string& name) {
    return program::Task{name, Kernel(Gemm{.m = 8, .n = 8, .k = 8}), program::StreamId(0), {}};
  };
  program.blocks = {
      {"block",
       {{"keep", program::Allocate{"a", program::MemoryKind::kActivations, 10_MiB}, {}, {}},
        gemm("large"),
        {"drop", program::Free{"a"}, {}, {1}},
        {"again", program::Allocate{"b", program::MemoryKind::kActivations, 4_MiB}, {}, {}},
        gemm("small"),
        {"grads",
         program::Communication{.group = program::AxisGroup{{0}, {}}, .bytes = 1_MiB},
         program::StreamId(0),
         {}},
        {"drop b", program::Free{"b"}, {}, {5}}}}};
  program.roles = {{.name = "all",
                    .ranks = {0},
                    .calls = {{.block = program::BlockId(0)}},
                    .memory = {{program::MemoryKind::kParameters, 100_MiB}}}};
  return program;
}

StepTimes step(Seconds large, Seconds small, Seconds communication) {
  StepTimes times;
  Seconds time;
  for (const Seconds took : {large, small, communication}) {
    times.start.push_back(time);
    time += took;
    times.finish.push_back(time);
  }
  times.total = time;
  return times;
}

// Median of 10 values 1 ... 10: 5.5. Interval: 10/2 -+ 1.96 sqrt(10)/2 = 5 -+ 3.1: from the 1st
// (floor 1.9) to the 10th (ceil 9.1 is the 10th): (10 - 1) / 2 / 5.5.
TEST(MedianUncertainty, IsThatOfOrderStatistics) {
  std::vector<Seconds> values;
  for (int i = 10; i > 0; --i) values.push_back(i * 1_s);
  EXPECT_DOUBLE_EQ(median_uncertainty(values), 4.5 / 5.5);
  EXPECT_TRUE(std::isinf(median_uncertainty({1_s, 1_s, 1_s, 1_s, 1_s})));
  EXPECT_EQ(median_uncertainty(std::vector<Seconds>(20, 1_s)), 0);
}

TEST(Samples, GiveMediansAndSpread) {
  Samples samples(3);
  samples.add(step(100_ms, 1_ms, 10_ms));
  samples.add(step(104_ms, 1_ms, 30_ms));
  samples.add(step(102_ms, 1_ms, 20_ms));
  const auto tasks = samples.tasks();
  EXPECT_DOUBLE_EQ(tasks[0].median / 1_ms, 102);
  EXPECT_DOUBLE_EQ(tasks[0].start / 1_ms, 0);
  EXPECT_DOUBLE_EQ(tasks[0].finish / 1_ms, 102);
  EXPECT_NEAR(tasks[0].low / 1_ms, 100.4, 1e-9);  // A fifth of the way from 100 to 102.
  EXPECT_NEAR(tasks[0].high / 1_ms, 103.6, 1e-9);
  EXPECT_NEAR(tasks[2].start / 1_ms, 103, 1e-9);
  EXPECT_EQ(tasks[2].slack, Seconds());
}

TEST(Samples, AreNarrowWhenStepsAndLargeKernelsAre) {
  const Program program = sample();
  const auto plan = value_of(plan_rank(program, 0));
  // The small kernel and the communication vary by half: nobody asks for them. The step is held
  // steady by the communication.
  Samples steady(3), moving(3);
  for (int i = 0; i < 20; ++i) {
    steady.add(step(100_ms, i % 2 * 0.4_ms + 0.2_ms, 10_ms - i % 2 * 0.4_ms));
    moving.add(step(100_ms + i * 0.5_ms, 0.5_ms, 20_ms - i * 0.5_ms));
  }
  EXPECT_TRUE(steady.narrow(0.02, plan));
  EXPECT_FALSE(moving.narrow(0.02, plan));  // Its large kernel is not.
  EXPECT_TRUE(moving.narrow(0.2, plan));
}

// Buffers: 100 MiB all the time; a (10 MiB) from the first kernel's start to its end; b (4 MiB)
// comes when the kernel before it starts. So a and b live together: 114 MiB.
TEST(ExpectedPeak, CountsBuffersAtMeasuredTimes) {
  const Program program = sample();
  const auto plan = value_of(plan_rank(program, 0));
  Samples samples(3);
  samples.add(step(100_ms, 1_ms, 10_ms));
  EXPECT_DOUBLE_EQ(expected_peak(plan, samples.tasks()) / 1_MiB, 114);
}

}  // namespace
}  // namespace foreshard::replay
