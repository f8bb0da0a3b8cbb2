// Derivatives of runs: by hand, then against finite differences on random workloads.
#include "sim/engine/slopes.h"

#include "tests/sim/engine/random_workload.h"
#include "tests/test.h"

namespace foreshard::engine::slopes_test {

// Parameters: one for each resource's capacity, each shape's cap, each activity's latency and work
// (all by logarithms), and lags as rates, in this order.
Slopes by_everything(const Workload& w) {
  Slopes slopes;
  const std::size_t resources = w.resource_count();
  const std::size_t shapes = w.shapes().size();
  const std::size_t activities = w.activity_count();
  slopes.parameters = resources + shapes + 2 * activities + 1;
  const auto unit = [&](std::size_t p, double value) {
    std::vector<double> row(slopes.parameters, 0.0);
    row[p] = value;
    return slopes.add(row);
  };
  std::size_t p = 0;
  for (std::size_t r = 0; r < resources; ++r)
    slopes.capacity.push_back(unit(p++, w.capacity(ResourceId(static_cast<std::int64_t>(r)))));
  for (const Shape& shape : w.shapes()) {
    const bool capped = std::isfinite(shape.rate_cap);
    slopes.rate_cap.push_back(capped ? unit(p, shape.rate_cap) : Slopes::kConstant);
    ++p;
  }
  for (const Activity& activity : w.activities())
    slopes.latency.push_back(unit(p++, activity.latency.in_base()));
  for (const Activity& activity : w.activities()) slopes.work.push_back(unit(p++, activity.work));
  slopes.lag = static_cast<std::int32_t>(p);
  return slopes;
}

// The workload with the p-th of these `factor` times as large.
Workload changed(const Workload& w, std::size_t p, double factor) {
  Workload other;
  std::size_t q = 0;
  const auto times = [&](double value) { return q++ == p ? value * factor : value; };
  for (std::size_t r = 0; r < w.resource_count(); ++r)
    other.add_resource(times(w.capacity(ResourceId(static_cast<std::int64_t>(r)))));
  for (Shape shape : w.shapes()) {
    shape.rate_cap = times(shape.rate_cap);
    other.add_shape(std::move(shape));
  }
  std::vector<Activity> activities(w.activities().begin(), w.activities().end());
  for (Activity& activity : activities)
    activity.latency = Seconds::from_base(times(activity.latency.in_base()));
  for (Activity& activity : activities) activity.work = times(activity.work);
  for (Activity& activity : activities) {
    if (q == p) activity.release_lag = activity.release_lag / factor;
    other.add_activity(activity);
  }
  for (const auto& [from, to] : w.edges()) other.add_edge(from, to);
  return other;
}

double makespan(const Workload& w) {
  return value_of(run_fluid(w)).makespan.in_base();
}

std::vector<double> slopes_of(const Workload& w) {
  return slopes_of_makespan(w, *run_fluid(w), by_everything(w));
}

// 1 s of latency, then 6 units over a resource of 2 a second: 4 s. By the logarithm of the capacity
// the work's 3 s are lost, by that of the latency 1 s is won.
TEST(Slopes, OfOneActivity) {
  Workload w;
  const auto link = w.add_resource(2);
  const auto shape = w.add_shape(path_shape({link}));
  w.add_activity(task(shape, 6, 1_s));
  const auto slopes = slopes_of(w);  // capacity, cap, latency, work, lag
  EXPECT_NEAR(slopes[0], -3, 1e-12);
  EXPECT_NEAR(slopes[1], 0, 1e-12);
  EXPECT_NEAR(slopes[2], 1, 1e-12);
  EXPECT_NEAR(slopes[3], 3, 1e-12);
  EXPECT_NEAR(slopes[4], 0, 1e-12);
}

// Two flows over one link of 1 unit a second, of 2 and 3 units: they share it for 4 s, then the
// second has it for itself for 1 s. Its end is the sum of both works over the capacity: the first
// one's work counts as much as its own.
TEST(Slopes, OfTwoThatShare) {
  Workload w;
  const auto link = w.add_resource(1);
  const auto shape = w.add_shape(path_shape({link}));
  w.add_activity(task(shape, 2));
  w.add_activity(task(shape, 3));
  EXPECT_NEAR(makespan(w), 5, 1e-12);
  const auto slopes = slopes_of(w);  // capacity, cap, latencies, works, lag
  EXPECT_NEAR(slopes[0], -5, 1e-12);
  EXPECT_NEAR(slopes[4], 2, 1e-12);
  EXPECT_NEAR(slopes[5], 3, 1e-12);
}

// The second flow, capped at 0.2 a second beside a link of 1, leaves 0.8 to the first: 8 units take
// 10 s. A higher cap of the other takes from it: d(8 / (1 - c)) / d ln c = 8 x 0.2 / 0.64 = 2.5 s.
TEST(Slopes, OfOneThatTakesWhatIsLeft) {
  Workload w;
  const auto link = w.add_resource(1);
  const auto free = w.add_shape(path_shape({link}));
  Shape slow = path_shape({link});
  slow.rate_cap = 0.2;
  const auto capped = w.add_shape(slow);
  w.add_activity(task(free, 8));
  w.add_activity(task(capped, 1));  // until 5 s: then the first has 1 a second
  w.add_activity(task(capped, 1));
  w.add_edge(ActivityId(1), ActivityId(2));  // from 5 to 10 s
  EXPECT_NEAR(makespan(w), 10, 1e-12);
  const auto slopes = slopes_of(w);  // capacity, 2 caps, ...
  EXPECT_NEAR(slopes[2] + slopes[0], -10, 1e-9) << "all rates: the time falls alike";
}

// Two lags behind one another, of 1 and 2 s.
TEST(Slopes, OfLags) {
  Workload w;
  const auto nothing = w.add_shape({});
  Activity first = task(nothing, 0);
  first.release_lag = 1_s;
  const auto a = w.add_activity(first);
  Activity second = task(nothing, 0);
  second.release_from = a;
  second.release_lag = 2_s;
  w.add_activity(second);
  EXPECT_NEAR(slopes_of(w).back(), -3, 1e-12);
}

// Random workloads without ties: numbers are spread so that nothing happens at one instant by
// chance. Central differences of 1e-5, by each parameter.
TEST(Slopes, AreFiniteDifferences) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Workload w = random_workload(seed);
    const std::size_t all = by_everything(w).parameters;
    for (std::size_t p = 0; p + 1 < all; ++p) w = changed(w, p, random.between(0.9, 1.1));
    const auto times = value_of(run_fluid(w), std::to_string(seed));
    const auto slopes = slopes_of(w);
    double sum = 0;
    for (std::size_t p = 0; p < all; ++p) {
      constexpr double kStep = 1e-5;
      const double difference =
          (makespan(changed(w, p, 1 + kStep)) - makespan(changed(w, p, 1 - kStep))) / (2 * kStep);
      ASSERT_NEAR(slopes[p], difference, 1e-4 * times.makespan.in_base()) << seed << ", " << p;
      ++compared;
      const bool is_rate = p < w.resource_count() + w.shapes().size() || p + 1 == all;
      const bool is_latency =
          !is_rate && p < w.resource_count() + w.shapes().size() + w.activity_count();
      sum += is_rate ? slopes[p] : is_latency ? -slopes[p] : 0;
    }
    // Euler: all rates and latencies twice as fast take half of the time. What is held is a part
    // of its resource, which grows with it.
    bool holds = false;
    for (const Shape& shape : w.shapes()) holds |= !shape.occupations.empty();
    const double makespan_now = times.makespan.in_base();
    if (!holds) {
      EXPECT_NEAR(sum, -makespan_now, 1e-9 * makespan_now) << seed;
    }
  }
  EXPECT_GT(compared, 4000);
}

}  // namespace foreshard::engine::slopes_test
