#include "strategies/program/ir/expand.h"

#include <rapidcheck.h>

#include "tests/strategies/program_ir/samples.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"

namespace foreshard::program::expand_test {

constexpr StreamId kComputing{0}, kNetwork{1};

Task kernel(const std::string& name, std::vector<std::int32_t> after = {},
            StreamId stream = kComputing) {
  return {name, Kernel(Pass{.rows = 1}), stream, std::move(after)};
}

Program one_rank(std::vector<Block> blocks, std::vector<Call> calls) {
  return {.name = "hand",
          .mesh = {{"one", 1}},
          .device_of_rank = {},
          .streams = {{"compute"}, {"network"}},
          .launch_time = 2_us,
          .blocks = std::move(blocks),
          .roles = {{"only", {0}, std::move(calls), {}}},
          .totals = {}};
}

std::vector<std::int32_t> before(const Expansion& expansion, std::size_t instance) {
  const auto span = expansion.predecessors(instance);
  return {span.begin(), span.end()};
}

// One block a -> b(network) -> c, twice: instances 0 1 2, 3 4 5. Iteration 1 waits for iteration 0
// through the streams alone: a' behind c, b' behind b (and a'), c' behind a' (and b').
TEST(Expand, ChainsIterationsThroughTheirStreams) {
  const Program program =
      one_rank({{"block", {kernel("a"), kernel("b", {0}, kNetwork), kernel("c", {1})}}},
               {{.block = BlockId(0), .repeat = 2}});
  const Expansion out = Expander(program).expand(0);
  ASSERT_EQ(out.instances.size(), 6u);
  EXPECT_THAT(before(out, 0), IsEmpty());
  EXPECT_THAT(before(out, 1), ElementsAre(0));
  EXPECT_THAT(before(out, 2), ElementsAre(0, 1));
  EXPECT_THAT(before(out, 3), ElementsAre(2));
  EXPECT_THAT(before(out, 4), ElementsAre(1, 3));
  EXPECT_THAT(before(out, 5), ElementsAre(3, 4));
  EXPECT_EQ(out.instances[4].iteration, 1);
  EXPECT_EQ(out.instances[4].stream, 1);
  EXPECT_THAT(out.first_of_call, ElementsAre(0, 6));
  EXPECT_EQ(task_of(program, program.roles[0], out.instances[4]).name, "b");
}

// Launches that weigh more and less than others, and none at all: 2 us, then three times as long,
// then none by a graph, then half as long.
TEST(Expand, CountsLaunchesByTheirWeight) {
  Program program =
      one_rank({{"block", {kernel("norm"), kernel("qkv"), kernel("rope"), kernel("zero")}}},
               {{.block = BlockId(0)}});
  auto& tasks = program.blocks[0].tasks;
  tasks[1].launches = 3;
  tasks[2].launches = 0;
  tasks[3].launches = 0.5;
  std::vector<double> offsets;
  for (const auto& instance : Expander(program).expand(0).instances)
    offsets.push_back(instance.host_offset / 1_us);
  EXPECT_THAT(offsets, ElementsAre(2, 8, 8, 9));
}

// The host launches kernel after kernel, 2 us each; HostWork of 5 us delays what follows. After a
// Sync counting starts anew.
TEST(Expand, CountsTheHostsTimeFromTheLastSync) {
  const Program program = one_rank({{"block",
                                     {kernel("a"),
                                      {"load", HostWork{5_us}, {}, {}},
                                      kernel("b"),
                                      {"wait", Sync{}, {}, {}},
                                      kernel("c")}}},
                                   {{.block = BlockId(0)}});
  const Expansion out = Expander(program).expand(0);
  std::vector<double> offsets;
  std::vector<std::int32_t> syncs;
  for (const Instance& instance : out.instances) {
    offsets.push_back(instance.host_offset / 1_us);
    syncs.push_back(instance.host_sync);
  }
  EXPECT_THAT(offsets, testing::Pointwise(testing::DoubleEq(), {2, 2, 9, 9, 2}));
  EXPECT_THAT(syncs, ElementsAre(-1, -1, -1, -1, 3));
  EXPECT_THAT(before(out, 3), ElementsAre(2)) << "a Sync waits for the last of each stream";
}

// Call 1 waits for task b of call 0's last iteration: instance 3 (a b a b). Only its first task
// does so by an edge; on the network that is already in order.
TEST(Expand, LetsTheFirstTaskOfEachStreamWaitForOtherCalls) {
  const Program program =
      one_rank({{"gather", {kernel("a", {}, kNetwork), kernel("b", {}, kNetwork)}},
                {"use", {kernel("c"), kernel("d"), kernel("e", {}, kNetwork)}}},
               {{.block = BlockId(0), .repeat = 2},
                {.block = BlockId(1), .after = {{0, 1}}},
                {.block = BlockId(1), .after = {{0, -1}}}});
  const Expansion out = Expander(program).expand(0);
  EXPECT_THAT(before(out, 4), ElementsAre(3));
  EXPECT_THAT(before(out, 5), ElementsAre(4));
  EXPECT_THAT(before(out, 6), ElementsAre(3));
  EXPECT_THAT(before(out, 7), ElementsAre(5)) << "the same stream has waited for call 0 before";
}

// FSDP: the gather of call 2 waits for the Free of call 0, hence for the task that frees.
TEST(Expand, TakesAFreeForTheTasksThatFreeIt) {
  const Program program =
      one_rank({{"layer",
                 {kernel("gather", {}, kNetwork),
                  {"make", Allocate{"weights", MemoryKind::kBuffers, 8_MiB}, {}, {}},
                  kernel("use", {0}),
                  {"drop", Free{"weights"}, {}, {}}}}},
               {{.block = BlockId(0)},
                {.block = BlockId(0), .micro_batch = 1},
                {.block = BlockId(0), .micro_batch = 2, .after = {{0, 3}}}});
  const Expander expander(program);
  const Expansion out = expander.expand(0);
  EXPECT_THAT(before(out, 4), ElementsAre(2, 1)) << "gather behind gather, and after use of call 0";

  const MemoryEvents memory = expander.memory_events(0, out);
  ASSERT_EQ(memory.events.size(), 6u);
  EXPECT_TRUE(memory.events[2].allocate);
  EXPECT_THAT(memory.anchors_of(memory.events[2]), ElementsAre(2)) << "at the start of gather";
  EXPECT_FALSE(memory.events[3].allocate);
  EXPECT_EQ(memory.events[3].bytes, 8_MiB);
  EXPECT_EQ(memory.events[3].kind, MemoryKind::kBuffers);
  EXPECT_THAT(memory.anchors_of(memory.events[3]), ElementsAre(3)) << "at the end of use";
}

// A backward pass walks the layers back: iteration 0 frees what the forward pass's last iteration
// made.
TEST(Expand, MatchesBuffersByLayer) {
  const Program program = one_rank(
      {{"forward", {{"make", Allocate{"x", MemoryKind::kActivations, 1_B}, {}, {}}, kernel("f")}},
       {"backward", {kernel("b"), {"drop", Free{"x"}, {}, {}}}}},
      {{.block = BlockId(0), .repeat = 3, .first_layer = 4},
       {.block = BlockId(1), .repeat = 2, .first_layer = 6, .layer_step = -1}});
  const Expander expander(program);
  const MemoryEvents memory = expander.memory_events(0, expander.expand(0));
  EXPECT_THAT(memory.unmatched, IsEmpty());
  ASSERT_EQ(memory.unfreed.size(), 1u);
  EXPECT_EQ(memory.unfreed[0].iteration, 0) << "layer 4";
}

// The rules of program.h, taken literally: every dependency of every task, in the order of issue.
struct Literal {
  std::vector<double> start, finish;  // Per task run, Allocates and Frees included.
};
Literal run_literally(const Program& program, const std::vector<double>& duration) {
  const Role& role = program.roles[0];
  Literal out;
  std::vector<double> stream_free(program.streams.size(), 0);
  std::vector<std::size_t> last_iteration, first_of_call;
  double host = 0, everything = 0;
  std::size_t run = 0;
  for (const Call& call : role.calls) {
    const auto& tasks = program.blocks[call.block.index()].tasks;
    first_of_call.push_back(out.finish.size());
    double calls_done = 0;
    for (const auto& on : call.after) {
      const auto c = static_cast<std::size_t>(on.call);
      if (on.task >= 0) {
        calls_done =
            std::max(calls_done, out.finish[last_iteration[c] + static_cast<std::size_t>(on.task)]);
        continue;
      }
      for (std::size_t i = first_of_call[c]; i < first_of_call[c + 1]; ++i)
        calls_done = std::max(calls_done, out.finish[i]);
    }
    for (int k = 0; k < call.repeat; ++k) {
      const std::size_t base = out.finish.size();
      if (k == call.repeat - 1) last_iteration.push_back(base);
      double preceding = 0;
      for (const Task& task : tasks) {
        double ready = 0;
        for (const auto after : task.after)
          ready = std::max(ready, out.finish[base + static_cast<std::size_t>(after)]);
        if (std::holds_alternative<Allocate>(task.body) ||
            std::holds_alternative<Free>(task.body)) {
          const double done = task.after.empty() ? preceding : ready;
          out.start.push_back(done);
          out.finish.push_back(std::holds_alternative<Free>(task.body) ? done : 0);
          continue;
        }
        double start = 0, finish = 0;
        if (const auto* work = std::get_if<HostWork>(&task.body)) {
          start = host;
          finish = host += work->time.in_base();
        } else if (std::holds_alternative<Sync>(task.body)) {
          start = finish = host = std::max(host, task.after.empty() ? everything : ready);
        } else {
          host += program.launch_time.in_base();
          double& stream = stream_free[task.stream.index()];
          start = std::max({host, stream, task.after.empty() ? calls_done : ready});
          finish = stream = start + duration[run];
        }
        ++run;
        everything = std::max(everything, finish);
        preceding = finish;
        out.start.push_back(start);
        out.finish.push_back(finish);
      }
    }
  }
  return out;
}

// Finish times of the instances by the edges and host offsets of the expansion.
std::vector<double> run_expansion(const Program& program, const Expansion& expansion,
                                  const std::vector<double>& duration) {
  std::vector<double> finish;
  for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
    const Instance& instance = expansion.instances[i];
    double start = instance.host_offset.in_base();
    if (instance.host_sync >= 0) start += finish[static_cast<std::size_t>(instance.host_sync)];
    for (const auto before_it : expansion.predecessors(i))
      start = std::max(start, finish[static_cast<std::size_t>(before_it)]);
    const Task& task = task_of(program, program.roles[0], instance);
    const auto* work = std::get_if<HostWork>(&task.body);
    const double time = work ? work->time.in_base() : instance.stream < 0 ? 0 : duration[i];
    finish.push_back(start + time);
  }
  return finish;
}

// Times are small integers, so sums are exact and equality is meant.
TEST(Expand, RunsLikeTheRulesTakenLiterally) {
  EXPECT_TRUE(rc::check("expansion and literal rules end together", [](std::uint32_t seed) {
    std::mt19937 random(seed);
    const Program program = random_one_rank_program(random);
    const Expander expander(program);
    const Expansion expansion = expander.expand(0);
    std::vector<double> duration(expansion.instances.size());
    for (double& d : duration) d = std::uniform_int_distribution<int>(0, 9)(random);

    const Literal literal = run_literally(program, duration);
    const auto finish = run_expansion(program, expansion, duration);
    // The literal run lists Allocates and Frees as well: walk both.
    std::size_t position = 0, instance = 0;
    const MemoryEvents memory = expander.memory_events(0, expansion);
    std::size_t event = 0;
    for (const Call& call : program.roles[0].calls)
      for (int k = 0; k < call.repeat; ++k)
        for (const Task& task : program.blocks[call.block.index()].tasks) {
          if (std::holds_alternative<Free>(task.body) && event < memory.events.size() &&
              !memory.events[event].allocate &&
              &task == &program.blocks[call.block.index()]
                            .tasks[static_cast<std::size_t>(memory.events[event].task)]) {
            double freed = 0;
            for (const auto anchor : memory.anchors_of(memory.events[event]))
              freed = std::max(freed, finish[static_cast<std::size_t>(anchor)]);
            // A Free without a live buffer makes no event, so only those of this call count.
            if (memory.events[event].iteration == k) RC_ASSERT(freed == literal.finish[position]);
            ++event;
          } else if (std::holds_alternative<Allocate>(task.body)) {
            ++event;
          } else if (!std::holds_alternative<Free>(task.body)) {
            RC_ASSERT(finish[instance++] == literal.finish[position]);
          }
          ++position;
        }
    RC_ASSERT(instance == finish.size());
  }));
}

TEST(Expand, GivesAtMostOnePredecessorPerStreamAllEarlier) {
  EXPECT_TRUE(rc::check("predecessors are few and earlier", [](std::uint32_t seed) {
    std::mt19937 random(seed);
    const Program program = random_one_rank_program(random);
    const Expansion expansion = Expander(program).expand(0);
    RC_ASSERT(static_cast<std::int64_t>(expansion.instances.size()) ==
              count_instances(program, program.roles[0]));
    for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
      std::vector<std::int32_t> streams;
      for (const auto p : expansion.predecessors(i)) {
        RC_ASSERT(p >= 0);
        RC_ASSERT(static_cast<std::size_t>(p) < i);
        streams.push_back(expansion.instances[static_cast<std::size_t>(p)].stream);
      }
      std::sort(streams.begin(), streams.end());
      RC_ASSERT(std::adjacent_find(streams.begin(), streams.end()) == streams.end());
      if (!streams.empty()) RC_ASSERT(streams[0] >= 0);
    }
  }));
}

// 60,000 instances per role are the size of a 1,024-GPU step; the search expands many of them.
TEST(Expand, IsFastAndSaysSo) {
  const Program program = pipeline_program(2, 128, 60);
  const Expander expander(program);
  using Clock = std::chrono::steady_clock;
  double best = 1e9, best_memory = 1e9;
  std::size_t instances = 0;
  for (int repetition = 0; repetition < 10; ++repetition) {
    const auto begin = Clock::now();
    const Expansion expansion = expander.expand(0);
    const auto middle = Clock::now();
    const MemoryEvents memory = expander.memory_events(0, expansion);
    const auto end = Clock::now();
    instances = expansion.instances.size();
    ASSERT_EQ(memory.events.size(), 2u * 128 * 60);
    best = std::min(best, std::chrono::duration<double, std::milli>(middle - begin).count());
    best_memory =
        std::min(best_memory, std::chrono::duration<double, std::milli>(end - middle).count());
  }
  std::printf("%zu instances: %.2f ms, memory events %.2f ms\n", instances, best, best_memory);
  EXPECT_GT(instances, 50000u);
  EXPECT_LT(best, 60) << "a factor of 20 over what it takes on a quiet machine";
}

}  // namespace foreshard::program::expand_test
