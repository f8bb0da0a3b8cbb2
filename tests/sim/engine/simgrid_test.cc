// The two engines, written independently of each other, must agree on every finish time.

#include "tests/sim/engine/random_workload.h"
#include "tests/test.h"

namespace foreshard::engine {
namespace {

constexpr double kAgreement = 1e-6;

void expect_agreement(const Workload& w, SimgridSolver solver = SimgridSolver::kLazy) {
  const auto fluid = run_fluid(w);
  const auto simgrid = run_simgrid(w, solver);
  ASSERT_TRUE(fluid) << fluid.error().message;
  ASSERT_TRUE(simgrid) << simgrid.error().message;
  for (std::size_t a = 0; a < w.activity_count(); ++a) {
    const double expected = simgrid->finish[a].in_base();
    ASSERT_NEAR(fluid->finish[a].in_base(), expected, kAgreement * expected) << "activity " << a;
    ASSERT_NEAR(fluid->start[a].in_base(), simgrid->start[a].in_base(), kAgreement * expected);
  }
}

TEST(Simgrid, OneFlowTakesLatencyPlusWorkOverBandwidth) {
  Workload w;
  const ShapeId flow = w.add_shape(path_shape({w.add_resource(450e9)}));
  w.add_activity(task(flow, 1e9, 1_us));
  EXPECT_DOUBLE_EQ(value_of(run_simgrid(w)).makespan.in_base(), 1e-6 + 1e9 / 450e9);
}

TEST(Simgrid, AgreesOnRandomGraphs) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed * 31);
    expect_agreement(random_workload(seed, {.resources = 4 + random.below(20),
                                            .shapes = 5 + random.below(40),
                                            .activities = 10 + random.below(120),
                                            .longest_path = 1 + random.below(4),
                                            .plain = true}));
    if (HasFatalFailure()) return;
  }
}

TEST(Simgrid, FullSolverAgreesOnTinyGraphs) {
  for (std::uint64_t seed = 1000; seed < 1030; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_agreement(random_workload(seed, {.activities = 25, .plain = true}),
                     SimgridSolver::kFull);
    if (HasFatalFailure()) return;
  }
}

TEST(Simgrid, AgreesOnRingsFatTreesAndAllToAlls) {
  expect_agreement(stepwise_ring(16, 1e9 / 16, 50e9, 5_us));
  expect_agreement(stepwise_ring(16, 1e9 / 16, 50e9, 5_us, 0.1));
  expect_agreement(random_fat_tree(8, 8, 60, 10, 3));
  expect_agreement(all_to_all(12, 2, 1e6));
  expect_agreement(compute_chains(20, 20, 4));
}

// A kernel counts seconds and a flow bytes: 15 orders of magnitude apart, but never on one link.
TEST(Simgrid, CountsEachSetOfSharedResourcesInItsOwnUnit) {
  Workload w;
  const ShapeId kernel = w.add_shape(path_shape({w.add_resource(1)}));
  const ShapeId flow = w.add_shape(path_shape({w.add_resource(50e9)}));
  const auto k = w.add_activity(task(kernel, 3.3e-6));
  const auto f = w.add_activity(task(flow, 12345678901.5));
  const auto t = value_of(run_simgrid(w));
  EXPECT_NEAR(t.finish[k.index()] / 3.3_us, 1, 1e-9);
  EXPECT_NEAR(t.finish[f.index()].in_base() / (12345678901.5 / 50e9), 1, 1e-9);
}

TEST(Simgrid, SaysWhatItCannotExpress) {
  const auto message = [](Shape shape) {
    Workload w;
    const auto r = w.add_resource(1, "r");
    w.add_resource(1, "s");
    w.add_activity(task(w.add_shape(path_shape({r})), 1));
    w.add_activity(task(w.add_shape(std::move(shape)), 1));
    const auto t = run_simgrid(w);
    if (t) return std::string("accepted");
    EXPECT_EQ(t.error().code, Error::Code::kUnsupported);
    return t.error().message;
  };
  const std::vector<Usage> unit{{.resource = ResourceId(0)}};
  Shape shape{.usages = unit, .occupations = {{.resource = ResourceId(1), .amount = 0.5}}};
  EXPECT_THAT(message(shape), HasSubstr("activity 1: it occupies a resource"));
  shape = {.usages = unit, .occupations = {}, .rate_cap = 2};
  EXPECT_THAT(message(shape), HasSubstr("activity 1: it has a rate cap"));
  shape = {.usages = unit, .occupations = {}, .connections = 2};
  EXPECT_THAT(message(shape), HasSubstr("connections"));
  shape = {.usages = {{.resource = ResourceId(0), .multiplicity = 2}}, .occupations = {}};
  EXPECT_THAT(message(shape), HasSubstr("weights or multiplicities"));
  shape = {.usages = {{.resource = ResourceId(0)}, {.resource = ResourceId(1), .weight = 0.5}},
           .occupations = {}};
  EXPECT_THAT(message(shape), HasSubstr("weights or multiplicities"));
}

// 1e-9 bytes beside 1e9 bytes on one link: no whole unit counts both.
TEST(Simgrid, RefusesWorksTooFarApart) {
  Workload w;
  const ShapeId flow = w.add_shape(path_shape({w.add_resource(1)}));
  w.add_activity(task(flow, 1e9));
  w.add_activity(task(flow, 1e-7 / 3));
  EXPECT_THAT(message_of(run_simgrid(w)), HasSubstr("activity 1: it is too small"));
}

}  // namespace
}  // namespace foreshard::engine
