// Disturbed steps, worked by hand. Links carry 100 GB/s, that is 10 us per MB, after 1 us; kernels
// of 10^6 elements take 4 us.

#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "topology/cluster_builder.h"

namespace foreshard::sim {
namespace {

using disturbance::FailureReaction;
using disturbance::Plan;

// The link by which a device sends.
LinkId link_out_of(const ClusterView& cluster, std::int32_t device) {
  for (std::size_t l = 0; l < cluster.links().size(); ++l)
    if (cluster.links()[l].from == cluster.devices()[static_cast<std::size_t>(device)].vertex)
      return LinkId(static_cast<std::int64_t>(l));
  return {};
}

Prediction run_under(const ClusterView& cluster, const program::Program& program, const Plan& plan,
                     SimulateOptions options = {}) {
  options.disturbances = &plan;
  const auto slow = disturbance::slowed(cluster, plan);
  return run(slow ? *slow : cluster, program, options);
}

// 40 us of work and an all-reduce: at half speed one device takes 80 us, and all wait for it.
TEST(Disturbed, OneSlowDeviceHoldsUpAllByTheTimeThatItLoses) {
  const auto program =
      every_rank(8, {kernel("work", 10 * kMillion), all_reduce(4_MB, kFirst, {0})});
  Plan plan;
  plan.slow = {{.device = DeviceId(3), .speed = 0.5}};
  const auto usual = run_under(star(8), program, Plan{});
  const auto slow = run_under(star(8), program, plan);
  expect_time(slow.step - usual.step, 40_us);
  EXPECT_EQ(usual.classes.size(), 1u);
  EXPECT_LE(slow.classes.size(), 8u);
}

// 1 us, then 0.5 MB by 6 us, then 0.5 MB at 50 GB/s.
TEST(Disturbed, ALinkAtHalfItsBandwidthFromATimeOn) {
  const auto program = each_rank({{send(1, 1_MB, kFirst)}, {receive(0, 1_MB, kFirst)}});
  const auto cluster = star(2);
  Plan plan;
  plan.profiles = {{.links = {link_out_of(cluster, 0)}, .points = {{.at = 6_us, .factor = 0.5}}}};
  for (const auto granularity : {Granularity::kFlat, Granularity::kStepwise})
    expect_time(run_under(cluster, program, plan, {.granularity = granularity}).step, 16_us);
  // On SimGrid too: bandwidth that falls is what it can express.
  expect_time(run_under(cluster, program, plan,
                        {.engine = EngineKind::kSimgrid, .granularity = Granularity::kStepwise})
                  .step,
              16_us);
  // Every 8 us again all of it, from 8 us on: 0.5 MB by 6 us, 0.1 by 8 us, 0.4 by 12 us.
  plan.profiles[0].points = {{.at = 0_us, .factor = 1}, {.at = 6_us, .factor = 0.5}};
  plan.profiles[0].period = 8_us;
  expect_time(run_under(cluster, program, plan).step, 12_us);
}

// A kernel of 40 us, at half speed from 10 us to 30 us: 20 us of it are done by then.
TEST(Disturbed, ADeviceIsThrottledForAWhile) {
  const auto program = every_rank(2, {kernel("one", 5 * kMillion), kernel("two", 5 * kMillion)});
  Plan plan;
  plan.throttled = {{.device = DeviceId(1), .at = 10_us, .speed = 0.5},
                    {.device = DeviceId(1), .at = 30_us, .speed = 1}};
  const auto prediction = run_under(star(2), program, plan);
  ASSERT_EQ(prediction.classes.size(), 2u);
  expect_time(prediction.classes[0].finish, 40_us);
  expect_time(prediction.classes[1].finish, 50_us);
}

// 3 MB beside a flow of others from 1 us to 21 us: 1 MB by then, 2 MB in 20 us.
TEST(Disturbed, TrafficOfOthersShares) {
  const auto program = each_rank({{send(1, 3_MB, kFirst)}, {receive(0, 3_MB, kFirst)}});
  const auto cluster = star(3);
  Plan plan;
  disturbance::Traffic others{.what = "others", .from = 1_us, .until = 21_us};
  others.links = cluster.route(DeviceId(0), DeviceId(2))->links;
  plan.traffic = {others};
  expect_time(run_under(cluster, program, plan).step, 41_us);
  // It takes 25 GB/s, as it is told: 75 for 20 us, then all.
  plan.traffic[0].rate = 25_GB_s;
  plan.traffic[0].constant = true;
  expect_time(run_under(cluster, program, plan).step, 36_us);
  plan.traffic[0].constant = false;
  expect_time(run_under(cluster, program, plan).step, 36_us);
  // What leaves no link of the job's does not matter.
  plan.traffic[0].links = cluster.route(DeviceId(2), DeviceId(0))->links;
  expect_time(run_under(cluster, program, plan).step, 31_us);
}

// Two leaves with one device each, two spines; cables to spines carry 50 GB/s. No latency.
struct TwoSpines {
  ClusterView cluster;
  LinkId first_up;  ///< From the first leaf to the first spine.

  static TwoSpines make() {
    const ClusterView model = star(1);
    ClusterView::Builder builder("two spines");
    const auto type = builder.add_device_type(model.device_types()[0]);
    std::vector<VertexId> leaves;
    for (int i = 0; i < 2; ++i) {
      const auto node = builder.add_node();
      const auto device = builder.add_device(type, "node" + std::to_string(i) + "/gpu0", node);
      leaves.push_back(builder.add_vertex(VertexKind::kSwitch, "leaf" + std::to_string(i)));
      builder.connect(builder.vertex_of(device), leaves.back(),
                      {.bandwidth = 100_GB_s, .latency = 0_us});
    }
    LinkId first;
    for (int i = 0; i < 2; ++i) {
      const auto spine = builder.add_vertex(VertexKind::kSwitch, "spine" + std::to_string(i));
      for (const VertexId leaf : leaves) {
        const LinkId up = builder.connect(leaf, spine, {.bandwidth = 50_GB_s, .latency = 0_us});
        if (!first.valid()) first = up;
      }
    }
    return {std::move(builder).build(), first};
  }
};

// 1 MB over both spines takes 10 us. One dies at 5 us: the other carries the other half in 10 us.
TEST(Disturbed, AFlowIsReroutedOverTheSpineThatIsLeft) {
  const TwoSpines two = TwoSpines::make();
  const auto program = each_rank({{send(1, 1_MB, kFirst)}, {receive(0, 1_MB, kFirst)}});
  expect_time(run_under(two.cluster, program, Plan{}).step, 10_us);
  Plan plan;
  plan.outages = {{.what = "leaf0 - spine0",
                   .links = {two.first_up, LinkId(two.first_up.value() + 1)},
                   .devices = {},
                   .at = 5_us,
                   .then = FailureReaction::kReroute}};
  expect_time(run_under(two.cluster, program, plan).step, 15_us);
  plan.outages[0].detection = 2_us;  // it stands still for so long
  expect_time(run_under(two.cluster, program, plan).step, 17_us);
  plan.outages[0].until = 12_us;  // 0.25 MB from 7 us on, 0.25 MB over both
  expect_time(run_under(two.cluster, program, plan).step, 14.5_us);
  plan.outages[0].until = 6_us;  // back before anybody noticed
  expect_time(run_under(two.cluster, program, plan).step, 11_us);
  plan.outages[0].then = FailureReaction::kWait;
  plan.outages[0].until = 12_us;
  expect_time(run_under(two.cluster, program, plan).step, 17_us);
}

TEST(Disturbed, NothingLeftToRerouteOverIsInfeasible) {
  const TwoSpines two = TwoSpines::make();
  const auto program = each_rank({{send(1, 1_MB, kFirst)}, {receive(0, 1_MB, kFirst)}});
  Plan plan;
  plan.outages = {{.what = "device node1/gpu0", .at = 5_us, .then = FailureReaction::kReroute}};
  plan.outages[0].links = {two.cluster.route(DeviceId(0), DeviceId(1))->links.back().link};
  plan.outages[0].links = {LinkId(2), LinkId(3)};
  EXPECT_THAT(
      error_of(simulate(two.cluster, program, rings(), {.disturbances = &plan})),
      Fails(Error::Code::kInfeasible, AllOf(HasSubstr("after the failure of device node1/gpu0"),
                                            HasSubstr("no route from node0/gpu0 to node1/gpu0"))));
  const auto stepwise = simulate(two.cluster, program, rings(),
                                 {.granularity = Granularity::kStepwise, .disturbances = &plan});
  ASSERT_FALSE(stepwise);
  EXPECT_EQ(stepwise.error().code, Error::Code::kUnsupported);
}

// Rank 0 sends to 1, which sends it on to 2, which then works. The first link dies at 5 us.
TEST(Disturbed, AFailureSaysWhatFailedAndWhoWaits) {
  const auto program = each_rank(
      {{send(1, 1_MB, kFirst)},
       {kernel("before", kMillion), receive(0, 1_MB, kFirst), send(2, 1_MB, kSecond, {1})},
       {receive(1, 1_MB, kFirst), kernel("after", kMillion, {0})}});
  const auto cluster = star(3);
  Plan plan;
  plan.outages = {{.what = "link",
                   .links = {link_out_of(cluster, 0)},
                   .devices = {},
                   .at = 5_us,
                   .then = FailureReaction::kFail,
                   .detection = 3_us}};
  for (const auto granularity : {Granularity::kFlat, Granularity::kStepwise}) {
    const auto prediction =
        run_under(cluster, program, plan, {.granularity = granularity, .timeline = true});
    ASSERT_TRUE(prediction.interruption);
    const Interruption& what = *prediction.interruption;
    expect_time(prediction.step, 8_us);
    expect_time(what.at, 8_us);
    ASSERT_EQ(what.failed.size(), 1u);
    EXPECT_EQ(what.failed[0].task.device_class, 0);
    expect_time(what.failed[0].at, 8_us);
    EXPECT_EQ(what.failed[0].start, 0_us);
    EXPECT_THAT(what.failed[0].on, HasSubstr("->"));
    ASSERT_EQ(what.waiting.size(), 3u);
    for (const WaitingClass& one : what.waiting) {
      EXPECT_TRUE(one.failed);
      EXPECT_EQ(one.waits_for.device_class, 0);
    }
    EXPECT_EQ(what.waiting[1].task.task, 1);
    // A flat transfer holds 1 of 100 SMs beside the kernel once its latency is over.
    expect_time(what.waiting[1].since,
                granularity == Granularity::kFlat ? 1_us + 3_us / 0.99 : 4_us);
    EXPECT_EQ(what.waiting[2].task.task, 0);
    EXPECT_EQ(what.unfinished, 5);
    EXPECT_TRUE(prediction.critical_path.empty());
    ASSERT_FALSE(prediction.timeline.empty());
    for (const TimelineEntry& entry : prediction.timeline) EXPECT_LE(entry.finish, 8_us);
    expect_time(prediction.breakdown.total(), 8_us);
  }
}

// Dead at 10 us, noticed at 15 us; what the other does beside it goes on.
TEST(Disturbed, ADeadDeviceStopsItsKernelsAndThoseWhoWaitForIt) {
  const auto cluster = star(2);
  const auto program =
      every_rank(2, {kernel("one", 2 * kMillion), kernel("two", 2 * kMillion),
                     kernel("three", 2 * kMillion), all_reduce(4_MB, kFirst, {2})});
  Plan plan;
  plan.outages = {{.what = "device",
                   .links = {link_out_of(cluster, 1)},
                   .devices = {DeviceId(1)},
                   .at = 10_us,
                   .then = FailureReaction::kFail,
                   .detection = 5_us}};
  const auto prediction = run_under(cluster, program, plan);
  ASSERT_TRUE(prediction.interruption);
  expect_time(prediction.interruption->at, 15_us);
  expect_time(prediction.step, 24_us);  // rank 0's third kernel
  ASSERT_EQ(prediction.interruption->failed.size(), 1u);
  EXPECT_EQ(prediction.interruption->failed[0].task.task, 1);
  EXPECT_EQ(prediction.interruption->waiting[0].task.task, 3);
  EXPECT_EQ(prediction.interruption->waiting[0].waits_for.device_class, 1);
  EXPECT_EQ(prediction.interruption->waiting[0].waits_for.task, 1);
  // With `wait` nobody fails, and all stand still for ever.
  plan.outages[0].then = FailureReaction::kWait;
  const auto still = run_under(cluster, program, plan);
  ASSERT_TRUE(still.interruption);
  EXPECT_TRUE(still.interruption->failed.empty());
  EXPECT_FALSE(still.interruption->waiting[0].failed);
}

TEST(Disturbed, JitterIsTheSameForTheSameSeed) {
  const auto program = every_rank(
      4, {kernel("a", kMillion), kernel("b", 3 * kMillion), all_reduce(1_MB, kFirst, {1})});
  Plan plan;
  plan.seed = 7;
  plan.jitter = disturbance::Distribution{
      .kind = disturbance::DistributionKind::kUniform, .low = 0.9, .high = 1.5};
  const auto one = run_under(star(4), program, plan, {.timeline = true});
  const auto same = run_under(star(4), program, plan, {.timeline = true});
  ASSERT_EQ(one.classes.size(), 4u);
  ASSERT_EQ(one.timeline.size(), same.timeline.size());
  for (std::size_t i = 0; i < one.timeline.size(); ++i)
    EXPECT_EQ(one.timeline[i].finish, same.timeline[i].finish);
  for (const TimelineEntry& entry : one.timeline) {
    if (entry.task > 1) continue;
    const double factor =
        (entry.finish - entry.start) / kernel_time(entry.task == 0 ? kMillion : 3 * kMillion);
    EXPECT_GE(factor, 0.9 * (1 - 1e-9));
    EXPECT_LE(factor, 1.5 * (1 + 1e-9));
  }
  plan.seed = 8;
  EXPECT_NE(run_under(star(4), program, plan).step, one.step);
}

TEST(Disturbed, ByNothingIsTheStepItself) {
  const auto program =
      every_rank(8, {kernel("work", 10 * kMillion), all_reduce(4_MB, kFirst, {0})});
  EXPECT_EQ(run_under(star(8), program, Plan{}).step, run(star(8), program).step);
}

TEST(Disturbed, SlowerDevicesNeverHelpThoseWhoComputeInStep) {
  const auto program =
      every_rank(6, {kernel("work", 3 * kMillion), all_reduce(1_MB, kCompute, {0}),
                     kernel("more", kMillion, {1}), all_reduce(2_MB, kCompute, {2})});
  Seconds before = run_under(star(6), program, Plan{}).step;
  Plan plan;
  for (int i = 0; i < 30; ++i) {
    plan.slow.clear();
    for (int d = 0; d < 6; ++d) {
      const int times = (i + d) / 6;  // slowed so far: one device after another
      plan.slow.push_back({.device = DeviceId(d), .speed = 1 / (1 + 0.01 * times * (1 + d % 3))});
    }
    const Seconds now = run_under(star(6), program, plan).step;
    EXPECT_GE(now, before * (1 - 1e-12));
    before = now;
  }
}

}  // namespace
}  // namespace foreshard::sim
