// The fluid engine against the plain one of oracle.h, and what the definition of sharing promises.

#include "tests/sim/engine/oracle.h"
#include "tests/sim/engine/random_workload.h"
#include "tests/test.h"

#include "sim/engine/internal/sharing.h"

namespace foreshard::engine {
namespace {

constexpr double kClose = 1e-9;

void expect_close(double actual, double expected, std::size_t activity) {
  if (std::isinf(expected) && std::isinf(actual)) return;
  EXPECT_NEAR(actual, expected, kClose * std::max(1.0, expected)) << "activity " << activity;
}

TEST(FluidProperties, AgreesWithTheOracleOnRandomWeightedGraphs) {
  int stalled = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed * 977);
    const Workload w = random_workload(seed, {.resources = 5 + random.below(8),
                                              .shapes = 4 + random.below(12),
                                              .activities = 10 + random.below(30)});
    const auto expected = oracle::finish_times(w);
    const auto actual = run_fluid(w);
    if (std::ranges::any_of(expected, [](double t) { return std::isinf(t); })) {
      EXPECT_FALSE(actual);
      ++stalled;
      continue;
    }
    ASSERT_TRUE(actual) << actual.error().message;
    for (std::size_t a = 0; a < expected.size(); ++a)
      expect_close(actual->finish[a].in_base(), expected[a], a);
    if (HasFailure()) return;
  }
  EXPECT_LT(stalled, 100);
}

// The sharing problem alone: activities come and go, several at a time, and after each change all
// rates are the max-min ones, however little of the whole was solved again.
TEST(SharingProperties, StaysMaxMinUnderChurn) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Workload w;
    const RandomOptions options{.resources = 4 + random.below(30),
                                .shapes = 40,
                                .longest_path = 3,
                                .plain = random.one_in(3)};
    add_random_shapes(w, random, options);
    const internal::Shapes shapes(w);
    internal::MaxMinSharing sharing(w, shapes);
    std::map<std::int32_t, std::int32_t> running;  // slot -> shape
    for (int change = 0; change < 60; ++change) {
      for (int i = random.below(4); i > 0 && running.size() > 5; --i) {
        const auto victim =
            std::next(running.begin(), random.below(static_cast<int>(running.size())));
        sharing.stop(victim->first);
        running.erase(victim);
      }
      for (int i = 1 + random.below(4); i > 0; --i) {
        const std::int32_t shape = random.below(options.shapes);
        running.emplace(sharing.start(shape), shape);
      }
      if (!sharing.settled()) sharing.settle();
      std::vector<ShapeId> who;
      std::vector<double> rates;
      for (const auto& [slot, shape] : running) {
        who.push_back(ShapeId(shape));
        rates.push_back(sharing.rate(slot) / shapes[shape].scale);
      }
      ASSERT_EQ(oracle::not_max_min(w, who, rates), "") << "after change " << change;
      const auto expected = oracle::max_min_rates(w, who);
      for (std::size_t i = 0; i < rates.size(); ++i)
        ASSERT_NEAR(rates[i], expected[i], kClose * std::max(1.0, expected[i]))
            << "after change " << change;
    }
  }
}

// An activity that counts its progress in a unit s times larger: s times the weights, 1/s of the
// work and of the cap.
TEST(FluidProperties, DoNotDependOnTheUnitOfProgress) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Workload w = random_workload(seed, {.occupations = seed % 2 == 0});
    Random random(seed);
    Workload scaled;
    std::vector<double> unit;
    for (std::size_t r = 0; r < w.resource_count(); ++r)
      scaled.add_resource(w.capacity(ResourceId(static_cast<std::int64_t>(r))));
    for (Shape shape : w.shapes()) {
      unit.push_back(random.between(0.001, 1000));
      for (Usage& usage : shape.usages) usage.weight *= unit.back();
      shape.rate_cap /= unit.back();
      scaled.add_shape(std::move(shape));
    }
    for (Activity activity : w.activities()) {
      activity.work /= unit[activity.shape.index()];
      scaled.add_activity(activity);
    }
    for (const auto& [from, to] : w.edges()) scaled.add_edge(from, to);
    const auto one = run_fluid(w);
    const auto other = run_fluid(scaled);
    ASSERT_EQ(one.has_value(), other.has_value());
    if (!one) continue;
    for (std::size_t a = 0; a < w.activity_count(); ++a)
      expect_close(other->finish[a].in_base(), one->finish[a].in_base(), a);
  }
}

// Folding: k equal activities on the same resources are one with multiplicity k.
TEST(FluidProperties, EqualActivitiesFoldIntoOneWithMultiplicity) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Workload plain = random_workload(seed, {.activities = 12, .occupations = false});
    Random random(seed);
    Workload many;
    Workload folded;
    for (std::size_t r = 0; r < plain.resource_count(); ++r)
      for (Workload* w : {&many, &folded})
        w->add_resource(plain.capacity(ResourceId(static_cast<std::int64_t>(r))));
    std::vector<int> copies;
    for (Shape shape : plain.shapes()) {
      many.add_shape(shape);
      copies.push_back(1 + random.below(5));
      for (Usage& usage : shape.usages) usage.multiplicity *= copies.back();
      folded.add_shape(std::move(shape));
    }
    // Independent activities; each of the copies starts as its class does.
    std::vector<std::size_t> class_of;
    for (std::size_t a = 0; a < plain.activity_count(); ++a) {
      Activity activity = plain.activities()[a];
      activity.release_from = {};
      folded.add_activity(activity);
      for (int c = 0; c < copies[activity.shape.index()]; ++c) {
        many.add_activity(activity);
        class_of.push_back(a);
      }
    }
    const auto all = run_fluid(many);
    const auto classes = run_fluid(folded);
    ASSERT_TRUE(all && classes);
    for (std::size_t a = 0; a < class_of.size(); ++a)
      expect_close(classes->finish[class_of[a]].in_base(), all->finish[a].in_base(), a);
  }
}

TEST(FluidProperties, SameInputSameBits) {
  const Workload w = random_workload(7, {.activities = 300, .occupations = false});
  const auto one = run_fluid(w);
  const auto other = run_fluid(w);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->start, other->start);
  EXPECT_EQ(one->finish, other->finish);
}

}  // namespace
}  // namespace foreshard::engine
