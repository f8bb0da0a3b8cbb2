// The event loop on hand-made Programs: what starts when, with kernels and communications that a
// test finishes by itself on a clock of its own.
#include "validate/replay/host/streams.h"

#include "tests/strategies/program_ir/samples.h"
#include "tests/test.h"

namespace foreshard::replay::host::streams_test {

using program::Communication;
using program::Program;
using program::Task;

Task kernel(const std::string& name, std::vector<std::int32_t> after = {}) {
  return {.name = name,
          .body = Kernel(Gemm{.m = 1, .n = 1, .k = 1}),
          .stream = program::StreamId(0),
          .after = std::move(after)};
}
Task communicate(const std::string& name, std::vector<std::int32_t> after = {}, int stream = 1) {
  return {.name = name,
          .body = Communication{.group = program::AxisGroup{.axes = {0}, .coordinates = {}},
                                .bytes = 1_MB},
          .stream = program::StreamId(stream),
          .after = std::move(after)};
}

Program program_of(std::vector<Task> tasks) {
  Program program;
  program.name = "streams";
  program.mesh = {{"data", 2}};
  program.streams = {{"compute"}, {"one"}, {"two"}};
  program.blocks = {{"block", std::move(tasks)}};
  program.roles = {{.name = "all", .ranks = {0, 1}, .calls = {{.block = program::BlockId(0)}}}};
  return program;
}

// Kernels take 1 ms. A communication moves from its beginning on, or from `reached` if that is
// later, for `duration`. Looking at the clock takes 1 us.
class Script : public Work {
 public:
  explicit Script(const RankPlan& plan) : plan_(plan) {}

  struct Communicated {
    Seconds reached{};
    Seconds duration{};
  };
  std::map<std::string, Communicated> communications;
  std::vector<std::string> log;
  Watch* stop_at_idle = nullptr;

  Seconds now() override { return now_ += 1_us; }
  Status starts(std::size_t instance) override {
    log.push_back("+" + plan_.task(instance).name);
    return {};
  }
  void finished(std::size_t instance) override { log.push_back("-" + plan_.task(instance).name); }
  void compute(std::size_t /*instance*/) override { now_ += 1_ms; }
  Status begin(std::size_t instance) override {
    began_[instance] = now_;
    return {};
  }
  Result<Progress> advance(std::size_t instance) override {
    const Communicated& of = communications[plan_.task(instance).name];
    const Seconds from = std::max(of.reached, began_[instance]);
    if (now_ >= from + of.duration) return Progress::kDone;
    return now_ >= from ? Progress::kMoved : Progress::kStalled;
  }
  void idle() override {
    now_ += 1_us;
    if (stop_at_idle != nullptr) stop_at_idle->stop();
  }

 private:
  const RankPlan& plan_;
  Seconds now_;
  std::map<std::size_t, Seconds> began_;
};

RankPlan plan_of(const Program& program) {
  return value_of(plan_rank(program, 0));
}

// All members are there: the communication runs through before the next kernel.
TEST(Streams, CommunicationThatMovesHoldsTheCore) {
  const Program program = program_of({kernel("a"), communicate("grads", {0}), kernel("b", {0})});
  const RankPlan plan = plan_of(program);
  Script script(plan);
  script.communications["grads"] = {.duration = 3_ms};
  Watch watch;
  const auto times = value_of(Streams(plan).run(script, watch));
  EXPECT_THAT(script.log, ElementsAre("+a", "-a", "+grads", "-grads", "+b", "-b"));
  EXPECT_NEAR(times.total / 1_ms, 5.0, 0.1);
}

// The other comes at 2.5 ms: b and c run meanwhile, each to its end, and d after it.
TEST(Streams, ComputesWhileTheOthersAreElsewhere) {
  const Program program = program_of(
      {kernel("a"), communicate("grads", {0}), kernel("b", {0}), kernel("c"), kernel("d")});
  const RankPlan plan = plan_of(program);
  Script script(plan);
  script.communications["grads"] = {.reached = 2.5_ms, .duration = 3_ms};
  Watch watch;
  const auto times = value_of(Streams(plan).run(script, watch));
  EXPECT_THAT(script.log,
              ElementsAre("+a", "-a", "+grads", "+b", "-b", "+c", "-c", "-grads", "+d", "-d"));
  // When this member reached it: after a.
  EXPECT_NEAR(times.start[1] / 1_ms, 1.0, 0.1);
}

// Two streams beside compute; a Sync holds up what is issued after it.
TEST(Streams, SyncWaitsAndHostWorkSpins) {
  const Program program =
      program_of({kernel("a"), communicate("x", {0}, 1), communicate("y", {}, 2),
                  Task{.name = "sync", .body = program::Sync{}, .after = {1}}, kernel("b"),
                  Task{.name = "host", .body = program::HostWork{.time = 2_ms}}, kernel("c")});
  const RankPlan plan = plan_of(program);
  Script script(plan);
  script.communications["x"] = {.duration = 1_ms};
  script.communications["y"] = {.reached = 10_ms, .duration = 1_ms};
  Watch watch;
  const auto times = value_of(Streams(plan).run(script, watch));
  EXPECT_THAT(script.log, ElementsAre("+y", "+a", "-a", "+x", "-x", "-sync", "+b", "-b", "+host",
                                      "-host", "+c", "-c", "-y"));
  EXPECT_NEAR((times.finish[5] - times.start[5]) / 1_ms, 2.0, 0.1);
  EXPECT_NEAR(times.total / 1_ms, 11.0, 0.1);
}

TEST(Streams, StopsWhenTheWatchSaysSo) {
  const Program program = program_of({kernel("a"), communicate("grads", {0}), kernel("b", {1})});
  const RankPlan plan = plan_of(program);
  Script script(plan);
  script.communications["grads"] = {.reached = 1e6_s, .duration = 1_ms};
  Watch watch;
  script.stop_at_idle = &watch;
  const auto times = Streams(plan).run(script, watch);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, Error::Code::kIo);
  EXPECT_EQ(watch.instance(), 1);
}

// On any Program: every instance runs once, after its predecessors, and after the Sync before it.
TEST(Streams, RunEveryInstanceAfterItsPredecessors) {
  std::mt19937 random(7);
  for (int i = 0; i < 25; ++i) {
    const Program program = program::random_one_rank_program(random);
    const RankPlan plan = plan_of(program);
    Script script(plan);
    for (std::size_t k = 0; k < plan.operations.size(); ++k)
      script.communications[plan.task(k).name] = {
          .duration = std::uniform_real_distribution<>(0, 2)(random) * 1_ms};
    Watch watch;
    Streams streams(plan);
    for (int step = 0; step < 2; ++step) {
      const auto times = value_of(streams.run(script, watch));
      for (std::size_t k = 0; k < plan.operations.size(); ++k) {
        ASSERT_LE(times.start[k], times.finish[k]);
        for (const std::int32_t before : plan.expansion.predecessors(k))
          ASSERT_LE(times.finish[static_cast<std::size_t>(before)], times.start[k]);
        const std::int32_t sync = plan.expansion.instances[k].host_sync;
        if (sync >= 0) {
          ASSERT_LE(times.finish[static_cast<std::size_t>(sync)], times.start[k]);
        }
        ASSERT_LE(times.finish[k], times.total);
      }
    }
  }
}

}  // namespace foreshard::replay::host::streams_test
