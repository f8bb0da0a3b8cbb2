// Large groups stay cheap: rings of 16,384 members, all-to-all of 1,024. The bounds are 10 times
// what a slow core needs.

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm {
namespace {

double seconds_for(CollectiveKind kind, const ClusterView& cluster) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(flat_forms(kind, everyone(cluster), ideal_parameters()));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  testing::Test::RecordProperty("seconds", std::to_string(seconds));
  return seconds;
}

TEST(LargeGroups, RingAndTreeOf16384) {
  EXPECT_LT(seconds_for(CollectiveKind::kAllReduce, rails(2048, 8)), 20);
}

TEST(LargeGroups, AllToAllOf1024) {
  EXPECT_LT(seconds_for(CollectiveKind::kAllToAll, rails(128, 8)), 20);
}

}  // namespace
}  // namespace foreshard::comm
