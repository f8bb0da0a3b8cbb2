// Whole Programs on the host executor: ranks are threads, messages go through memory.
#include <atomic>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"
#include "tests/validate/replay/host/memory_wire.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"
#include "validate/replay/host/host_executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host::executor_test {

using program::Program;
using program::Task;

constexpr RegionBounds kSmall{.least = 64_KiB, .most = 64_KiB};

std::vector<RankPlan> plans_of(const Program& program) {
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  std::vector<RankPlan> plans;
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank)
    plans.push_back(value_of(plan_rank(program, rank)));
  return plans;
}

struct Replayed {
  std::vector<std::string> errors{};
  std::vector<std::string> faults{};
  std::int64_t operations = 0;
  std::vector<Bytes> peaks{};
};

// Verifies on every rank, then runs `steps` more.
Replayed replay(const std::vector<RankPlan>& plans, Net& net, int steps = 1) {
  struct Rank {
    Status error;
    Verification verification;
    Bytes peak;
  };
  std::vector<Rank> ranks(plans.size());
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Watch>> watches;
  for (std::size_t r = 0; r < plans.size(); ++r) watches.push_back(std::make_unique<Watch>());
  for (std::size_t r = 0; r < plans.size(); ++r)
    threads.emplace_back([&, r] {
      Rank& rank = ranks[r];
      Watch& watch = *watches[r];
      const auto executor =
          make_executor_on(std::make_unique<MemoryWire>(net, plans[r].rank), {}, kSmall);
      rank.error = executor->prepare(plans[r], watch);
      if (!rank.error.ok()) return;
      auto verification = executor->verify(watch);
      if (!verification) {
        rank.error = verification.error();
        return;
      }
      rank.verification = *std::move(verification);
      for (int i = 0; i < steps; ++i) {
        const auto times = executor->step(watch);
        if (!times) rank.error = times.error();
      }
      rank.peak = executor->peak_memory();
    });
  for (std::thread& thread : threads) thread.join();
  Replayed out;
  for (Rank& rank : ranks) {
    if (!rank.error.ok()) out.errors.push_back(rank.error.error().message);
    for (auto& fault : rank.verification.faults) out.faults.push_back(std::move(fault));
    out.operations += rank.verification.operations;
    out.peaks.push_back(rank.peak);
  }
  return out;
}

// Strategies of all kinds - tensor, context, expert, pipeline (interleaved, too) and data parallel,
// ZeRO - of small random models: no rank hangs, all numbers are right, nothing is left over.
TEST(HostExecutor, VerifiesRandomStrategies) {
  std::mt19937 random(20'241);
  int checked = 0;
  for (int attempt = 0; attempt < 60 && checked < 24; ++attempt) {
    const Training training = random_training(random, 8);
    const auto program =
        value_of(lower::lower(training.model, training.strategy, {.launch_time = 5_us}));
    if (program.ranks() < 2) continue;
    SCOPED_TRACE(describe(training));
    Net net(static_cast<std::int32_t>(program.ranks()));
    const Replayed outcome = replay(plans_of(program), net);
    ASSERT_THAT(outcome.errors, IsEmpty());
    ASSERT_THAT(outcome.faults, IsEmpty());
    ASSERT_GT(outcome.operations, 0);
    ASSERT_TRUE(net.silent());
    ++checked;
  }
  EXPECT_EQ(checked, 24);
}

Program two_ranks(std::vector<Task> tasks, std::vector<program::StaticMemory> memory = {}) {
  Program program;
  program.name = "pair";
  program.mesh = {{"data", 2}};
  program.streams = {{"compute"}, {"side"}};
  program.blocks = {{"block", std::move(tasks)}};
  program.roles = {{.name = "all",
                    .ranks = {0, 1},
                    .calls = {{.block = program::BlockId(0)}},
                    .memory = std::move(memory)}};
  return program;
}
Task kernel(const std::string& name, std::vector<std::int32_t> after = {}) {
  return {.name = name,
          .body = Kernel(Gemm{.m = 64, .n = 64, .k = 64, .dtype = DType::kFp32}),
          .stream = program::StreamId(0),
          .after = std::move(after)};
}
Task all_reduce(const std::string& name, std::vector<std::int32_t> after = {}) {
  return {
      .name = name,
      .body = program::Communication{.kind = program::CollectiveKind::kAllReduce,
                                     .group = program::AxisGroup{.axes = {0}, .coordinates = {}},
                                     .bytes = 4_MB,
                                     .dtype = DType::kFp32},
      .stream = program::StreamId(1),
      .after = std::move(after)};
}

// One bit of one message is wrong: the faults say which operation, rank and element.
TEST(HostExecutor, VerificationNamesWhatIsWrong) {
  const Program program = two_ranks({kernel("a"), all_reduce("grads", {0})});
  Net net(2);
  net.spoil_message(0);
  const Replayed outcome = replay(plans_of(program), net);
  EXPECT_THAT(outcome.errors, IsEmpty());
  ASSERT_FALSE(outcome.faults.empty());
  EXPECT_THAT(outcome.faults[0],
              testing::MatchesRegex("all_reduce grads #0 on rank [01]: element [0-9]+ is .*, not "
                                    "[0-8]"));
}

// Rank 1 carries out its two all-reduces in the other order.
TEST(HostExecutor, VerificationFindsOperationsInAnotherOrder) {
  const Program program = two_ranks({kernel("a"), all_reduce("x"), all_reduce("y")});
  std::vector<RankPlan> plans = plans_of(program);
  // What it gives as "x" is its data of "y", and the other way round: of the same size, so that
  // nothing hangs.
  plans[1].operations[1].ordinal = 1;
  plans[1].operations[2].ordinal = 0;
  Net net(2);
  EXPECT_FALSE(replay(plans, net).faults.empty());
}

// By hand: 1 MB static; act 2 MB from a on, tmp 3 MB from b on, act is freed after c.
// a: 3, b: 6, c: 6 MB; blocks of 256 B are whole.
TEST(HostExecutor, MeasuresThePeakOfBuffers) {
  const auto allocate = [](const std::string& name, Bytes bytes) {
    return Task{.name = "new " + name, .body = program::Allocate{.buffer = name, .bytes = bytes}};
  };
  const auto free = [](const std::string& name) {
    return Task{.name = "free " + name, .body = program::Free{.buffer = name}};
  };
  const Program program =
      two_ranks({kernel("a"), allocate("act", 2'000'128_B), kernel("b"),
                 allocate("tmp", 3'000'064_B), free("tmp"), kernel("c"), free("act")},
                {{.kind = program::MemoryKind::kParameters, .bytes = 1_MB}});
  Net net(2);
  const Replayed outcome = replay(plans_of(program), net, 3);
  EXPECT_THAT(outcome.errors, IsEmpty());
  // 2000128 = 7813 x 256; 3000064 = 11719 x 256 - 0.
  EXPECT_THAT(outcome.peaks, ElementsAre(6'000'192_B, 6'000'192_B));
}

TEST(HostExecutor, NamesTheBufferThatDoesNotFit) {
  const auto huge =
      Task{.name = "new act", .body = program::Allocate{.buffer = "act", .bytes = 800_TiB}};
  const Program program = two_ranks(
      {kernel("mlp"), huge, Task{.name = "free act", .body = program::Free{.buffer = "act"}}});
  Net net(2);
  const Replayed outcome = replay(plans_of(program), net);
  ASSERT_EQ(outcome.errors.size(), 2U);  // Both end: none waits for the other.
  EXPECT_THAT(
      outcome.errors[0],
      HasSubstr("out of memory on rank 0: buffer act of kernel mlp (layer 0, micro-batch 0; "
                "gemm 64x64x64 fp32) asks for 800 TiB when "));
  EXPECT_THAT(outcome.errors[1], HasSubstr("out of memory"));
}

TEST(HostExecutor, NamesTheKernelWhoseOperandsDoNotFit) {
  Task task = kernel("mlp");
  task.body = Kernel(Gemm{.m = 2'000'000'000, .n = 2'000'000'000, .k = 64, .dtype = DType::kFp32});
  Net net(2);
  const Replayed outcome = replay(plans_of(two_ranks({task})), net);
  ASSERT_EQ(outcome.errors.size(), 2U);
  EXPECT_THAT(outcome.errors[0],
              HasSubstr("out of memory on rank 0: operands of kernel mlp (layer 0"));
}

ExecutorOptions alone(const RankPlan& plan, std::vector<Seconds> arrivals) {
  arrivals.resize(plan.expansion.instances.size());
  return {.mode = measure::Mode::kOneRank, .arrivals = std::move(arrivals)};
}

// The limit of the process counts, not only the machine's memory.
TEST(HostExecutor, ObeysTheLimitOfAddressSpace) {
  const auto buffer =
      Task{.name = "new act", .body = program::Allocate{.buffer = "act", .bytes = 3_GB}};
  const Program program = two_ranks(
      {kernel("mlp"), buffer, Task{.name = "free act", .body = program::Free{.buffer = "act"}}});
  const RankPlan plan = plans_of(program)[0];
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{.rlim_cur = 2'000'000'000, .rlim_max = 2'000'000'000};
    setrlimit(RLIMIT_AS, &limit);
    Watch watch;
    const auto error = make_executor_on(nullptr, alone(plan, {}), kSmall)->prepare(plan, watch);
    _exit(!error.ok() && error.error().code == Error::Code::kInfeasible &&
                  error.error().message.find("buffer act of kernel mlp") != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Rank 0 alone: a (~0), then "early", there from the beginning, and "late", there at 20 ms; b waits
// for both. So b starts at 20 ms; early had been there for 20 ms (b waited for late alone), and
// late was waited for: from the end of a on, about 20 ms.
TEST(HostExecutor, OneRankWaitsForSimulatedArrivals) {
  const Program program =
      two_ranks({kernel("a"), all_reduce("early"), all_reduce("late"), kernel("b", {2})});
  const RankPlan plan = plans_of(program)[0];
  const auto executor = make_executor_on(nullptr, alone(plan, {0_s, 0_s, 20_ms, 0_s}), kSmall);
  Watch watch;
  ASSERT_TRUE(executor->prepare(plan, watch).ok());
  const auto times = value_of(executor->step(watch));
  EXPECT_GE(times.finish[2], 20_ms);
  EXPECT_GE(times.start[3], 20_ms);
  EXPECT_LT(times.finish[0], 20_ms);
  ASSERT_EQ(times.slack.size(), 4U);
  EXPECT_EQ(times.slack[2], times.finish[0] - 20_ms);
  EXPECT_GT(times.slack[1], 0_s);
  EXPECT_EQ(times.total, times.finish[3]);
}

// A rank whose peer never comes polls until it is told to stop.
TEST(HostExecutor, StopsWhenTheWatchSaysSo) {
  const Program program = two_ranks({kernel("a"), all_reduce("grads"), kernel("b", {1})});
  const RankPlan plan = plans_of(program)[0];
  const auto executor = make_executor_on(nullptr, alone(plan, {0_s, 1000_s, 0_s}), kSmall);
  Watch watch;
  ASSERT_TRUE(executor->prepare(plan, watch).ok());
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(watch.instance(), 1);  // The rank is in the all-reduce.
    watch.stop();
  });
  const auto times = executor->step(watch);
  stopper.join();
  ASSERT_FALSE(times);
  EXPECT_THAT(times.error().message, HasSubstr("stopped"));
}

TEST(HostExecutor, TellsTheMachine) {
  const auto executor = make_executor_on(nullptr, {.mode = measure::Mode::kOneRank}, kSmall);
  const measure::Machine machine = executor->machine();
  EXPECT_FALSE(machine.name.empty());
  for (const char* fact : {"processor", "cores", "memory", "kernel", "blas"})
    EXPECT_TRUE(machine.facts.contains(fact)) << fact;
}

}  // namespace foreshard::replay::host::executor_test
