// Cases worked by hand. Capacities of 10 or 100 units per second unless said; times in seconds.

#include "tests/sim/engine/run.h"
#include "tests/sim/engine/workloads.h"
#include "tests/test.h"

namespace foreshard::engine {
namespace {

double start(const Timeline& t, ActivityId a) {
  return t.start[a.index()].in_base();
}

TEST(Fluid, NothingTakesNoTime) {
  EXPECT_EQ(run(Workload{}).makespan, 0_s);
}

TEST(Fluid, OneFlowTakesLatencyPlusWorkOverCapacityToTheLastBit) {
  for (const double bytes : {8.0, 1e6, 1e9, 123456789.0}) {
    Workload w;
    const ShapeId flow = w.add_shape(path_shape({w.add_resource(450e9)}));
    w.add_activity(task(flow, bytes, 1_us));
    EXPECT_EQ(run(w).makespan.in_base(), 1e-6 + bytes / 450e9);
  }
}

TEST(Fluid, ALongPathRunsAtItsNarrowestLink) {
  Workload w;
  const auto wide = w.add_resource(100);
  const auto narrow = w.add_resource(10);
  w.add_activity(task(w.add_shape(path_shape({wide, narrow, w.add_resource(50)})), 200));
  EXPECT_EQ(run(w).makespan.in_base(), 20);
}

// 100 and 300 on a link of 10: 5 each until 20, when the first is done and 200 of the other are
// left; these take 20 more.
TEST(Fluid, TwoFlowsOnALinkGetHalfEach) {
  Workload w;
  const ShapeId flow = w.add_shape(path_shape({w.add_resource(10)}));
  const auto small = w.add_activity(task(flow, 100));
  const auto large = w.add_activity(task(flow, 300));
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, small), 20);
  EXPECT_DOUBLE_EQ(finish(t, large), 40);
}

// 7 senders of 100 each into one link of 100: 700 / 100.
TEST(Fluid, IncastSharesTheReceiver) {
  Workload w;
  const auto in = w.add_resource(100);
  for (int i = 0; i < 7; ++i)
    w.add_activity(task(w.add_shape(path_shape({w.add_resource(100), in})), 100));
  const Timeline t = run(w);
  for (int i = 0; i < 7; ++i) EXPECT_DOUBLE_EQ(finish(t, ActivityId(i)), 7);
}

// 4 hosts of 100 over one spine of 100 get 25 each. A fifth flow, from the first host to its
// neighbour below the spine, has the 75 which that host's link has left.
TEST(Fluid, OversubscribedSpineLeavesTheRestToLocalTraffic) {
  Workload w;
  const auto spine = w.add_resource(100);
  std::vector<ResourceId> out;
  out.reserve(4);
  for (int i = 0; i < 4; ++i) out.push_back(w.add_resource(100));
  for (int i = 0; i < 4; ++i)
    w.add_activity(task(w.add_shape(path_shape({out[static_cast<std::size_t>(i)], spine})), 100));
  const auto local =
      w.add_activity(task(w.add_shape(path_shape({out[0], w.add_resource(100)})), 150));
  const Timeline t = run(w);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(finish(t, ActivityId(i)), 4);
  EXPECT_DOUBLE_EQ(finish(t, local), 2);
}

TEST(Fluid, StepwiseRingTakesTwicePMinusOneSteps) {
  for (const int p : {2, 3, 8, 64}) {
    const double bytes = 1e9;
    const Timeline t = run(stepwise_ring(p, bytes / p, 50e9, 5_us));
    EXPECT_NEAR(t.makespan.in_base() / (2 * (p - 1) * (5e-6 + bytes / p / 50e9)), 1, 1e-13)
        << p << " ranks";
  }
}

// 3 connections against 1 on a link of 100: 75 and 25. The first, of 150, ends at 2; then 50 of the
// other's 100 are left for the whole link: 2.5.
TEST(Fluid, ALinkIsDividedInProportionToConnections) {
  Workload w;
  const auto link = w.add_resource(100);
  Shape three = path_shape({link});
  three.connections = 3;
  const auto big = w.add_activity(task(w.add_shape(three), 150));
  const auto small = w.add_activity(task(w.add_shape(path_shape({link})), 100));
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, big), 2);
  EXPECT_DOUBLE_EQ(finish(t, small), 2.5);
}

// A flow capped at 20 leaves 80 of 100 to the other.
TEST(Fluid, ACapLeavesTheRestToOthers) {
  Workload w;
  const auto link = w.add_resource(100);
  Shape slow = path_shape({link});
  slow.rate_cap = 20;
  const auto capped = w.add_activity(task(w.add_shape(slow), 20));
  const auto free = w.add_activity(task(w.add_shape(path_shape({link})), 80));
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, capped), 1);
  EXPECT_DOUBLE_EQ(finish(t, free), 1);
}

TEST(Fluid, ACapAloneBoundsWhatUsesNoResource) {
  Workload w;
  Shape host_work;
  host_work.rate_cap = 4;
  w.add_activity(task(w.add_shape(host_work), 10));
  EXPECT_EQ(run(w).makespan.in_base(), 2.5);
}

// Weights 4 and 2 become 1 and 1/2, and 100 units of progress 400. Both levels rise to 100 / 1.5 on
// the second link, of which the collective then takes a third. The flow ends at 200 / (100 / 1.5) =
// 3 s; then the collective, which has done 200, is bound by the first link alone: 2 s more.
TEST(Fluid, WeightsSayHowMuchProgressTakesOfEachLink) {
  Workload w;
  const auto first = w.add_resource(100);
  const auto second = w.add_resource(100);
  Shape collective;
  collective.usages = {{.resource = first, .weight = 4}, {.resource = second, .weight = 2}};
  const auto c = w.add_activity(task(w.add_shape(collective), 100));
  const auto flow = w.add_activity(task(w.add_shape(path_shape({second})), 200));
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, flow), 3);
  EXPECT_DOUBLE_EQ(finish(t, c), 5);
}

// A class of 4 equal flows on one real link of 100: 25 each.
TEST(Fluid, MultiplicityStandsForEqualActivities) {
  Workload w;
  Shape four;
  four.usages = {{.resource = w.add_resource(100), .multiplicity = 4}};
  w.add_activity(task(w.add_shape(four), 100));
  EXPECT_DOUBLE_EQ(run(w).makespan.in_base(), 4);
}

// A collective holds a fifth of a device for 2 s (100 on a link of 50). A kernel of 4 device
// seconds does 0.8 x 2 in that time, and the other 2.4 alone: 4.4.
TEST(Fluid, AnOccupationSlowsTheComputeBesideIt) {
  Workload w;
  const auto device = w.add_resource(1);
  Shape collective = path_shape({w.add_resource(50)});
  collective.occupations = {{.resource = device, .amount = 0.2}};
  const auto c = w.add_activity(task(w.add_shape(collective), 100));
  const auto kernel = w.add_activity(task(w.add_shape(path_shape({device})), 4));
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(finish(t, c), 2);
  EXPECT_DOUBLE_EQ(finish(t, kernel), 4.4);
}

// It holds from the end of its latency only: 1 s alone, 2 s at 0.8, the rest of 4 alone.
TEST(Fluid, AnOccupationBeginsAfterTheLatency) {
  Workload w;
  const auto device = w.add_resource(1);
  Shape collective = path_shape({w.add_resource(50)});
  collective.occupations = {{.resource = device, .amount = 0.2}};
  w.add_activity(task(w.add_shape(collective), 100, 1_s));
  const auto kernel = w.add_activity(task(w.add_shape(path_shape({device})), 4));
  EXPECT_DOUBLE_EQ(finish(run(w), kernel), 1 + 2 + (4 - 1 - 1.6));
}

// Ten tenths fill the device, although their sum is not 1 in binary. The kernel waits for 2 s.
TEST(Fluid, WhatIsFullyOccupiedStallsOthersUntilReleased) {
  Workload w;
  const auto device = w.add_resource(1);
  for (int i = 0; i < 10; ++i) {
    Shape shape = path_shape({w.add_resource(50)});
    shape.occupations = {{.resource = device, .amount = 0.1}};
    w.add_activity(task(w.add_shape(shape), 100));
  }
  EXPECT_DOUBLE_EQ(finish(run(w), w.add_activity(task(w.add_shape(path_shape({device})), 4))), 6);
}

// Each holds all that the other needs.
TEST(Fluid, NamesWhoCanNeverRun) {
  Workload w;
  const auto a = w.add_resource(1, "gpu 0");
  const auto b = w.add_resource(1, "gpu 1");
  Shape first = path_shape({a});
  first.occupations = {{.resource = b, .amount = 1}};
  Shape second = path_shape({b});
  second.occupations = {{.resource = a, .amount = 1}};
  w.add_activity(task(w.add_shape(path_shape({w.add_resource(1)})), 1));
  w.add_activity(task(w.add_shape(first), 1));
  w.add_activity(task(w.add_shape(second), 1));
  EXPECT_THAT(error_of(run_fluid(w)),
              Fails(Error::Code::kInfeasible,
                    AllOf(HasSubstr("activity 1 can never run"), HasSubstr("'gpu 0'"))));
}

TEST(Fluid, StartIsWhenPredecessorsAreDoneAndTheLagIsOver) {
  Workload w;
  const auto flow = [&w](double work) {
    return task(w.add_shape(path_shape({w.add_resource(10)})), work);
  };
  const auto first = w.add_activity(flow(10));  // ends at 1
  const auto slow = w.add_activity(flow(40));   // ends at 4
  Activity binding = flow(10);                  // 1 + 5 binds, not 4
  binding.release_from = first;
  binding.release_lag = 5_s;
  binding.latency = 0.5_s;
  const auto late = w.add_activity(binding);
  Activity loose = flow(10);  // 4 binds, not 1 + 2
  loose.release_from = first;
  loose.release_lag = 2_s;
  const auto early = w.add_activity(loose);
  Activity absolute = flow(10);
  absolute.release_lag = 3_s;
  const auto timed = w.add_activity(absolute);
  for (const auto to : {late, early}) w.add_edge(slow, to);
  const Timeline t = run(w);
  EXPECT_DOUBLE_EQ(start(t, late), 6);
  EXPECT_DOUBLE_EQ(finish(t, late), 7.5);
  EXPECT_DOUBLE_EQ(start(t, early), 4);
  EXPECT_DOUBLE_EQ(finish(t, early), 5);
  EXPECT_DOUBLE_EQ(start(t, timed), 3);
  EXPECT_DOUBLE_EQ(finish(t, timed), 4);
}

TEST(Fluid, ActivitiesWithoutWorkEndWithTheirLatencyInTheSameInstant) {
  Workload w;
  const ShapeId nothing = w.add_shape({});
  ActivityId before = w.add_activity(task(nothing, 0, 2_s));
  for (int i = 0; i < 100000; ++i) {
    const ActivityId next = w.add_activity(task(nothing, 0));
    w.add_edge(before, next);
    before = next;
  }
  const Timeline t = run(w);
  EXPECT_EQ(t.makespan, 2_s);
  EXPECT_EQ(start(t, before), 2);
}

// In each of 1000 chains on one link, an activity is replaced by an equal one at the same instant
// as all the others: 1000 x 10 in 100 per second, 5 times.
TEST(Fluid, SuccessorsTakeThePlaceOfEqualPredecessors) {
  Workload w;
  const ShapeId flow = w.add_shape(path_shape({w.add_resource(100)}));
  for (int step = 0; step < 5; ++step)
    for (int chain = 0; chain < 1000; ++chain) {
      const auto a = w.add_activity(task(flow, 10));
      if (step > 0) w.add_edge(ActivityId(a.value() - 1000), a);
    }
  const Timeline t = run(w);
  EXPECT_NEAR(t.makespan.in_base(), 500, 1e-10);
  EXPECT_EQ(t.events, 5000);
}

}  // namespace
}  // namespace foreshard::engine
