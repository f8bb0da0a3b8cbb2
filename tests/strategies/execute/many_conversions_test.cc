// Ten thousand random conversions: all of their candidate plans give the target, bit by bit.
#include <cstdio>

#include "tests/strategies/execute/conversions.h"

namespace foreshard {
namespace {

TEST(ManyConversions, EveryCandidatePlanGivesTheTarget) {
  Executions done;
  for (unsigned seed = 1000; seed < 1010; ++seed) run_conversions(seed, 1000, done);
  EXPECT_GE(done.conversions, 10'000);
  EXPECT_EQ(done.refused, 0);
  std::printf("%d conversions, %d plans executed, %d refused\n", done.conversions, done.plans,
              done.refused);
}

}  // namespace
}  // namespace foreshard
