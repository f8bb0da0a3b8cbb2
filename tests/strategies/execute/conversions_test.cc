// A sample of the conversions; many_conversions_test.cc has ten thousand.
#include "tests/strategies/execute/conversions.h"

namespace foreshard {
namespace {

TEST(Conversions, EveryCandidatePlanGivesTheTarget) {
  Executions done;
  run_conversions(1, 800, done);
  EXPECT_EQ(done.refused, 0);
  RecordProperty("plans", done.plans);
}

}  // namespace
}  // namespace foreshard
