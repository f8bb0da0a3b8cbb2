// The GPU executor on a CUDA runtime without a device: what it issues, times, keeps and says. Ranks
// of a job are threads.
#include "validate/replay/executor.h"

#include <mutex>
#include <thread>

#include "tests/test.h"
#include "tests/validate/replay/gpu/fake_nccl.h"
#include "tests/validate/replay/gpu/fake_runtime.h"
#include "tests/validate/replay/gpu/memory_store.h"

#include "strategies/program/ir/verify.h"
#include "validate/replay/gpu/emulation.h"
#include "validate/replay/session.h"

namespace foreshard::replay::gpu {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::StreamId;
using program::Task;

// Ranks in a line, one role, streams "compute" and "side".
program::Program line_of(int ranks, std::vector<Task> tasks) {
  program::Program program;
  program.name = "line";
  program.mesh = {{"data", ranks}};
  program.streams = {{"compute"}, {"side"}};
  program.blocks = {{"block", std::move(tasks)}};
  program::Role role{.name = "all", .calls = {{.block = program::BlockId(0)}}};
  for (int r = 0; r < ranks; ++r) role.ranks.push_back(r);
  program.roles = {role};
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program;
}

Task pass(const std::string& name, std::vector<std::int32_t> after = {}) {
  return {name, Kernel(Pass{PassKind::kGeluForward, 64, 64, DType::kBf16}), StreamId(0),
          std::move(after)};
}
Task communicate(const std::string& name, CollectiveKind kind, DType dtype = DType::kBf16,
                 std::vector<std::int32_t> after = {}) {
  return {name,
          Communication{
              .kind = kind, .group = program::AxisGroup{{0}, {}}, .bytes = 4096_B, .dtype = dtype},
          StreamId(1), std::move(after)};
}

RankPlan plan_of(const program::Program& program, std::int32_t rank) {
  return value_of(plan_rank(program, rank));
}

class GpuExecutorTest : public testing::Test {
 protected:
  ~GpuExecutorTest() override {
    EXPECT_EQ(fake_device().events, 0U);
    EXPECT_EQ(fake_device().streams, 0U);
    EXPECT_EQ(fake_device().used, 0U);
    fake_device() = FakeDevice{};
    fake_nccl() = FakeNccl{};
  }
  std::unique_ptr<Executor> make(const ExecutorOptions& options = {}) {
    return value_of(make_gpu_executor(options, store_));
  }
  MemoryStore store_;
  Watch watch_;
};

TEST_F(GpuExecutorTest, SaysWhyThereIsNoGpu) {
  fake_device().count = 0;
  EXPECT_THAT(error_of(make_gpu_executor({}, store_)),
              Fails(Error::Code::kUnsupported,
                    HasSubstr("no GPU: cudaGetDeviceCount says cudaErrorNoDevice")));
}

TEST_F(GpuExecutorTest, RefusesMoreProcessesThanGpus) {
  fake_device().count = 2;
  EXPECT_THAT(message_of(make_gpu_executor({.local_rank = 2}, store_)),
              HasSubstr("which shows 2 GPUs"));
  EXPECT_TRUE(make_gpu_executor({.local_rank = 1}, store_));
  EXPECT_EQ(fake_device().current, 1);
  EXPECT_TRUE(make_gpu_executor({.local_rank = 2, .shared = true}, store_));
  EXPECT_EQ(fake_device().current, 0);
}

// A product that the Program's library computes outside the matrix units.
TEST_F(GpuExecutorTest, RefusesProductsThatTheLibraryWouldTakeOtherwise) {
  const auto program = line_of(
      1,
      {{"gemm", Kernel(Gemm{.m = 32, .n = 32, .k = 31, .matrix_units = false}), StreamId(0), {}}});
  const RankPlan plan = plan_of(program, 0);
  EXPECT_THAT(error_of(make()->prepare(plan, watch_)),
              Fails(Error::Code::kUnsupported, HasSubstr("matrix_units_need_alignment")));
}

// srun --gpus-per-task=1: each task sees one device, its own, whatever its number on the host.
TEST_F(GpuExecutorTest, TakesTheOnlyDeviceItSees) {
  fake_device().uuid = 0x3f;
  const auto first = make({.local_rank = 0});
  fake_device().uuid = 0x41;
  const auto second = make({.local_rank = 1});
  EXPECT_EQ(fake_device().current, 0);
  EXPECT_THAT(second->sole_device(), StartsWith("GPU-4100"));
  EXPECT_THAT(second->device(), StartsWith("Fake GPU, GPU-4100"));
  // Who may share a device claims none.
  EXPECT_EQ(make({.local_rank = 1, .shared = true})->sole_device(), "");
}

TEST_F(GpuExecutorTest, ReadsClocksAndWhatHoldsThemDown) {
  ASSERT_EQ(setenv("FORESHARD_LIBRARY_PATH", FAKE_NVML_FOLDER, 1), 0);
  const auto executor = make();
  unsetenv("FORESHARD_LIBRARY_PATH");
  const measure::Reading reading = executor->reading();
  EXPECT_EQ(reading.clock_mhz, 1755);
  EXPECT_EQ(reading.memory_clock_mhz, 3201);
  EXPECT_EQ(reading.celsius, 84);
  EXPECT_EQ(reading.watts, 612.5);
  EXPECT_THAT(reading.throttle, ElementsAre("sw_power_cap", "sw_thermal"));
}

// Tasks of every kind on one rank: in order, with finite times, and the host's among them.
TEST_F(GpuExecutorTest, TimesEveryInstance) {
  const auto program = line_of(
      1,
      {pass("a"),
       {"gemm", Kernel(Gemm{.m = 32, .n = 32, .k = 32}), StreamId(0), {}},
       {"attend",
        Kernel(Attention{
            .query_heads = 1, .kv_heads = 1, .query_length = 64, .key_length = 64, .head_dim = 64}),
        StreamId(0),
        {}},
       {"work", program::HostWork{3_ms}, {}, {}},
       {"sync", program::Sync{}, {}, {}},
       pass("b")});
  const RankPlan plan = plan_of(program, 0);
  const auto executor = make();
  ASSERT_TRUE(executor->prepare(plan, watch_).ok());
  const auto times = value_of(executor->step(watch_));
  ASSERT_EQ(times.start.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_LE(times.start[i], times.finish[i]);
  EXPECT_GE(times.finish[3] - times.start[3], 3_ms);  // the host's work
  EXPECT_LE(times.finish[2], times.finish[4]);        // the Sync waits for all before it
  EXPECT_LE(times.finish[3], times.start[5]);         // what follows is launched after it
  EXPECT_EQ(times.total, times.finish[5]);
  EXPECT_THAT(times.slack, IsEmpty());
  EXPECT_EQ(watch_.instance(), 5);
}

// Streams compute: a, b, c, d; side: p, q. b waits for p, and q for c. Of the 12 events around
// tasks a bare step has those after p, c, d and q: what others wait for, and the last ones.
TEST_F(GpuExecutorTest, ABareStepHasNoEventsForTimesOnly) {
  auto p = pass("p");
  auto q = pass("q", {3});
  p.stream = q.stream = StreamId(1);
  const auto program = line_of(1, {pass("a"), p, pass("b", {1}), pass("c"), q, pass("d")});
  const RankPlan plan = plan_of(program, 0);
  const auto executor = make();
  ASSERT_TRUE(executor->prepare(plan, watch_).ok());
  ASSERT_TRUE(executor->step(watch_));
  std::size_t before = fake_device().records;
  ASSERT_TRUE(executor->step(watch_));
  EXPECT_EQ(fake_device().records - before, 1U + 12U);  // one begins the step
  before = fake_device().records;
  const auto bare = value_of(executor->bare_step(watch_));
  EXPECT_EQ(fake_device().records - before, 1U + 4U);
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->events, 8);
  EXPECT_GT(bare->total, 0_s);
  EXPECT_LT(bare->total, 1_s);
  EXPECT_EQ(watch_.instance(), 5);
}

// Two products of one shape and one of another; 2 x 4 events time tasks, of which the last stays.
TEST_F(GpuExecutorTest, AMeasurementSaysWhatTimingCostAndWhatOtherKernelsWouldSave) {
  const auto gemm = [](const std::string& name, std::int64_t k) {
    return Task{name, Kernel(Gemm{.m = 32, .n = 32, .k = k}), StreamId(0), {}};
  };
  const auto program = line_of(1, {gemm("a", 32), gemm("b", 64), gemm("c", 32), pass("d")});
  const RankPlan plan = plan_of(program, 0);
  const auto executor = make();
  Watchdog watchdog({.patience = 60_s}, plan, store_, watch_, [](const std::string&) {});
  const auto result =
      value_of(run_session(plan, *executor, store_, watch_, watchdog, {.warmup = 1, .repeats = 3}));
  const measure::RankRecord& rank = result.measurement->ranks[0];
  EXPECT_EQ(rank.steps.size(), 3U);
  ASSERT_TRUE(rank.timing);
  EXPECT_EQ(rank.timing->events, 7);
  EXPECT_DOUBLE_EQ(rank.timing->event / 1_s, rank.timing->step / 7_s);
  ASSERT_EQ(rank.gemms.size(), 2U);
  EXPECT_EQ(rank.gemms[0].kernel, describe(Kernel(Gemm{.m = 32, .n = 32, .k = 32})));
  EXPECT_EQ(rank.gemms[0].count, 2);
  EXPECT_EQ(rank.gemms[1].count, 1);
  const std::string text = summary(result);
  EXPECT_THAT(text, HasSubstr("note: the 7 events that time the tasks "));
  EXPECT_THAT(text,
              HasSubstr("note: matrix products take cuBLASLt's first proposals, alone 60.0 us "
                        "of a step of rank 0; the fastest proposals would take 15.0 us less"));
}

// One rank of four, alone: its communications end when they are told to, and slack says who waits.
// "early" arrives at 1 ms and is used after the host's 10 ms: 9 ms or more of slack. "late" arrives
// at 40 ms, when its user has been ready since the 10 ms: it waits for 25 ms or more.
TEST_F(GpuExecutorTest, ReplaysOneRankWithArrivals) {
  const auto program = line_of(4, {communicate("early", CollectiveKind::kAllReduce),
                                   communicate("late", CollectiveKind::kAllGather),
                                   {"work", program::HostWork{10_ms}, {}, {}},
                                   pass("uses early", {0}),
                                   pass("uses late", {1})});
  const RankPlan plan = plan_of(program, 2);
  const auto executor = make({.mode = measure::Mode::kOneRank, .arrivals = {1_ms, 40_ms}});
  ASSERT_TRUE(executor->prepare(plan, watch_).ok());
  const auto times = value_of(executor->step(watch_));
  EXPECT_GE(times.finish[0], 0.9_ms);
  EXPECT_GE(times.finish[1], 39_ms);
  EXPECT_GE(times.start[4], times.finish[1]);
  ASSERT_EQ(times.slack.size(), 5U);
  EXPECT_EQ(times.slack[3], 0_s);  // no communication
  EXPECT_THAT(executor->machine().facts, Contains(testing::Key("device")));
}

// 1 KiB of parameters, then 4 KiB and 2 KiB at once, then 4 KiB in the first one's place.
TEST_F(GpuExecutorTest, KeepsWhatTheProgramAllocates) {
  const auto allocate = [](const std::string& name, Bytes bytes) {
    return Task{name, program::Allocate{name, program::MemoryKind::kActivations, bytes}, {}, {}};
  };
  const auto free = [](const std::string& name) {
    return Task{"free " + name, program::Free{name}, {}, {}};
  };
  auto program =
      line_of(1, {pass("a"), allocate("x", 4_KiB), allocate("y", 2_KiB), pass("b"), free("x"),
                  pass("c"), allocate("z", 4_KiB), pass("d"), free("y"), free("z")});
  program.roles[0].memory = {{program::MemoryKind::kParameters, 1_KiB}};
  const RankPlan plan = plan_of(program, 0);
  const auto executor = make();
  ASSERT_TRUE(executor->prepare(plan, watch_).ok());
  EXPECT_EQ(executor->peak_memory(), 7_KiB);
  EXPECT_GT(executor->scratch(), 0_B);

  program.roles[0].memory = {{program::MemoryKind::kParameters, 900_MiB}};
  program.blocks[0].tasks[1] = allocate("x", 200_MiB);
  const RankPlan large = plan_of(program, 0);
  const auto second = make();
  EXPECT_THAT(error_of(second->prepare(large, watch_)),
              Fails(Error::Code::kInfeasible, AllOf(HasSubstr("activations x at kernel a"),
                                                    HasSubstr("200 MiB"), HasSubstr("free"))));
}

TEST_F(GpuExecutorTest, RefusesWhatItHasNoKernelFor) {
  const auto program = line_of(1, {{"attend",
                                    Kernel(Attention{.query_heads = 1,
                                                     .kv_heads = 1,
                                                     .query_length = 64,
                                                     .key_length = 64,
                                                     .head_dim = 256}),
                                    StreamId(0),
                                    {}}});
  const RankPlan plan = plan_of(program, 0);
  EXPECT_THAT(error_of(make()->prepare(plan, watch_)),
              Fails(Error::Code::kUnsupported, HasSubstr("heads are multiples of 8 up to 128")));
}

TEST_F(GpuExecutorTest, StopsWhenAsked) {
  const RankPlan plan = [&] {
    static const auto program = line_of(1, {pass("a"), pass("b")});
    return plan_of(program, 0);
  }();
  const auto executor = make();
  ASSERT_TRUE(executor->prepare(plan, watch_).ok());
  watch_.stop();
  EXPECT_THAT(message_of(executor->step(watch_)), HasSubstr("stopped"));
}

TEST_F(GpuExecutorTest, SaysThatNcclIsMissingOnlyWhereItIsNeeded) {
  fake_nccl().absent = true;
  EXPECT_TRUE(make()->prepare(plan_of(line_of(1, {pass("a")}), 0), watch_).ok());
  const auto two = line_of(2, {communicate("sum", CollectiveKind::kAllReduce)});
  const RankPlan first = plan_of(two, 0);
  EXPECT_THAT(error_of(make()->prepare(first, watch_)),
              Fails(Error::Code::kUnsupported, HasSubstr("NCCL is not here")));
}

// Runs all ranks of a program, each a thread.
std::vector<Verification> verify_all(const program::Program& program) {
  MemoryStore store;
  const auto ranks = static_cast<std::size_t>(program.ranks());
  std::vector<Verification> found(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      Watch watch;
      const RankPlan plan = plan_of(program, static_cast<std::int32_t>(r));
      auto executor = value_of(make_gpu_executor({.shared = true}, store));
      ASSERT_EQ(message_of(executor->prepare(plan, watch)), "accepted");
      for (int repeat = 0; repeat < 2; ++repeat) value_of(executor->step(watch));
      found[r] = value_of(executor->verify(watch));
    });
  for (std::thread& thread : threads) thread.join();
  return found;
}

program::Program every_collective() {
  auto program =
      line_of(4, {communicate("sum", CollectiveKind::kAllReduce),
                  communicate("sum again", CollectiveKind::kAllReduce, DType::kFp32, {0}),
                  communicate("gather", CollectiveKind::kAllGather),
                  pass("between", {2}),
                  communicate("scatter", CollectiveKind::kReduceScatter, DType::kFp32, {3}),
                  communicate("swap", CollectiveKind::kAllToAll),
                  communicate("spread", CollectiveKind::kBroadcast),
                  communicate("round", CollectiveKind::kShift),
                  {"shift",
                   Communication{.kind = CollectiveKind::kExchange,
                                 .group = program::AxisGroup{{0}, {}},
                                 .bytes = 700_B,
                                 .dtype = DType::kBf16,
                                 .transfers = {{0, 1, 100_B},
                                               {0, 1, 50_B},
                                               {1, 2, 100_B},
                                               {2, 3, 150_B},
                                               {3, 0, 200_B},
                                               {2, 0, 100_B}}},
                   StreamId(1),
                   {}}});
  std::get<Communication>(program.blocks[0].tasks[6].body).roots = {2};
  EXPECT_TRUE(program::verify(program).ok());
  return program;
}

TEST_F(GpuExecutorTest, VerifiesEveryCollectiveOfFourRanks) {
  const auto found = verify_all(every_collective());
  for (const Verification& each : found) {
    EXPECT_EQ(each.operations, 8);
    EXPECT_THAT(each.faults, IsEmpty());
  }
  // all_reduce bf16 2048 and fp32 1024, all_gather 2048, reduce_scatter 256, all_to_all 2048,
  // broadcast 2048, shift 2048: 11520; rank 0 receives 300 bytes, 150 numbers, in the exchange.
  EXPECT_EQ(found[0].elements, 11520 + 150);
}

// Each of two ranks sends before it receives, on streams of their own. A step's order would be a
// deadlock where the first send waits for its receiver.
TEST_F(GpuExecutorTest, ConnectsBeforeTheFirstStep) {
  const auto transfer = [](const std::string& name, CollectiveKind kind, int peer, int stream) {
    auto task = communicate(name, kind);
    std::get<Communication>(task.body).group = program::AxisPeer{0, peer};
    task.stream = StreamId(stream);
    return task;
  };
  program::Program program;
  program.name = "crossing";
  program.mesh = {{"stage", 2}};
  program.streams = {{"compute"}, {"sends"}, {"receives"}};
  program.blocks = {{"first",
                     {transfer("there", CollectiveKind::kSend, 1, 1),
                      transfer("back", CollectiveKind::kReceive, 1, 2)}},
                    {"second",
                     {transfer("back", CollectiveKind::kSend, 0, 1),
                      transfer("there", CollectiveKind::kReceive, 0, 2)}}};
  program.roles = {{.name = "first", .ranks = {0}, .calls = {{.block = program::BlockId(0)}}},
                   {.name = "second", .ranks = {1}, .calls = {{.block = program::BlockId(1)}}}};
  ASSERT_TRUE(program::verify(program).ok());
  fake_nccl().waits_once = true;
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Watch watch;
      const RankPlan plan = plan_of(program, r);
      auto executor = make_gpu_executor({.shared = true}, store_);
      ASSERT_EQ(message_of((*executor)->prepare(plan, watch)), "accepted");
      EXPECT_EQ(watch.instance(), -1);
      value_of((*executor)->step(watch));
    });
  for (std::thread& thread : threads) thread.join();
}

// A kernel that CUDA loads when it is first launched may wait for the device, and so for a peer, if
// NCCL's runs by then. The checks' own kernels are loaded when they are wanted, between steps.
TEST_F(GpuExecutorTest, HasLoadedEveryKernelBeforeItCommunicates) {
  auto program = line_of(
      2,
      {{"gemm", Kernel(Gemm{.m = 32, .n = 32, .k = 32}), StreamId(0), {}},
       communicate("sum", CollectiveKind::kAllReduce),
       pass("between", {1}),
       communicate("gather", CollectiveKind::kAllGather, DType::kFp32),
       {"attend",
        Kernel(Attention{
            .query_heads = 1, .kv_heads = 1, .query_length = 64, .key_length = 64, .head_dim = 64}),
        StreamId(0),
        {3}},
       {"gemm", Kernel(Gemm{.m = 32, .n = 32, .k = 64}), StreamId(0), {}}});
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Watch watch;
      const RankPlan plan = plan_of(program, r);
      auto executor = make_gpu_executor({.shared = true}, store_);
      ASSERT_TRUE((*executor)->prepare(plan, watch).ok());
      ASSERT_TRUE((*executor)->step(watch));
      EXPECT_GE(emulation::launched().size(), 4U);  // two products, gelu, attention
      EXPECT_EQ(emulation::launched(), fake_rank().at_init);
      EXPECT_EQ(emulation::launched(), fake_rank().at_first_operation);
      fake_rank() = {};
      ASSERT_TRUE((*executor)->verify(watch));
      EXPECT_EQ(emulation::launched(), fake_rank().at_first_operation);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GpuExecutorTest, FindsAWrongNumber) {
  const auto program = line_of(2, {communicate("sum", CollectiveKind::kAllReduce)});
  std::vector<std::string> faults;
  // Steps do not look; only the verification's own operation may be wrong.
  std::vector<std::thread> threads;
  threads.reserve(2);
  std::mutex mutex;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Watch watch;
      const RankPlan plan = plan_of(program, r);
      auto executor = make_gpu_executor({.shared = true}, store_);
      ASSERT_TRUE((*executor)->prepare(plan, watch).ok());
      if (r == 0) fake_nccl().wrong = true;
      const auto verification = value_of((*executor)->verify(watch));
      const std::lock_guard guard(mutex);
      faults.insert(faults.end(), verification.faults.begin(), verification.faults.end());
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0], HasSubstr("all_reduce sum"));
  EXPECT_THAT(faults[0], HasSubstr("element 0 is "));
  EXPECT_THAT(faults[0], HasSubstr("(1 of 2048 are wrong)"));
}

}  // namespace
}  // namespace foreshard::replay::gpu
