// Events of a workload: cases worked by hand, then random ones against the dense oracle.

#include "tests/sim/engine/oracle.h"
#include "tests/sim/engine/random_workload.h"
#include "tests/sim/engine/run.h"
#include "tests/test.h"

namespace foreshard::engine::events_test {

Seconds at(double seconds) {
  return Seconds::from_base(seconds);
}

// 10 GB over 1 GB/s, of which half is left from 4 s on: 4 GB are done by then, the other 6 take
// 12 s.
TEST(Events, AFlowGoesOnAtHalfTheBandwidth) {
  Workload w;
  const auto link = w.add_resource(1e9);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 10e9));
  w.add_capacity_change(link, 4_s, 0.5e9);
  EXPECT_EQ(finish(run(w), flow), 16);
}

// The same, back to 1 GB/s at 8 s: 4 GB by 4 s, 2 more by 8 s, 4 s for the last 4.
TEST(Events, CapacityComesBack) {
  Workload w;
  const auto link = w.add_resource(1e9);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 10e9));
  w.add_capacity_change(link, 4_s, 0.5e9);
  w.add_capacity_change(link, 8_s, 1e9);
  EXPECT_EQ(finish(run(w), flow), 12);
}

// 1 for a second, 3 for a second, and so on: 4 in 2 s, so 9 need 4 s for 8 and 1 s more.
TEST(Events, APeriodicProfileGoesOnForEver) {
  Workload w;
  const auto link = w.add_resource(1);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 9));
  w.add_capacity_change(link, 0_s, 1, 2_s);
  w.add_capacity_change(link, 1_s, 3, 2_s);
  EXPECT_EQ(finish(run(w), flow), 5);
}

// Two flows on two links of 10 each that also cross one of 10: 5 each. When the first's own link
// falls to 2 at 2 s, the second gets 8: 10 of 34 are done by 2 s, 24 more take 3 s. The first has
// 10 of 30, then 2/s for the other 20: 12 s.
TEST(Events, WhatOneLosesAnotherGets) {
  Workload w;
  const auto a = w.add_resource(10);
  const auto b = w.add_resource(10);
  const auto shared = w.add_resource(10);
  const auto first = w.add_activity(task(w.add_shape(path_shape({a, shared})), 30));
  const auto second = w.add_activity(task(w.add_shape(path_shape({b, shared})), 34));
  w.add_capacity_change(a, 2_s, 2);
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, second), 5);
  EXPECT_DOUBLE_EQ(finish(t, first), 12);
}

// Dead from 4 s to 7 s: 3 s later than otherwise. What starts while it is dead waits too.
TEST(Events, WhatStandsStillGoesOnAfterTheRepair) {
  Workload w;
  const auto link = w.add_resource(1);
  const ShapeId shape = w.add_shape(path_shape({link}));
  const auto flow = w.add_activity(task(shape, 10));
  const auto late = w.add_activity(task(shape, 1, 5_s));
  w.add_failure(link, 4_s);
  w.add_repair(link, 7_s);
  const Timeline t = run(w);
  EXPECT_TRUE(t.complete);
  // From 7 s on half each: the late one is done at 9 s, the other has 5 left then.
  EXPECT_EQ(finish(t, late), 9);
  EXPECT_EQ(finish(t, flow), 14);
}

TEST(Events, AnActivityFailsWhenItsPatienceEnds) {
  Workload w;
  const auto link = w.add_resource(1, "cable");
  const auto other = w.add_resource(1);
  const ShapeId shape = w.add_shape(path_shape({link}));
  const auto flow = w.add_activity(task(shape, 10));
  const auto after = w.add_activity(task(shape, 1));
  const auto apart = w.add_activity(task(w.add_shape(path_shape({other})), 20));
  const auto late = w.add_activity(task(shape, 1, 6_s));
  w.add_edge(flow, after);
  w.add_failure(link, 4_s, 3_s);
  const Timeline t = run(w);
  EXPECT_FALSE(t.complete);
  ASSERT_EQ(t.failures.size(), 2u);
  EXPECT_EQ(t.failures[0].activity, flow);
  EXPECT_EQ(t.failures[0].at, 7_s);
  EXPECT_EQ(w.resource_name(t.failures[0].on), "cable");
  EXPECT_EQ(t.failures[1].activity, late);
  EXPECT_EQ(t.failures[1].at, 9_s);
  EXPECT_EQ(t.start[flow.index()], 0_s);
  EXPECT_TRUE(std::isinf(finish(t, flow)));
  EXPECT_TRUE(std::isinf(finish(t, after)));
  EXPECT_TRUE(std::isinf(t.start[after.index()].in_base()));
  EXPECT_EQ(finish(t, apart), 20);  // the rest of the run goes on
  EXPECT_EQ(t.makespan, 20_s);
}

TEST(Events, ARepairInTimeSavesIt) {
  Workload w;
  const auto link = w.add_resource(1);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 10));
  w.add_failure(link, 4_s, 3_s);
  w.add_repair(link, 6.5_s);
  const Timeline t = run(w);
  EXPECT_TRUE(t.complete);
  EXPECT_EQ(finish(t, flow), 12.5);
}

// What stands still because others hold all of a resource does not fail with it.
TEST(Events, WaitingForAHeldResourceIsNoFailure) {
  Workload w;
  const auto sm = w.add_resource(1);
  const auto link = w.add_resource(1);
  Shape holder = path_shape({link});
  holder.occupations.push_back({.resource = sm, .amount = 1});
  const auto collective = w.add_activity(task(w.add_shape(holder), 5));
  const auto kernel = w.add_activity(task(w.add_shape(path_shape({sm})), 1));
  w.add_failure(link, 1_s, 10_s);
  w.add_repair(link, 4_s);
  const Timeline t = run(w);
  EXPECT_TRUE(t.complete);
  EXPECT_EQ(finish(t, collective), 8);
  EXPECT_EQ(finish(t, kernel), 9);
}

TEST(Events, WhatStandsStillForEverIsToldNotWaitedFor) {
  Workload w;
  const auto link = w.add_resource(1);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 10));
  w.add_capacity_change(link, 4_s, 0, 2_s);
  const Timeline t = run(w);
  EXPECT_FALSE(t.complete);
  EXPECT_TRUE(t.failures.empty());
  EXPECT_EQ(t.start[flow.index()], 0_s);
}

// Two spines of 10, half of the flow over each: 20/s. One dies at 2 s, 40 of 100 are done: the
// other 60 take 6 s over the one that is left. A flow added later is on that one from the start.
TEST(Events, ReroutedFlowsGoOnWithWhatTheyHaveLeft) {
  Workload w;
  const auto one = w.add_resource(10);
  const auto two = w.add_resource(10);
  const ShapeId both =
      w.add_shape({.usages = {{.resource = one, .weight = 0.5}, {.resource = two, .weight = 0.5}},
                   .occupations = {}});
  const ShapeId left = w.add_shape({.usages = {{.resource = two}}, .occupations = {}});
  const auto flow = w.add_activity(task(both, 100));
  const auto next = w.add_activity(task(both, 50));
  w.add_edge(flow, next);
  w.add_failure(one, 2_s, 1_s);
  w.add_shape_change(both, 2_s, left);
  Workload repaired = w;
  const Timeline t = run(w);
  EXPECT_TRUE(t.complete);
  EXPECT_DOUBLE_EQ(finish(t, flow), 8);
  EXPECT_DOUBLE_EQ(finish(t, next), 13);
  // Repaired at 10 s, when 20 of the 50 are done: 30 at 20/s.
  repaired.add_repair(one, 10_s);
  repaired.add_shape_change(both, 10_s, both);
  EXPECT_DOUBLE_EQ(finish(run(repaired), next), 11.5);
}

// A flow of others halves the link from 2 s to 6 s: 2 + 4/2 of 10 are done by then.
TEST(Events, TrafficOfOthersSharesAndEnds) {
  Workload w;
  const auto link = w.add_resource(1);
  const ShapeId shape = w.add_shape(path_shape({link}));
  const auto flow = w.add_activity(task(shape, 10));
  w.add_background(shape, 2_s, 6_s);
  const Timeline t = run(w);
  EXPECT_EQ(finish(t, flow), 12);
  EXPECT_EQ(t.makespan, 12_s);
}

// Up to 0.25/s: the flow has 0.75. For ever, but the run ends with its last activity.
TEST(Events, TrafficOfOthersTakesNoMoreThanItsRate) {
  Workload w;
  const auto link = w.add_resource(1);
  Shape others = path_shape({link});
  others.rate_cap = 0.25;
  w.add_background(w.add_shape(others), 0_s, kNever);
  EXPECT_EQ(finish(run(w), w.add_activity(task(w.add_shape(path_shape({link})), 3))), 4);
}

// 0.7 are taken, however many want a share; every 4 s, for 2 s: 0.3 * 2 + 2 = 2.6 in 4 s.
TEST(Events, AnOpenLoopTakesItsRateWhoeverElseIsThere) {
  Workload w;
  const auto link = w.add_resource(1);
  const ShapeId taken =
      w.add_shape({.usages = {}, .occupations = {{.resource = link, .amount = 0.7}}});
  w.add_background(taken, 0_s, 2_s, 4_s);
  const auto flow = w.add_activity(task(w.add_shape(path_shape({link})), 2 * 2.6 + 0.3));
  EXPECT_DOUBLE_EQ(finish(run(w), flow), 9);
}

TEST(Events, ThatChangeNothingChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Workload plain = random_workload(seed, {.occupations = false});
    Workload same = plain;
    same.add_capacity_change(ResourceId(0), 1_s, plain.capacity(ResourceId(0)));
    same.add_shape_change(ShapeId(1), 2_s, ShapeId(1));
    const Timeline one = run(plain);
    const Timeline other = run(same);
    for (std::size_t a = 0; a < one.finish.size(); ++a)
      ASSERT_NEAR(one.finish[a] / 1_s, other.finish[a] / 1_s, 1e-12 * (1 + one.makespan / 1_s))
          << "seed " << seed;
  }
}

Workload with_random_events(std::uint64_t seed) {
  Random random(seed * 31);
  Workload w = random_workload(seed, {.resources = 4 + random.below(6),
                                      .shapes = 4 + random.below(8),
                                      .activities = 8 + random.below(20),
                                      .occupations = random.one_in(2)});
  const auto resource = [&] {
    return ResourceId(random.below(static_cast<int>(w.resource_count())));
  };
  const auto shape = [&] { return ShapeId(random.below(static_cast<int>(w.shapes().size()))); };
  const auto time = [&] { return at(random.one_in(3) ? random.below(60) : random.between(0, 80)); };
  for (int i = random.below(6); i > 0; --i)
    w.add_capacity_change(resource(), time(), random.one_in(5) ? 0 : random.between(0.5, 20));
  for (int i = random.below(4); i > 0; --i) {
    const ResourceId which = resource();
    const Seconds from = time();
    w.add_failure(which, from, random.one_in(3) ? kNever : at(random.between(0, 20)));
    if (!random.one_in(3)) w.add_repair(which, from + at(random.between(0, 30)));
  }
  for (int i = random.below(5); i > 0; --i) w.add_shape_change(shape(), time(), shape());
  for (int i = random.below(4); i > 0; --i) {
    const Seconds from = time();
    w.add_background(shape(), from, random.one_in(3) ? kNever : from + at(random.between(0, 40)));
  }
  return w;
}

TEST(EventProperties, AgreeWithTheOracle) {
  int incomplete = 0;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Workload w = with_random_events(seed);
    const auto expected = oracle::outcome_of(w);
    const auto actual = run_fluid(w);
    if (!actual) {  // without events, some can never run
      EXPECT_TRUE(w.events().empty());
      continue;
    }
    std::vector<double> failed(expected.finish.size(), std::numeric_limits<double>::infinity());
    for (const Failure& failure : actual->failures)
      failed[failure.activity.index()] = failure.at.in_base();
    for (std::size_t a = 0; a < expected.finish.size(); ++a) {
      const auto same = [](double x, double y) {
        return x == y || std::abs(x - y) <= 1e-9 * std::max(1.0, y);
      };
      EXPECT_TRUE(same(actual->finish[a].in_base(), expected.finish[a]))
          << a << ": " << actual->finish[a].in_base() << " for " << expected.finish[a];
      EXPECT_TRUE(same(failed[a], expected.failed[a]))
          << a << " failed: " << failed[a] << " for " << expected.failed[a];
    }
    if (!actual->complete) ++incomplete;
    failures += static_cast<int>(actual->failures.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(incomplete, 100);
  EXPECT_GT(failures, 100);
}

TEST(EventProperties, FallingCapacitiesAgreeWithSimgrid) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Workload w = random_workload(seed, {.activities = 20, .plain = true});
    Random random(seed);
    for (int r = 0; r < 4; ++r) {
      const double capacity = w.capacity(ResourceId(r));
      w.add_capacity_change(ResourceId(r), at(random.between(0, 30)), capacity * 0.6);
      w.add_capacity_change(ResourceId(r), at(random.between(30, 60)), capacity * 0.4);
    }
    const auto fluid = run_fluid(w);
    const auto simgrid = run_simgrid(w);
    ASSERT_TRUE(fluid && simgrid);
    for (std::size_t a = 0; a < w.activity_count(); ++a)
      EXPECT_NEAR(simgrid->finish[a] / 1_s, fluid->finish[a] / 1_s,
                  1e-6 * (fluid->finish[a] / 1_s));
  }
}

TEST(EventProperties, SimgridRefusesWhatItCannotExpress) {
  const auto refusal = [](auto&& add) {
    Workload w;
    const auto link = w.add_resource(1);
    const ShapeId shape = w.add_shape(path_shape({link}));
    w.add_activity(task(shape, 1));
    add(w, link, shape);
    const auto t = run_simgrid(w);
    EXPECT_FALSE(t);
    if (t) return std::string();
    EXPECT_EQ(t.error().code, Error::Code::kUnsupported);
    return t.error().message;
  };
  EXPECT_THAT(refusal([](Workload& w, ResourceId r, ShapeId) { w.add_capacity_change(r, 1_s, 2); }),
              HasSubstr("a capacity grows"));
  EXPECT_THAT(refusal([](Workload& w, ResourceId r, ShapeId) { w.add_capacity_change(r, 1_s, 0); }),
              HasSubstr("nothing left"));
  EXPECT_THAT(refusal([](Workload& w, ResourceId r, ShapeId) { w.add_failure(r, 1_s, 1_s); }),
              HasSubstr("a resource fails"));
  EXPECT_THAT(refusal([](Workload& w, ResourceId, ShapeId s) { w.add_shape_change(s, 1_s, s); }),
              HasSubstr("changes its shape"));
  EXPECT_THAT(refusal([](Workload& w, ResourceId, ShapeId s) { w.add_background(s, 1_s, 2_s); }),
              HasSubstr("traffic of others"));
}

}  // namespace foreshard::engine::events_test
