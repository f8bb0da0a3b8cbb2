// Histories of runs that fail: by hand, against closed forms, and that time is conserved.
#include "sim/elastic/history.h"

#include "base/hash.h"
#include "tests/test.h"

namespace foreshard::elastic::history_test {

constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

// Steps of 1 s on `whole` nodes; on fewer the same work takes in proportion longer. Slices take 3 s
// between devices (10 GB) and 7 s from a checkpoint (100 GB).
class Proportional : public Plans {
 public:
  explicit Proportional(std::int64_t whole, std::int64_t least = 1)
      : whole_(whole), least_(least) {}

  Result<std::optional<Seconds>> step_of(Arrangement on) override {
    const std::int64_t nodes = on.nodes - on.replicas_lost;
    if (nodes < least_) return std::optional<Seconds>();
    return std::optional(static_cast<double>(whole_) / static_cast<double>(nodes) * 1_s);
  }
  Result<StateTransfer> shift(Arrangement /*from*/, Arrangement /*to*/, std::int64_t /*failed*/,
                              Recovery recovery) override {
    const bool from_checkpoint = recovery == Recovery::kCheckpoint;
    return StateTransfer{.time = from_checkpoint ? 7_s : 3_s,
                         .bytes = from_checkpoint ? 100_GB : 10_GB,
                         .from_checkpoint = from_checkpoint};
  }
  // Each node is a replica.
  Result<std::optional<std::int64_t>> replicas_on(const std::vector<bool>& down) override {
    return std::optional(static_cast<std::int64_t>(std::ranges::count(down, true)));
  }

 private:
  std::int64_t whole_;
  std::int64_t least_;
};

Failure at(Seconds time, std::int64_t node, Seconds back) {
  return {.at = time, .node = node, .takes = true, .back = back};
}

// 100 steps of 1 s on 4 nodes, a checkpoint of 2 s after each 10.
Rules small(Policy policy, std::vector<Failure> given = {},
            Recovery recovery = Recovery::kCheckpoint) {
  return {.policy = policy,
          .recovery = recovery,
          .steps = 100,
          .nodes = 4,
          .detection = 5_s,
          .restart = 20_s,
          .regroup = 1_s,
          .interval = 10_s,
          .blocked = 2_s,
          .written = 2_s,
          .additions = {},
          .given = std::move(given)};
}

History history(const Rules& rules, std::int64_t least = 1) {
  const std::vector<Hazard> none;
  Proportional plans(4, least);
  return value_of(history_of(rules, plans, Failures(none, rules.nodes + rules.spares, 1)));
}

// 100 s are useful.
void expect_parts(const History& history, Parts parts) {
  parts.useful = 100_s;
  EXPECT_TRUE(history.finished);
  EXPECT_NEAR(history.wall / 1_s, parts.total() / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.useful / 1_s, parts.useful / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.slowdown / 1_s, parts.slowdown / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.lost / 1_s, parts.lost / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.saving / 1_s, parts.saving / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.detection / 1_s, parts.detection / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.restart / 1_s, parts.restart / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.slices / 1_s, parts.slices / 1_s, 1e-6);
  EXPECT_NEAR(history.parts.waiting / 1_s, parts.waiting / 1_s, 1e-6);
}

// By hand: 100 s of steps and 10 checkpoints of 2 s.
TEST(History, WithoutFailuresStepsAndCheckpointsAlone) {
  expect_parts(history(small(Policy::kWait)), {.saving = 20_s});
  EXPECT_EQ(history(small(Policy::kWait)).checkpoints, 10);
}

// Node 1 fails at 17.5 s: one checkpoint (10 s + 2 s) is safe, 5.5 s behind it are lost. Detected
// at 22.5 s; repaired at 40 s; 20 s of restart, 7 s of reading.
TEST(History, WaitsUntilTheNodeIsRepaired) {
  const History run = history(small(Policy::kWait, {at(17.5_s, 1, 40_s)}));
  expect_parts(run, {.lost = 5.5_s,
                     .saving = 20_s,
                     .detection = 5_s,
                     .restart = 20_s,
                     .slices = 7_s,
                     .waiting = 17.5_s});
  EXPECT_EQ(run.interrupted, 1);
  EXPECT_EQ(run.moved, 100_GB);
}

// The spare steps in at once; the second failure comes when it is still the only one.
TEST(History, ReplacesFromSparesAndWaitsForARepairWithoutOne) {
  Rules rules = small(Policy::kReplace);
  rules.spares = 1;
  rules.given = {at(17.5_s, 1, 1000_s)};
  expect_parts(history(rules),
               {.lost = 5.5_s, .saving = 20_s, .detection = 5_s, .restart = 20_s, .slices = 7_s});
  // The run goes on at 17.5 + 5 + 20 + 7 = 49.5 s from step 10; 3 s later node 4, the spare, fails.
  rules.given.push_back(at(52.5_s, 4, 100_s));
  expect_parts(history(rules), {.lost = 8.5_s,
                                .saving = 20_s,
                                .detection = 10_s,
                                .restart = 40_s,
                                .slices = 14_s,
                                .waiting = 42.5_s});
}

// A spare that fails while it waits stops nothing.
TEST(History, SparesThatFailDoNotStopTheRun) {
  Rules rules = small(Policy::kReplace);
  rules.spares = 1;
  rules.given = {at(17.5_s, 4, kNever)};
  const History run = history(rules);
  expect_parts(run, {.saving = 20_s});
  EXPECT_EQ(run.failures, 1);
  EXPECT_EQ(run.interrupted, 0);
}

// From replicas: at 17.5 s half a step is lost. On 3 nodes the other 85 steps take 4/3 s each.
TEST(History, ShrinksAndLosesOneStepWhereReplicasHoldAll) {
  const History run = history(small(Policy::kShrink, {at(17.5_s, 1, kNever)}, Recovery::kReplicas));
  // Checkpoints: at step 10; from step 15 on each 8 steps (10 s / (4/3 s) = 7.5, rounded), at 23,
  // 31, ..., 95, and at the end: 1 + 10 + 1.
  expect_parts(run, {.slowdown = 85_s / 3,
                     .lost = 0.5_s,
                     .saving = 24_s,
                     .detection = 5_s,
                     .restart = 20_s,
                     .slices = 3_s});
  EXPECT_EQ(run.fewest_nodes, 3);
}

// The node comes back at 60 s. Going on at 17.5 + 5 + 20 + 3 = 45.5 s from step 15, the run is at
// step 23 at 45.5 + 8 x 4/3 = 56.17 s, saves until 58.17 s, and at step 31 at 68.83 s; there it
// grows: restart and slices, nothing lost.
TEST(History, GrowsAgainAtACheckpoint) {
  const History run = history(small(Policy::kShrink, {at(17.5_s, 1, 60_s)}, Recovery::kReplicas));
  // Then from step 31 on each 10: 41, ..., 91, and the end: 1 + 2 + 6 + 1.
  expect_parts(run, {.slowdown = 16_s / 3,
                     .lost = 0.5_s,
                     .saving = 20_s,
                     .detection = 5_s,
                     .restart = 40_s,
                     .slices = 6_s});
  EXPECT_EQ(run.moves, 2);
}

TEST(History, WaitsWhereNoStrategyFitsWhatIsLeft) {
  expect_parts(history(small(Policy::kShrink, {at(17.5_s, 1, 40_s)}), 4), {.lost = 5.5_s,
                                                                           .saving = 20_s,
                                                                           .detection = 5_s,
                                                                           .restart = 20_s,
                                                                           .slices = 7_s,
                                                                           .waiting = 17.5_s});
}

// As shrink, but that communicators alone are made anew.
TEST(History, ReroutesWithinTheDataGroup) {
  expect_parts(history(small(Policy::kReroute, {at(17.5_s, 1, kNever)}, Recovery::kReplicas)),
               {.slowdown = 85_s / 3,
                .lost = 0.5_s,
                .saving = 24_s,
                .detection = 5_s,
                .restart = 1_s,
                .slices = 3_s});
}

// Node 0 works again at 13 h, but its replica comes back at the next checkpoint only, which is more
// than 10 h away at 14 h: node 1 then stops the run, and takes nobody's place.
TEST(History, ReplicasThatAreRepairedDoNotWorkBeforeTheyComeBack) {
  Rules rules = small(Policy::kReroute, {}, Recovery::kReplicas);
  rules.steps = 100 * 3600.0;
  rules.interval = 10_h;
  rules.given = {at(12_h, 0, 13_h), at(14_h, 1, kNever)};
  const History run = history(rules);
  EXPECT_EQ(run.interrupted, 2);
  EXPECT_EQ(run.failures, 2);
  EXPECT_TRUE(run.finished);
  // Of the node that is left out, a failure more stops nothing.
  rules.given = {at(12_h, 0, 13_h), at(14_h, 0, kNever)};
  EXPECT_EQ(history(rules).interrupted, 1);
}

TEST(History, TakesNodesThatAreAdded) {
  Rules rules = small(Policy::kShrink);
  rules.additions = {{.at = 5_s, .nodes = 4}};
  // From step 10 on at twice the speed; checkpoints each 20 steps: 30, 50, 70, 90, the end.
  expect_parts(history(rules), {.slowdown = -45_s, .saving = 12_s, .restart = 20_s, .slices = 3_s});
}

// Asynchronous: the run stops for 1 s; what was saved at 10 s is safe at 16 s. A failure at 15 s
// loses all, one at 17 s what was done since 11 s.
TEST(History, AsynchronousCheckpointsAreSafeWhenTheyAreWritten) {
  Rules rules = small(Policy::kWait);
  rules.blocked = 1_s;
  rules.written = 6_s;
  // Nine stops of 1 s; the last checkpoint is waited for.
  rules.given = {at(15_s, 1, 15.5_s)};
  const Parts parts{.lost = 14_s, .saving = 16_s, .detection = 5_s, .restart = 20_s, .slices = 7_s};
  expect_parts(history(rules), parts);
  rules.given = {at(17_s, 1, 17.5_s)};
  Parts later = parts;
  later.lost = 6_s;
  later.saving = 15_s;
  expect_parts(history(rules), later);
}

// A write of 6.4 s behind a stop of none takes 7 steps, not the nearest 6: each checkpoint is safe
// before the next. At 20.5 s those of 7 s and no more (14 s is safe at 20.4 s: that one) hold.
TEST(History, TheNextAsynchronousCheckpointBeginsWhenTheOneBeforeIsSafe) {
  Rules rules = small(Policy::kWait);
  rules.interval = rules.written = 6.4_s;
  rules.blocked = {};
  rules.given = {at(20.5_s, 1, 21_s)};
  // From step 14 on again: 21, ..., 98; the last one waits for that of 98, written 4.4 s more.
  expect_parts(history(rules),
               {.lost = 6.5_s, .saving = 10.8_s, .detection = 5_s, .restart = 20_s, .slices = 7_s});
  // As long as the interval, to the last bit or nearly.
  for (const Seconds step : {10_s, 7_s, 0.7_s * 3}) {
    rules.interval = rules.written = step;
    rules.given = {at(90.2_s, 1, 90.3_s)};
    EXPECT_LT(history(rules).parts.lost, 2 * step + 2_s) << step / 1_s;
  }
}

TEST(History, FasterStorageIsNeverWorse) {
  const std::vector<Hazard> hazards{{.between = 300_s, .of_job = true, .repair = {}}};
  Proportional plans(4);
  Seconds before;
  for (const double written : {0.0, 5.0, 10.0, 10.4, 10.6, 14.4, 20.0, 25.4, 40.0}) {
    Rules rules = small(Policy::kWait);
    rules.steps = 2000;
    rules.blocked = {};
    rules.written = written * 1_s;
    Seconds sum;
    constexpr std::uint64_t kHistories = 400;
    for (std::uint64_t i = 0; i < kHistories; ++i)
      sum += history_of(rules, plans, Failures(hazards, 4, i))->wall;
    EXPECT_GE(sum, before) << written;
    before = sum;
  }
}

TEST(History, GivesUpOnARunThatNeverEnds) {
  const History run = history(small(Policy::kWait, {at(17.5_s, 1, kNever)}));
  EXPECT_FALSE(run.finished);
  EXPECT_NEAR(run.wall / 1_s, kLongest * 100, 1e-6);
  EXPECT_NEAR(run.parts.total() / run.wall, 1, 1e-9);
}

// --- closed forms ---

// The mean over many histories of a job that fails once in `between` on the average, and goes on at
// once from its checkpoint.
Seconds mean_time(Seconds between, Seconds interval, Seconds checkpoint, Seconds restart,
                  double steps, int histories) {
  const std::vector<Hazard> hazards{{.between = between, .of_job = true, .repair = {}}};
  Rules rules = small(Policy::kWait);
  rules.steps = steps;
  rules.detection = {};
  rules.restart = restart - 7_s;  // and 7 s of reading
  rules.interval = interval;
  rules.blocked = rules.written = checkpoint;
  Proportional plans(4);
  Seconds sum;
  for (int i = 0; i < histories; ++i) {
    const auto run = history_of(rules, plans, Failures(hazards, 4, static_cast<std::uint64_t>(i)));
    EXPECT_TRUE(run->finished);
    EXPECT_NEAR(run->parts.total() / run->wall, 1, 1e-9);
    sum += run->wall;
  }
  return sum / histories;
}

// Daly's figures 3 to 5 are of M = 24 h, 6 h and 15 min, 500 h of work, R = 10 min, delta = 5 min;
// the last case has costs as large as the time between failures.
TEST(History, GoodputIsThatOfTheClosedFormExponential) {
  struct Case {
    Seconds between;
    Seconds interval;
    Seconds checkpoint;
    Seconds restart;
  };
  constexpr Seconds kWork = 500_h;
  for (const Case& each : {Case{24_h, 117_min, 5_min, 10_min}, Case{6_h, 57_min, 5_min, 10_min},
                           Case{15_min, 9_min, 5_min, 10_min}, Case{24_h, 24_h, 5_min, 10_min},
                           Case{1_h, 1_h, 20_min, 1_h}}) {
    // Whole intervals: the closed form counts the last one in part.
    const double steps = std::ceil(kWork / each.interval) * (each.interval / 1_s);
    const Seconds work = steps * 1_s;
    const Seconds mean =
        mean_time(each.between, each.interval, each.checkpoint, each.restart, steps, 400);
    const Seconds expected =
        expected_time(work, each.interval, each.checkpoint, each.restart, each.between);
    EXPECT_NEAR((work / mean) / (work / expected), 1, 0.02) << each.between / 1_h << " h";
  }
}

// One node alone fails, once in M while it works, and takes r to be repaired; R is the restart,
// which it may interrupt by failing again. A failure costs r, and the restart in the mean M
// (exp(R/M) - 1) + r (exp(R/M) - 1); a segment of L has exp(L/M) - 1 of them. Together (M + r)
// exp(R/M) (exp(L/M) - 1), instead of Daly's M exp(R/M) (exp(L/M) - 1).
TEST(History, WaitingForRepairsIsAsLongAsInTheClosedForm) {
  struct Case {
    Seconds between;
    Seconds repair;
  };
  for (const Case& each : {Case{24_h, 6_h}, Case{6_h, 24_h}, Case{1_h, 5_min}, Case{30_min, 1_h}}) {
    const std::vector<Hazard> hazards{
        {.between = each.between, .group = 4, .taken = 1, .repair = each.repair}};
    Rules rules = small(Policy::kWait);
    rules.steps = 300 * 3600.0;
    rules.detection = {};
    rules.restart = 13_min - 7_s;
    rules.interval = 20_min;
    rules.blocked = rules.written = 2_min;
    Proportional plans(4);
    Seconds sum;
    constexpr int kHistories = 400;
    for (int i = 0; i < kHistories; ++i)
      sum += history_of(rules, plans, Failures(hazards, 4, static_cast<std::uint64_t>(i)))->wall;
    const double slower = (each.between + each.repair) / each.between;
    const Seconds expected =
        slower * expected_time(300_h, rules.interval, rules.blocked, 13_min, each.between);
    EXPECT_NEAR(expected / (sum / kHistories), 1, 0.02) << each.between / 1_h << " h";
  }
}

// Whatever happens: the parts are the whole, nothing is counted that is not there, and what fails
// costs.
TEST(History, TimeIsConservedWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto pick = [&](std::uint64_t what, std::uint64_t most) {
      return mixed(seed * 64 + what) % most;
    };
    const std::vector<Hazard> hazards{
        {.between = static_cast<double>(10 + pick(1, 200)) * 1_s,
         .taken = 1,
         .repair = static_cast<double>(pick(2, 300)) * 1_s},
        {.between = 500_s, .group = 2, .taken = 2, .repair = 40_s},
        {.between = static_cast<double>(50 + pick(3, 500)) * 1_s, .of_job = true, .repair = {}},
        {.between = 300_s, .repair = {}}};
    Rules rules = small(static_cast<Policy>(pick(4, 4)));
    rules.recovery = static_cast<Recovery>(pick(5, 2));
    rules.steps = 500;
    rules.spares = rules.policy == Policy::kReplace ? static_cast<std::int64_t>(pick(6, 4)) : 0;
    rules.blocked = static_cast<double>(pick(7, 3)) * 1_s;
    rules.written = rules.blocked + static_cast<double>(pick(8, 10)) * 1_s;
    rules.restart = static_cast<double>(pick(9, 20)) * 1_s;
    Proportional plans(4, static_cast<std::int64_t>(1 + pick(10, 4)));
    const auto run = value_of(history_of(rules, plans, Failures(hazards, 4 + rules.spares, seed)));
    EXPECT_NEAR(run.parts.total() / run.wall, 1, 1e-9) << seed;
    for (const Seconds part :
         {run.parts.useful, run.parts.slowdown, run.parts.lost, run.parts.saving,
          run.parts.detection, run.parts.restart, run.parts.slices, run.parts.waiting})
      EXPECT_GE(part, -1e-6 * 1_s) << seed;
    if (run.finished) {
      EXPECT_NEAR(run.parts.useful / 1_s, 500, 1e-6) << seed;
    }
    EXPECT_LE(run.interrupted, run.failures) << seed;
    std::int64_t by_cause = 0;
    for (const auto& [cause, count] : run.by_cause) by_cause += count;
    EXPECT_EQ(by_cause, run.interrupted) << seed;
  }
}

// Without failures the closed form is what is left of it: (tau + delta) / tau.
TEST(History, TheClosedFormWithoutFailuresIsStepsAndCheckpoints) {
  EXPECT_NEAR(expected_time(100_h, 1_h, 6_min, 10_min, 1e9 * 1_h) / 110_h, 1, 1e-6);
}

// One node of two fails and is repaired, both exponential in the mean: the run on one node, or two.
// Failures of one node that a repair of fixed length r follows: of the time, a share
// (1/M) / (1/M + 1/r) = r / (M + r) is spent without it. With free restarts and no checkpoints to
// go back to (replicas), 4 nodes of which one fails make 3/4 of the speed in that share.
TEST(History, ShrinkingIsAsFastAsTheNodesThatAreThereClosedForm) {
  constexpr Seconds kBetween = 100_h;
  constexpr Seconds kRepair = 50_h;
  const std::vector<Hazard> hazards{
      {.between = kBetween, .group = 4, .taken = 1, .repair = kRepair}};  // always node 0
  Rules rules = small(Policy::kShrink, {}, Recovery::kReplicas);
  rules.steps = 10'000 * 3600.0;
  rules.detection = rules.restart = {};
  rules.interval = 10_min;
  rules.blocked = rules.written = 10_ms;
  class Free final : public Proportional {
   public:
    using Proportional::Proportional;
    Result<StateTransfer> shift(Arrangement, Arrangement, std::int64_t, Recovery) override {
      return StateTransfer{};
    }
  } plans(4);
  Seconds sum;
  constexpr int kHistories = 100;
  for (int i = 0; i < kHistories; ++i) {
    const auto run = history_of(rules, plans, Failures(hazards, 4, static_cast<std::uint64_t>(i)));
    sum += run->wall;
  }
  const double share = kRepair / (kBetween + kRepair);
  const double goodput = rules.steps * 1_s * kHistories / sum;
  EXPECT_NEAR(goodput / (1 - share / 4), 1, 0.02);
}

// --- intervals ---

// By hand from Daly's figures: 117, 57 and 9.1 minutes are the optima for M = 24 h, 6 h, 15 min.
TEST(Interval, DalysExamples) {
  EXPECT_NEAR(daly_interval(5_min, 24_h) / 1_min, 117, 0.5);
  EXPECT_NEAR(daly_interval(5_min, 6_h) / 1_min, 57, 0.5);
  EXPECT_NEAR(daly_interval(5_min, 15_min) / 1_min, 9.1, 0.05);
  EXPECT_EQ(daly_interval(2_h, 1_h), 1_h);  // a checkpoint of twice the time between failures
  EXPECT_NEAR(young_interval(5_min, 24_h) / 1_min, std::sqrt(2 * 5 * 1440.0), 1e-9);
}

// No other interval does better than Daly's by more than a thousandth.
TEST(Interval, DalysIsTheBestOfTheClosedForm) {
  for (const Seconds between : {1_h, 6_h, 24_h, 240_h}) {
    const auto time = [&](Seconds interval) {
      return expected_time(500_h, interval, 5_min, 10_min, between);
    };
    const Seconds best = daly_interval(5_min, between);
    for (const double factor : {0.5, 0.8, 0.9, 1.1, 1.25, 2.0})
      EXPECT_LT(time(best), 1.001 * time(factor * best)) << between / 1_h << " " << factor;
  }
}

// --- failures ---

TEST(Failures, ComeAsOftenAsTheirCausesAndEvenlyOverNodes) {
  const std::vector<Hazard> hazards{{.between = 10_h, .taken = 1, .repair = 1_h},
                                    {.between = 40_h, .group = 4, .taken = 4, .repair = 2_h},
                                    {.between = 20_h, .of_job = true, .repair = {}}};
  Failures failures(hazards, 8, 7);
  std::vector<double> by_cause(3);
  std::vector<double> by_node(8);
  Seconds last;
  constexpr double kHours = 200'000;
  for (;;) {
    const auto failure = value_of(failures.next());
    ASSERT_GT(failure.at, last);
    last = failure.at;
    if (last > kHours * 1_h) break;
    ++by_cause[failure.cause];
    EXPECT_EQ(failure.takes, failure.cause != 2);
    if (failure.cause == 0) ++by_node[static_cast<std::size_t>(failure.node)];
    if (failure.cause == 1) {
      EXPECT_EQ(failure.node % 4, 0);
      EXPECT_EQ(failure.nodes, 4);
      EXPECT_EQ(failure.back, failure.at + 2_h);
    }
  }
  EXPECT_NEAR(by_cause[0] / (kHours / 10), 1, 0.03);
  EXPECT_NEAR(by_cause[1] / (kHours / 40), 1, 0.05);
  EXPECT_NEAR(by_cause[2] / (kHours / 20), 1, 0.03);
  for (const double count : by_node) EXPECT_NEAR(count / (kHours / 80), 1, 0.1);
}

TEST(Failures, OfOneSeedAreTheSame) {
  const std::vector<Hazard> hazards{{.between = 10_h, .taken = 1, .repair = 1_h}};
  Failures one(hazards, 8, 7);
  Failures same(hazards, 8, 7);
  Failures other(hazards, 8, 8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto failure = one.next();
    EXPECT_EQ(failure->at, same.next()->at);
    differs = differs || failure->at != other.next()->at;
  }
  EXPECT_TRUE(differs);
}

}  // namespace foreshard::elastic::history_test
