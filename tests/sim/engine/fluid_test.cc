#include <gtest/gtest.h>

#include "sim/engine/workload.h"

namespace foreshard::engine {
namespace {

TEST(Fluid, OneFlowTakesLatencyPlusWorkOverCapacity) {
  Workload w;
  const auto link = w.add_resource(450e9, "link");
  const auto shape = w.add_shape({.usages = {{.resource = link}}, .occupations = {}});
  const auto flow = w.add_activity(
      {.shape = shape, .latency = 1_us, .work = 1e9, .release_from = {}, .release_lag = {}});
  const auto t = run_fluid(w);
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(t->finish[flow.index()], 1_us + Seconds::from_base(1e9 / 450e9));
}

}  // namespace
}  // namespace foreshard::engine
