// Folding under disturbances: one device of each class stands for all, whatever is not perfect.
#include <cstdio>

#include "tests/sim/simulate/random_cluster.h"
#include "tests/sim/simulate/random_program.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/simulate/simulate.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::disturb_exact_test {

using disturbance::FailureReaction;
using disturbance::Plan;

class RandomPlan {
 public:
  RandomPlan(std::mt19937& random, const ClusterView& cluster, Seconds step)
      : random_(random), cluster_(cluster), step_(step) {}

  Plan make() {
    for (int i = below(3); i > 0; --i)
      plan_.slow.push_back({.device = DeviceId(below(devices())), .speed = part(0.3)});
    std::ranges::sort(plan_.slow, {}, &disturbance::SlowDevice::device);
    if (below(3) == 0) throttle();
    for (int i = below(3); i > 0; --i) profile();
    for (int i = below(3); i > 0; --i) outage();
    for (int i = below(3); i > 0; --i) traffic();
    return plan_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  double part(double from) { return from + (1 - from) * below(1000) / 1000; }
  int devices() const { return static_cast<int>(cluster_.devices().size()); }
  Seconds time() { return step_ * (part(0) * 0.9); }
  LinkId link() { return LinkId(below(static_cast<int>(cluster_.links().size()))); }

  // One, or all of one kind.
  std::vector<LinkId> links() {
    const LinkId one = link();
    if (below(3) > 0) return {one};
    std::vector<LinkId> all;
    const Link& like = cluster_.links()[one.index()];
    for (std::size_t l = 0; l < cluster_.links().size(); ++l) {
      const Link& other = cluster_.links()[l];
      if (other.kind == like.kind && other.bandwidth == like.bandwidth)
        all.emplace_back(static_cast<std::int64_t>(l));
    }
    return all;
  }

  void throttle() {
    const DeviceId device(below(devices()));
    const Seconds at = time();
    plan_.throttled.push_back({.device = device, .at = at, .speed = part(0.3)});
    plan_.throttled.push_back({.device = device, .at = at + step_ * 0.1, .speed = 1});
  }
  void profile() {
    disturbance::Profile profile{.links = {}, .points = {{time(), part(0.1)}}};
    profile.points.push_back({profile.points[0].at + step_ * 0.2, below(2) == 0 ? 1 : part(0.1)});
    if (below(2) == 0) profile.period = step_ * 0.5;
    for (const LinkId one : links())
      if (!profiled_[one]) profile.links.push_back(one);
    for (const LinkId one : profile.links) profiled_[one] = true;
    if (!profile.links.empty()) plan_.profiles.push_back(profile);
  }
  void outage() {
    disturbance::Outage outage{.what = "it", .at = time()};
    outage.then =
        std::array{FailureReaction::kFail, FailureReaction::kReroute, FailureReaction::kReroute,
                   FailureReaction::kWait}[static_cast<std::size_t>(below(4))];
    outage.links = {link()};
    // Between switches: that is where there may be another way.
    for (int i = 0; i < 20 && !fabric(outage.links[0]); ++i) outage.links = {link()};
    outage.detection = step_ * (0.05 * below(3));
    if (outage.then == FailureReaction::kWait || below(2) == 0)
      outage.until = outage.at + step_ * (0.02 + part(0) * 0.4);
    plan_.outages.push_back(outage);
  }
  bool fabric(LinkId id) const {
    const Link& one = cluster_.links()[id.index()];
    return cluster_.vertices()[one.from.index()].kind == VertexKind::kSwitch &&
           cluster_.vertices()[one.to.index()].kind == VertexKind::kSwitch;
  }
  void traffic() {
    disturbance::Traffic traffic{.what = "others", .constant = below(2) == 0};
    const int from = below(devices());
    const int to = below(devices());
    if (from == to || below(2) == 0)
      traffic.links = {{.link = link()}};
    else
      traffic.links = cluster_.route(DeviceId(from), DeviceId(to))->links;
    if (traffic.constant || below(2) == 0)
      traffic.rate = cluster_.links()[traffic.links[0].link.index()].bandwidth * part(0.1) * 0.9;
    traffic.connections = 1 + below(8);
    traffic.from = time();
    if (below(2) == 0) traffic.until = traffic.from + step_ * 0.3;
    plan_.traffic.push_back(traffic);
  }

  std::mt19937& random_;
  const ClusterView& cluster_;
  Seconds step_;
  Plan plan_;
  std::map<LinkId, bool> profiled_;
};

double apart(Seconds a, Seconds b) {
  return std::abs((a - b).in_base()) / std::max(1e-30, std::max(a.in_base(), b.in_base()));
}

struct Tally {
  int cases = 0;
  int infeasible = 0;
  int interrupted = 0;
  std::int64_t folded_away = 0;
};

void compare(const ClusterView& cluster, const program::Program& program, std::mt19937& random,
             Tally& tally) {
  const comm::Parameters parameters = comm::ideal_parameters();
  const auto usual = value_of(simulate(cluster, program, parameters, {}));
  if (usual.step == 0_s) return;
  const Plan plan = RandomPlan(random, cluster, usual.step).make();
  auto slow = disturbance::slowed(cluster, plan);
  const ClusterView& on = slow ? *slow : cluster;
  const auto folded = simulate(on, program, parameters, {.disturbances = &plan});
  const auto unfolded = simulate(on, program, parameters, {.fold = false, .disturbances = &plan});
  ASSERT_EQ(folded.has_value(), unfolded.has_value());
  ++tally.cases;
  if (!folded) {
    EXPECT_EQ(folded.error().code, Error::Code::kInfeasible) << folded.error().message;
    ++tally.infeasible;
    return;
  }
  ASSERT_EQ(folded->interruption.has_value(), unfolded->interruption.has_value());
  tally.interrupted += folded->interruption ? 1 : 0;
  EXPECT_LT(apart(folded->step, unfolded->step), 1e-9);
  tally.folded_away += folded->devices - static_cast<std::int64_t>(folded->classes.size());
  for (const DeviceClass& of : folded->classes) {
    const auto& same = unfolded->classes[static_cast<std::size_t>(of.representative)];
    EXPECT_LT(apart(of.finish, same.finish), 1e-9) << of.representative;
    EXPECT_LT(apart(of.breakdown.total(), folded->step), 1e-9);
    EXPECT_NEAR(of.memory.peak / 1_B, same.memory.peak / 1_B, 1) << of.representative;
  }
  if (!folded->interruption) return;
  EXPECT_LT(apart(folded->interruption->at, unfolded->interruption->at), 1e-9);
}

TEST(DisturbedFolding, ChangesNothingOfAProgram) {
  Tally tally;
  for (unsigned seed = 0; seed < 250; ++seed) {
    std::mt19937 random(11000 + seed);
    const std::int64_t ranks = std::array{4, 8, 16, 24}[random() % 4];
    SCOPED_TRACE("seed " + std::to_string(11000 + seed) + ", " + std::to_string(ranks) + " ranks");
    const ClusterView cluster = random_cluster(
        random, ranks, {.routing = random() % 2 == 0 ? Routing::kSpread : Routing::kEcmpHash});
    compare(cluster, random_program(random, ranks), random, tally);
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%d disturbed programs: %d without a way left, %d interrupted, %lld devices folded\n",
              tally.cases, tally.infeasible, tally.interrupted,
              static_cast<long long>(tally.folded_away));
  EXPECT_GT(tally.interrupted, 0);
  EXPECT_LT(tally.infeasible, tally.cases / 2);
}

TEST(DisturbedFolding, ChangesNothingOfAStrategy) {
  Tally tally;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(12000 + seed);
    const auto training = random_training(random, 32);
    SCOPED_TRACE("seed " + std::to_string(12000 + seed) + ": " + describe(training));
    const ClusterView cluster = random_cluster(random, training.strategy.devices(), {});
    const auto program =
        value_of(lower::lower(training.model, training.strategy, {.launch_time = 2_us}));
    if (cluster.links().empty()) continue;
    compare(cluster, program, random, tally);
    if (testing::Test::HasFailure()) return;
  }
  std::printf(
      "%d disturbed strategies: %d without a way left, %d interrupted, %lld devices folded\n",
      tally.cases, tally.infeasible, tally.interrupted, static_cast<long long>(tally.folded_away));
  EXPECT_GT(tally.folded_away, 0);
}

}  // namespace foreshard::sim::disturb_exact_test
