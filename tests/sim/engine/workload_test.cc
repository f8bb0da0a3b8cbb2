#include "sim/engine/workload.h"

#include "tests/sim/engine/workloads.h"
#include "tests/test.h"

namespace foreshard::engine {
namespace {

TEST(Workload, KeepsWhatWasAdded) {
  Workload w;
  const auto link = w.add_resource(5, "link");
  const ShapeId shape = w.add_shape(path_shape({link}));
  const auto first = w.add_activity(task(shape, 3, 1_us));
  const auto second = w.add_activity(task(shape, 4));
  w.add_edge(first, second);
  EXPECT_EQ(w.capacity(link), 5);
  EXPECT_EQ(w.resource_name(link), "link");
  EXPECT_EQ(w.activity(first).latency, 1_us);
  EXPECT_EQ(w.edge_count(), 1u);
  EXPECT_EQ(w.edges()[0].to, second);
  EXPECT_TRUE(fault_in(w).ok());
}

using WorkloadDeathTest = testing::Test;

TEST(WorkloadDeathTest, RefusesWhatBreaksAnInvariant) {
  Workload w;
  const auto link = w.add_resource(5);
  const ShapeId shape = w.add_shape(path_shape({link}));
  const auto first = w.add_activity(task(shape, 1));
  const auto second = w.add_activity(task(shape, 1));
  EXPECT_DEATH(w.add_resource(0), "positive");
  EXPECT_DEATH(w.add_resource(INFINITY), "positive");
  EXPECT_DEATH(w.add_shape(path_shape({ResourceId(1)})), "exists");
  EXPECT_DEATH(w.add_shape(path_shape({link, link})), "distinct");
  EXPECT_DEATH(w.add_activity(task(ShapeId(1), 1)), "shape");
  EXPECT_DEATH(w.add_activity(task(shape, -1)), "work");
  EXPECT_DEATH(w.add_activity(task(shape, NAN)), "work");
  EXPECT_DEATH(w.add_activity(task(shape, 1, -1_us)), "latency");
  EXPECT_DEATH(w.add_edge(second, first), "from < to");
  EXPECT_DEATH(w.add_edge(first, first), "from < to");
  Activity later = task(shape, 1);
  later.release_from = ActivityId(2);
  EXPECT_DEATH(w.add_activity(later), "release_from");
}

TEST(Workload, FaultNamesWorkThatNothingBounds) {
  Workload w;
  const ShapeId nothing = w.add_shape({});
  w.add_activity(task(nothing, 0, 1_s));
  EXPECT_TRUE(fault_in(w).ok());
  w.add_activity(task(nothing, 1));
  EXPECT_THAT(error_of(fault_in(w)),
              Fails(Error::Code::kInvalidInput, HasSubstr("activity 1 has work but neither")));
  EXPECT_FALSE(run_fluid(w));
  EXPECT_FALSE(run_simgrid(w));
}

TEST(Workload, FaultNamesAnActivityThatStarvesItself) {
  Workload w;
  const auto device = w.add_resource(1, "device 3");
  Shape shape = path_shape({device});
  shape.occupations = {{.resource = device, .amount = 1}};
  w.add_activity(task(w.add_shape(shape), 1));
  EXPECT_THAT(
      error_of(fault_in(w)),
      Fails(Error::Code::kInfeasible, AllOf(HasSubstr("activity 0"), HasSubstr("'device 3'"))));
}

}  // namespace
}  // namespace foreshard::engine
