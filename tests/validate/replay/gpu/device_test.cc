// On a real GPU: kernels, cuBLASLt, streams, memory, NCCL. Skipped where there is none.
#include <cuda_runtime_api.h>

#include "tests/test.h"
#include "tests/validate/replay/gpu/memory_store.h"

#include "strategies/program/ir/verify.h"
#include "validate/replay/executor.h"
#include "validate/replay/gpu/checks.h"
#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

using program::StreamId;
using program::Task;

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const auto status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
      GTEST_SKIP() << "no GPU: cudaGetDeviceCount says "
                   << (status == cudaSuccess ? "0" : said(status));
  }
  static void expect_all(const std::vector<Check>& checks) {
    for (const Check& check : checks) {
      const auto fault = check.run();
      EXPECT_FALSE(fault) << check.name << ": " << *fault;
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "after " << check.name;
    }
  }
  // One rank, streams "compute" and "side"; kernels of a fraction of a millisecond or more.
  StepTimes run(std::vector<Task> tasks) {
    program_.name = "gpu";
    program_.mesh = {{"data", 1}};
    program_.streams = {{"compute"}, {"side"}};
    program_.blocks = {{"block", std::move(tasks)}};
    program_.roles = {{.name = "all", .ranks = {0}, .calls = {{.block = program::BlockId(0)}}}};
    EXPECT_TRUE(program::verify(program_).ok());
    auto plan = value_of(plan_rank(program_, 0));
    MemoryStore store;
    auto executor = value_of(make_gpu_executor({}, store));
    Watch watch;
    EXPECT_EQ(message_of(executor->prepare(plan, watch)), "accepted");
    EXPECT_TRUE(executor->step(watch));
    return value_of(executor->step(watch));
  }
  static Task gemm(const std::string& name, int stream, std::vector<std::int32_t> after = {}) {
    return {name, Kernel(Gemm{.m = 256, .n = 256, .k = 65536}), StreamId(stream), std::move(after)};
  }

  program::Program program_;
};

TEST_F(OnGpu, PassesComputeWhatTheyAreNamedAfter) {
  expect_all(pass_checks());
}
TEST_F(OnGpu, AttentionComputesSoftmaxOfScoresTimesValues) {
  expect_all(attention_checks());
}
TEST_F(OnGpu, GemmsComputeProducts) {
  expect_all(gemm_checks());
}

// Products of few tiles leave multiprocessors free, so two streams' overlap.
TEST_F(OnGpu, StreamsWithoutDependenciesOverlap) {
  const StepTimes times = run({gemm("a", 0), gemm("b", 1), gemm("c", 0), gemm("d", 1)});
  EXPECT_LT(times.start[1], times.finish[0]);
}

TEST_F(OnGpu, DependenciesBetweenStreamsHold) {
  const StepTimes times = run({gemm("a", 0), gemm("b", 1, {0}), gemm("c", 0, {1})});
  EXPECT_GE(times.start[1], times.finish[0] - 2_us);  // the resolution of events
  EXPECT_GE(times.start[2], times.finish[1] - 2_us);
}

}  // namespace
}  // namespace foreshard::replay::gpu
