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
  const auto cluster = rails(2048, 8);
  EXPECT_LT(seconds_for(CollectiveKind::kAllReduce, cluster), 20);
}

TEST(LargeGroups, AllToAllOf1024) {
  const auto cluster = rails(128, 8);
  EXPECT_LT(seconds_for(CollectiveKind::kAllToAll, cluster), 20);
}

}  // namespace
}  // namespace foreshard::comm
