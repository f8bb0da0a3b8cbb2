// What must not change the answer: folding, coalescing, the engine, units; and what must not
// improve it: slower devices.
#include <cstdio>

#include "tests/sim/simulate/random_cluster.h"
#include "tests/sim/simulate/random_program.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/simulate/fold.h"
#include "sim/simulate/simulate.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::exact_test {

using program::Program;

Program lowered(const foreshard::Training& training) {
  return value_of(lower::lower(training.model, training.strategy, {.launch_time = 2_us}));
}

Prediction simulated(const ClusterView& cluster, const Program& program,
                     const SimulateOptions& options) {
  return value_of(simulate(cluster, program, comm::ideal_parameters(), options));
}

double relative(Seconds a, Seconds b) {
  const double scale = std::max(std::abs(a.in_base()), std::abs(b.in_base()));
  return scale > 0 ? std::abs(a.in_base() - b.in_base()) / scale : 0;
}

// Of a part of the step; what is nothing may come out as rounding.
void expect_part(Seconds a, Seconds b, Seconds step) {
  EXPECT_NEAR(a / step, b / step, 1e-9);
}

void expect_equal(const Breakdown& a, const Breakdown& b, Seconds step) {
  expect_part(a.compute, b.compute, step);
  expect_part(a.optimizer, b.optimizer, step);
  expect_part(a.tensor, b.tensor, step);
  expect_part(a.pipeline, b.pipeline, step);
  expect_part(a.data, b.data, step);
  expect_part(a.host, b.host, step);
  expect_part(a.bubble, b.bubble, step);
}

// Class by class and rank by rank.
void expect_equal(const Prediction& folded, const Prediction& unfolded) {
  ASSERT_EQ(static_cast<std::int64_t>(unfolded.classes.size()), unfolded.devices);
  EXPECT_LT(relative(folded.step, unfolded.step), 1e-9);
  std::int64_t members = 0;
  for (const DeviceClass& of : folded.classes) {
    members += of.count;
    const auto& same = unfolded.classes[static_cast<std::size_t>(of.representative)];
    ASSERT_EQ(same.representative, of.representative);
    EXPECT_EQ(same.role, of.role);
    EXPECT_LT(relative(of.finish, same.finish), 1e-9) << of.role;
    EXPECT_EQ(of.memory.peak, same.memory.peak);
    expect_equal(of.breakdown, same.breakdown, folded.step);
    EXPECT_LT(relative(of.breakdown.total(), folded.step), 1e-9);
  }
  EXPECT_EQ(members, folded.devices);
}

// Every member of a class does what its representative does.
void expect_equal_members(const ClusterView& cluster, const Program& program,
                          const Prediction& unfolded) {
  const Communicators communicators = communicators_of(program);
  const auto forms =
      value_of(choose_forms(cluster, program, communicators, comm::ideal_parameters()));
  const Folding folding = fold(cluster, program, communicators, forms, true);
  for (std::size_t rank = 0; rank < folding.class_of_rank.size(); ++rank) {
    const auto of = static_cast<std::size_t>(folding.class_of_rank[rank]);
    const auto representative = static_cast<std::size_t>(folding.rank_representative[of]);
    EXPECT_LT(relative(unfolded.classes[rank].finish, unfolded.classes[representative].finish),
              1e-9)
        << "rank " << rank << " is not like rank " << representative;
  }
}

TEST(Folding, ChangesNothingOfAStrategy) {
  std::int64_t folded_away = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto training = random_training(random, 64);
    const std::int64_t devices = training.strategy.devices();
    const bool slow = seed % 3 == 0 && devices > 1;
    SCOPED_TRACE("seed " + std::to_string(seed) + (slow ? ", one slow node: " : ": ") +
                 describe(training));
    const ClusterView cluster = random_cluster(random, devices, {.one_slow_node = slow});
    const Program program = lowered(training);
    const auto folded = simulated(cluster, program, {});
    const auto unfolded = simulated(cluster, program, {.fold = false});
    expect_equal(folded, unfolded);
    expect_equal_members(cluster, program, unfolded);
    folded_away += unfolded.devices - std::ssize(folded.classes);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(folded_away, 0);
}

TEST(Folding, ChangesNothingOfAProgram) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(7000 + seed);
    const std::int64_t ranks = std::array{2, 4, 8, 16, 24}[random() % 5];
    SCOPED_TRACE("seed " + std::to_string(7000 + seed) + ", " + std::to_string(ranks) + " ranks");
    const ClusterView cluster =
        random_cluster(random, ranks,
                       {.routing = random() % 2 == 0 ? Routing::kSpread : Routing::kEcmpHash,
                        .one_slow_node = random() % 3 == 0});
    const Program program = random_program(random, ranks);
    const auto unfolded = simulated(cluster, program, {.fold = false});
    expect_equal(simulated(cluster, program, {}), unfolded);
    expect_equal_members(cluster, program, unfolded);
    if (testing::Test::HasFailure()) return;
  }
}

// The unit of bytes is nobody's business: twice the bytes over twice the bandwidth.
TEST(Units, OfBytesDoNotMatter) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto step = [&](double scale) {
      std::mt19937 random(9000 + seed);
      const ClusterView cluster = random_cluster(random, 8, {.bandwidth = scale});
      Program program = random_program(random, 8);
      for (program::Block& block : program.blocks) {
        for (program::Task& task : block.tasks) {
          if (auto* what = std::get_if<program::Communication>(&task.body))
            what->bytes = what->bytes * scale;
        }
      }
      return simulated(cluster, program, {}).step;
    };
    SCOPED_TRACE("seed " + std::to_string(9000 + seed));
    EXPECT_LT(relative(step(1), step(1024)), 1e-9);
    EXPECT_LT(relative(step(1), step(0.03)), 1e-9);
  }
}

// Times of tasks inside a chain are interpolated: they move a little where a communication holds
// multiprocessors beside a part of it.
TEST(Coalescing, ChangesNothingButTimesWithinAChain) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(1000 + seed);
    const auto training = random_training(random, 32);
    SCOPED_TRACE("seed " + std::to_string(1000 + seed) + ": " + describe(training));
    const ClusterView cluster = random_cluster(random, training.strategy.devices(), {});
    const Program program = lowered(training);
    const auto coalesced = simulated(cluster, program, {.timeline = true});
    const auto plain = simulated(cluster, program, {.coalesce = false, .timeline = true});
    EXPECT_LT(relative(coalesced.step, plain.step), 1e-9);
    ASSERT_EQ(coalesced.classes.size(), plain.classes.size());
    for (std::size_t c = 0; c < plain.classes.size(); ++c) {
      EXPECT_LT(relative(coalesced.classes[c].finish, plain.classes[c].finish), 1e-9);
      expect_equal(coalesced.classes[c].breakdown, plain.classes[c].breakdown, plain.step);
    }
    ASSERT_EQ(coalesced.timeline.size(), plain.timeline.size());
    for (std::size_t i = 0; i < plain.timeline.size(); ++i) {
      EXPECT_NEAR(coalesced.timeline[i].start / plain.step, plain.timeline[i].start / plain.step,
                  0.01);
      EXPECT_NEAR(coalesced.timeline[i].finish / plain.step, plain.timeline[i].finish / plain.step,
                  0.01);
    }
    if (testing::Test::HasFailure()) return;
  }
}

// Where the host waits for each kernel, most Syncs are the ends of kernels: no time changes.
TEST(Coalescing, ChangesNothingWhereTheHostWaits) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(12000 + seed);
    auto training = random_training(random, 32);
    if (training.strategy.virtual_stages > 1) continue;  // refused where transfers block
    training.strategy.framework.value.blocking_launches = true;
    SCOPED_TRACE("seed " + std::to_string(12000 + seed) + ": " + describe(training));
    const ClusterView cluster = random_cluster(random, training.strategy.devices(), {});
    const Program program = lowered(training);
    const auto coalesced = simulated(cluster, program, {.timeline = true});
    const auto plain = simulated(cluster, program, {.coalesce = false, .timeline = true});
    EXPECT_LT(relative(coalesced.step, plain.step), 1e-9);
    EXPECT_LE(coalesced.events, plain.events);
    ASSERT_EQ(coalesced.timeline.size(), plain.timeline.size());
    for (std::size_t i = 0; i < plain.timeline.size(); ++i) {
      EXPECT_LT(relative(coalesced.timeline[i].start, plain.timeline[i].start), 1e-9);
      EXPECT_LT(relative(coalesced.timeline[i].finish, plain.timeline[i].finish), 1e-9);
    }
    ASSERT_EQ(coalesced.classes.size(), plain.classes.size());
    for (std::size_t c = 0; c < plain.classes.size(); ++c)
      expect_equal(coalesced.classes[c].breakdown, plain.classes[c].breakdown, plain.step);
    if (testing::Test::HasFailure()) return;
  }
}

// Without a host, each task of the path begins when the one before ends, from 0 to the end.
TEST(CriticalPath, IsContiguous) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(2000 + seed);
    const auto training = random_training(random, 32);
    SCOPED_TRACE("seed " + std::to_string(2000 + seed) + ": " + describe(training));
    const ClusterView cluster = random_cluster(random, training.strategy.devices(), {});
    auto program = value_of(lower::lower(training.model, training.strategy, {}));
    const auto prediction = simulated(cluster, program, {});
    const auto& path = prediction.critical_path;
    ASSERT_FALSE(path.empty());
    expect_part(path.front().start, 0_s, prediction.step);
    expect_part(path.back().finish, prediction.step, prediction.step);
    for (std::size_t i = 1; i < path.size(); ++i)
      expect_part(path[i].start, path[i - 1].finish, prediction.step);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SlowerDevices, MakeNoStepFaster) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto step = [&](double speed, bool slow_node) {
      std::mt19937 random(3000 + seed);
      auto training = random_training(random, 32);
      while (training.strategy.devices() < 2) training = random_training(random, 32);
      const ClusterView cluster = random_cluster(random, training.strategy.devices(),
                                                 {.one_slow_node = slow_node, .speed = speed});
      return simulated(cluster, lowered(training), {}).step;
    };
    SCOPED_TRACE("seed " + std::to_string(3000 + seed));
    const Seconds usual = step(1, true);
    EXPECT_GE(step(0.5, true), usual);
    EXPECT_LE(step(4, true), usual);
  }
}

// fluid against SimGrid: every start and finish of every task.
// Returns the worst difference.
double expect_engines_agree(const ClusterView& cluster, const Program& program) {
  const SimulateOptions stepwise{.granularity = Granularity::kStepwise, .timeline = true};
  SimulateOptions reference = stepwise;
  reference.engine = EngineKind::kSimgrid;
  const auto ours = simulated(cluster, program, stepwise);
  const auto theirs = simulated(cluster, program, reference);
  EXPECT_EQ(theirs.engine, "simgrid");
  EXPECT_LT(relative(ours.step, theirs.step), 1e-6);
  EXPECT_EQ(ours.timeline.size(), theirs.timeline.size());
  double worst = 0;
  for (std::size_t i = 0; i < std::min(ours.timeline.size(), theirs.timeline.size()); ++i) {
    const TimelineEntry& a = ours.timeline[i];
    const TimelineEntry& b = theirs.timeline[i];
    EXPECT_LT(relative(a.finish, b.finish), 1e-6)
        << program.blocks[static_cast<std::size_t>(a.block)].name << " of class " << a.device_class
        << ": " << a.finish.in_base() << " s, SimGrid " << b.finish.in_base();
    worst = std::max(worst, relative(a.finish, b.finish));
  }
  return worst;
}

TEST(Engines, AgreeOnRandomPrograms) {
  double worst = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::int64_t ranks = std::array{2, 3, 4, 6, 8, 12}[random() % 6];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    const ClusterView cluster = random_cluster(
        random, ranks, {.routing = Routing::kEcmpHash, .one_slow_node = random() % 2 == 0});
    const Program program = random_program(random, ranks);
    ASSERT_EQ(message_of(program::verify(program)), "accepted");
    worst = std::max(worst, expect_engines_agree(cluster, program));
    if (testing::Test::HasFailure()) return;
  }
  std::printf("worst relative difference of a finish time: %.1e\n", worst);
}

TEST(Engines, AgreeOnRandomStrategies) {
  double worst = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(5000 + seed);
    const auto training = random_training(random, 12);
    SCOPED_TRACE("seed " + std::to_string(5000 + seed) + ": " + describe(training));
    const ClusterView cluster =
        random_cluster(random, training.strategy.devices(), {.routing = Routing::kEcmpHash});
    worst = std::max(worst, expect_engines_agree(cluster, lowered(training)));
    if (testing::Test::HasFailure()) return;
  }
  std::printf("worst relative difference of a finish time: %.1e\n", worst);
}

}  // namespace foreshard::sim::exact_test
