// The whole pipeline on Programs small enough to work out by hand. Links carry 100 GB/s, that is
// 10 us per MB, after 1 us; kernels of 10^6 elements take 4 us.
#include "sim/simulate/simulate.h"

#include "tests/sim/simulate/small.h"
#include "tests/test.h"

namespace foreshard::sim {
namespace {

using program::Allocate;
using program::MemoryKind;

TEST(Simulate, OneTransferIsLatencyAndBytesOverBandwidth) {
  const auto program = each_rank({{send(1, 1_MB, kFirst)}, {receive(0, 1_MB, kFirst)}});
  for (const auto granularity : {Granularity::kFlat, Granularity::kStepwise})
    expect_time(run(star(2), program, {.granularity = granularity}).step, 11_us);
}

// Six steps, each 1 us and a quarter of 4 MB.
TEST(Simulate, RingAllReduceTakesTwoRoundsOfSteps) {
  const auto program = every_rank(4, {all_reduce(4_MB, kFirst)});
  for (const auto granularity : {Granularity::kFlat, Granularity::kStepwise}) {
    const auto prediction = run(star(4), program, {.granularity = granularity});
    expect_time(prediction.step, 2 * 3 * (1_us + 10_us));
    expect_time(prediction.breakdown.data, prediction.step);
    ASSERT_EQ(prediction.collectives.size(), 1u);
    EXPECT_EQ(prediction.collectives[0].what, "all_reduce over rank, 4 ranks");
    EXPECT_EQ(prediction.collectives[0].algorithm, "ring");
    EXPECT_EQ(prediction.collectives[0].operations, 1);
  }
}

// Both leave rank 0 by its one link: half of it each until the first is done (1 + 20 us), then all
// of it for the 2 MB that are left of the other.
TEST(Simulate, TwoFlowsShareALink) {
  const auto leaving = each_rank({{send(1, 1_MB, kFirst), send(2, 3_MB, kSecond)},
                                  {receive(0, 1_MB, kFirst)},
                                  {receive(0, 3_MB, kFirst)}});
  const auto arriving = each_rank({{receive(1, 1_MB, kFirst), receive(2, 3_MB, kSecond)},
                                   {send(0, 1_MB, kFirst)},
                                   {send(0, 3_MB, kFirst)}});
  for (const auto& program : {leaving, arriving}) {
    const auto prediction = run(star(3), program, {.timeline = true});
    expect_time(prediction.step, 41_us);
    ASSERT_EQ(prediction.timeline.size(), 4u);
    expect_time(prediction.timeline[0].finish, 21_us);
  }
}

// Directions do not disturb each other.
TEST(Simulate, LinksAreFullDuplex) {
  const auto program = each_rank({{send(1, 1_MB, kFirst), receive(1, 1_MB, kSecond)},
                                  {receive(0, 1_MB, kFirst), send(0, 1_MB, kSecond)}});
  expect_time(run(star(2), program).step, 11_us);
}

// Compute of 40 us beside an all-reduce of 66 us; after both, 8 us of optimizer. The all-reduce
// first waits for its 6 us of latency, then its one channel holds 1 of the 100 SMs, so that what is
// left of the kernel then takes 34 / 0.99 us. Instants with both count as compute.
TEST(Simulate, StreamsOverlapAndComputeCountsFirst) {
  auto adam = kernel("adam", 2 * kMillion, {0, 1});
  adam.optimizer = true;
  const auto prediction =
      run(star(4), every_rank(4, {kernel("work", 10 * kMillion), all_reduce(4_MB, kFirst), adam}));
  expect_time(prediction.step, 74_us);
  const Seconds compute = 6_us + 34_us / 0.99;
  expect_time(prediction.breakdown.compute, compute);
  expect_time(prediction.breakdown.data, 66_us - compute);
  expect_time(prediction.breakdown.optimizer, 8_us);
  expect_time(prediction.breakdown.total(), prediction.step);
  EXPECT_EQ(prediction.classes.size(), 1u);
  EXPECT_EQ(prediction.classes[0].count, 4);
}

// Of communication at once, tensor comes before pipeline before data (Breakdown).
TEST(Simulate, ExposedCommunicationCountsByPurpose) {
  auto tensor = send(1, 1_MB, kFirst);
  auto data = send(1, 1_MB, kSecond);
  std::get<program::Communication>(tensor.body).purpose = program::Purpose::kTensor;
  std::get<program::Communication>(data.body).purpose = program::Purpose::kData;
  std::get<program::Communication>(data.body).tag = "second";
  auto into = receive(0, 1_MB, kSecond);
  std::get<program::Communication>(into.body).tag = "second";
  // Then 1 MB of data alone.
  const auto prediction =
      run(star(2), each_rank({{tensor, data, data}, {receive(0, 1_MB, kFirst), into, into}}));
  // Both share until 21 us; the third takes 11 us more.
  expect_time(prediction.step, 32_us);
  expect_time(prediction.breakdown.tensor, 21_us);
  expect_time(prediction.breakdown.data, 11_us);
}

// Every kernel is launched by the host 5 us after the one before; kernels of 4 us keep up with
// that, ones of 40 us hide it.
TEST(Simulate, LaunchesDelayShortKernels) {
  auto program = every_rank(1, {kernel("a", kMillion), kernel("b", kMillion)});
  program.launch_time = 5_us;
  auto prediction = run(star(1), program);
  expect_time(prediction.step, 14_us);  // launched at 10
  expect_time(prediction.breakdown.host, 6_us);
  expect_time(prediction.breakdown.compute, 8_us);

  program = every_rank(1, {kernel("a", 10 * kMillion), kernel("b", 10 * kMillion)});
  program.launch_time = 5_us;
  expect_time(run(star(1), program).step, 85_us);
}

// As above on two hosts, one of 5 us and one of 1 us a launch: 10 + 4, and 1 + 4 + 4 on the other,
// which waits for the rest of the step.
TEST(Simulate, EachRankLaunchesAtThePaceOfItsHost) {
  auto program = every_rank(2, {kernel("a", kMillion), kernel("b", kMillion)});
  program.launch_time = 5_us;
  program.launch_time_of_rank = {5_us, 1_us};
  const auto prediction = run(star(2), program);
  expect_time(prediction.step, 14_us);
  ASSERT_EQ(prediction.classes.size(), 2u);
  expect_time(prediction.classes[0].breakdown.host, 6_us);
  expect_time(prediction.classes[1].finish, 9_us);
  expect_time(prediction.classes[1].breakdown.host, 1_us);
  expect_time(prediction.classes[1].breakdown.compute, 8_us);
  expect_time(prediction.classes[1].breakdown.bubble, 5_us);
}

// A Sync keeps the host from running ahead: 5 + 40, then 5 + 40 again. HostWork delays likewise.
TEST(Simulate, TheHostWaitsAtASync) {
  auto program = every_rank(1, {kernel("a", 10 * kMillion),
                                {.name = "wait", .body = program::Sync{}},
                                kernel("b", 10 * kMillion)});
  program.launch_time = 5_us;
  auto prediction = run(star(1), program);
  expect_time(prediction.step, 90_us);
  expect_time(prediction.breakdown.host, 10_us);

  program = every_rank(
      1, {{.name = "think", .body = program::HostWork{30_us}}, kernel("b", 10 * kMillion)});
  program.launch_time = 5_us;
  prediction = run(star(1), program);
  expect_time(prediction.step, 75_us);
  expect_time(prediction.breakdown.host, 35_us);
}

// Each kernel waited for: 5 + 40, 5 + 4. The Syncs are the ends of the kernels, one activity each
// with them or not; the last waits for launches as well: two of them since the one before.
TEST(Simulate, ASyncIsTheEndOfTheTaskThatItWaitsFor) {
  const auto wait = [](const std::string& name, std::int32_t task) {
    program::Task sync{.name = name, .body = program::Sync{}};
    sync.after = {task};
    return sync;
  };
  auto program = every_rank(
      1, {kernel("a", 10 * kMillion), wait("after a", 0), kernel("b", kMillion), wait("after b", 2),
          kernel("c", kMillion), kernel("d", kMillion), wait("after c", 4)});
  program.launch_time = 5_us;
  for (const bool coalesce : {false, true}) {
    SCOPED_TRACE(coalesce);
    const auto prediction = run(star(1), program, {.coalesce = coalesce, .timeline = true});
    expect_time(prediction.step, 68_us);
    expect_time(prediction.breakdown.host, 16_us);  // 5 before each, 1 before the last
    ASSERT_EQ(prediction.timeline.size(), 7u);
    for (const std::size_t sync : {1u, 3u}) {
      EXPECT_EQ(prediction.timeline[sync].start, prediction.timeline[sync - 1].finish);
      EXPECT_EQ(prediction.timeline[sync].finish, prediction.timeline[sync - 1].finish);
    }
    expect_time(prediction.timeline[6].finish, 64_us);  // 54 + 2 launches; c ended at 63
    EXPECT_EQ(prediction.critical_path.size(), 4u);
  }
}

// The breakdown is that of the class which ends last, whether others have one or not.
TEST(Simulate, OneClassCanBeEnoughForABreakdown) {
  const auto program = each_rank({{kernel("a", 10 * kMillion), send(1, 1_MB, kFirst, {0})},
                                  {receive(0, 1_MB, kFirst), kernel("b", 2 * kMillion, {0})}});
  const auto every = run(star(2), program);
  const auto last = run(star(2), program, {.every_class = false});
  EXPECT_EQ(last.breakdown.bubble, every.breakdown.bubble);
  EXPECT_EQ(last.classes[1].breakdown.compute, every.classes[1].breakdown.compute);
  EXPECT_EQ(last.classes[0].finish, every.classes[0].finish);
  EXPECT_GT(every.classes[0].breakdown.compute, 0_s);
  EXPECT_EQ(last.classes[0].breakdown.compute, 0_s);
}

// Rank 1 waits 40 us for rank 0 (bubble), 11 us for the transfer, computes 8 us. Rank 0 is done
// after 51 us and idle for the rest.
TEST(Simulate, WaitingForAnotherStageIsBubble) {
  const auto prediction =
      run(star(2), each_rank({{kernel("a", 10 * kMillion), send(1, 1_MB, kFirst, {0})},
                              {receive(0, 1_MB, kFirst), kernel("b", 2 * kMillion, {0})}}));
  expect_time(prediction.step, 59_us);
  expect_time(prediction.breakdown.bubble, 40_us);
  expect_time(prediction.breakdown.pipeline, 11_us);
  expect_time(prediction.breakdown.compute, 8_us);
  ASSERT_EQ(prediction.classes.size(), 2u);
  const Breakdown& first = prediction.classes[0].breakdown;
  expect_time(first.compute, 40_us);
  expect_time(first.pipeline, 11_us);
  expect_time(first.bubble, 8_us);
  expect_time(prediction.classes[0].finish, 51_us);

  // The path: a, its transfer, b. Each begins where the one before ends.
  ASSERT_EQ(prediction.critical_path.size(), 3u);
  EXPECT_EQ(prediction.critical_path[0].start, 0_s);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_EQ(prediction.critical_path[i].start, prediction.critical_path[i - 1].finish);
  EXPECT_EQ(prediction.critical_path.back().finish, prediction.step);
}

// 100 MB always; 300 MB from the start of `a` to the end of `b`; 200 MB during `b`.
TEST(Simulate, MemoryIsLiveFromAllocateToFree) {
  auto program =
      every_rank(1, {{.name = "keep", .body = Allocate{"kept", MemoryKind::kActivations, 300_MB}},
                     kernel("a", kMillion),
                     kernel("b", kMillion),
                     {.name = "work", .body = Allocate{"work", MemoryKind::kBuffers, 200_MB}},
                     {.name = "work done", .body = program::Free{"work"}},
                     {.name = "forget", .body = program::Free{"kept"}},
                     kernel("c", kMillion)});
  program.roles[0].memory = {{MemoryKind::kParameters, 100_MB}};
  auto prediction = run(star(1), program);
  const MemoryUse& memory = prediction.classes[0].memory;
  EXPECT_EQ(memory.peak, 600_MB);
  expect_time(memory.peak_time, 4_us);
  EXPECT_EQ(memory.by_kind[static_cast<std::size_t>(MemoryKind::kParameters)], 100_MB);
  EXPECT_EQ(memory.by_kind[static_cast<std::size_t>(MemoryKind::kActivations)], 300_MB);
  EXPECT_EQ(memory.by_kind[static_cast<std::size_t>(MemoryKind::kBuffers)], 200_MB);
  EXPECT_TRUE(prediction.fits);
  EXPECT_EQ(prediction.memory_capacity, 1_GB);

  // 600 MB of tensors and a reserve of 400 MB are just all that the device has.
  for (const Bytes reserve : {400_MB, 401_MB}) {
    const auto held = value_of(simulate(star(1), program, rings(), {.reserve = reserve}));
    EXPECT_EQ(held.fits, reserve == 400_MB);
    EXPECT_EQ(held.memory_reserve, reserve);
    EXPECT_EQ(held.classes[0].memory.peak, 600_MB);
  }

  program.roles[0].memory = {{MemoryKind::kParameters, 600_MB}};
  EXPECT_FALSE(run(star(1), program).fits);
}

// 2 PFLOP in 8 us on two devices of 100 TFLOP/s.
TEST(Simulate, ThroughputIsOfTheModel) {
  auto program = every_rank(2, {kernel("a", 2 * kMillion)});
  program.totals = {.samples = 4, .tokens = 80, .model_flops = 0.4_GFLOP, .peak_dtype = "bf16"};
  const auto prediction = run(star(2), program);
  EXPECT_EQ(prediction.samples, 4);
  EXPECT_NEAR(prediction.model_tflops_per_device, 25, 1e-9);
  EXPECT_NEAR(prediction.mfu, 0.25, 1e-12);
  EXPECT_EQ(prediction.total_tasks, 2);
}

TEST(Simulate, NeedsADevicePerRank) {
  const auto program = every_rank(4, {kernel("a", 1)});
  EXPECT_THAT(
      error_of(simulate(star(3), program, rings(), {})),
      Fails(Error::Code::kInvalidInput, "the program has 4 ranks, cluster 'star' only 3 devices"));

  auto placed = every_rank(2, {kernel("a", 1)});
  placed.device_of_rank = {0, 7};
  EXPECT_EQ(simulate(star(3), placed, rings(), {}).error().message,
            "the program puts a rank on device 7, cluster 'star' has only 3");
}

}  // namespace
}  // namespace foreshard::sim
