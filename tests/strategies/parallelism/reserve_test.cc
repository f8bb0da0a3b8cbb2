// A context, and a communicator for each kind of parallelism that has several ranks.
#include "tests/test.h"

#include "strategies/parallelism/strategy.h"

namespace foreshard {
namespace {

TEST(Reserve, IsAContextAndACommunicatorForEachAxisThatIsSplit) {
  Strategy strategy;
  strategy.framework.value.context = 500_MiB;
  strategy.framework.value.communicator = 288_MiB;
  EXPECT_EQ(reserve_of(strategy), 500_MiB);
  strategy.data_parallel = 8;
  EXPECT_EQ(reserve_of(strategy), 788_MiB);
  strategy.tensor_parallel = 2;
  strategy.pipeline_parallel = 4;
  EXPECT_EQ(reserve_of(strategy), 1364_MiB);
}

}  // namespace
}  // namespace foreshard
