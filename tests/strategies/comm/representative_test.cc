// Large groups from a few members: as the whole group, where nodes' own links are the slowest.

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm {
namespace {

Participants strided(const ClusterView& cluster, std::int32_t count, std::int32_t stride) {
  Participants group{.cluster = &cluster, .devices = {}};
  for (std::int32_t i = 0; i < count; ++i) group.devices.emplace_back(i * stride);
  return group;
}

void expect_close(CollectiveKind kind, const Participants& group, double tolerance) {
  const auto exact = flat_forms(kind, group, ideal_parameters());
  const auto few = representative_forms(kind, group, ideal_parameters());
  ASSERT_TRUE(exact) << exact.error().message;
  ASSERT_TRUE(few) << few.error().message;
  ASSERT_EQ(exact->size(), few->size());
  for (std::size_t f = 0; f < exact->size(); ++f)
    for (const Bytes bytes : {1_MB, 1_GB}) {
      const double whole = (*exact)[f].idle_time(bytes, *group.cluster) / 1_us;
      EXPECT_NEAR((*few)[f].idle_time(bytes, *group.cluster) / 1_us, whole, tolerance * whole)
          << name_of(kind) << " " << (*exact)[f].algorithm << " of " << group.devices.size() << ", "
          << bytes / 1_MB << " MB";
    }
}

// 64 nodes of 4: whole nodes, and one device of each.
TEST(Representative, IsTheWholeGroupWhereNodesAreAlike) {
  const auto cluster = rails(64, 4);
  for (const auto& group : {strided(cluster, 256, 1), strided(cluster, 128, 2)}) {
    expect_close(CollectiveKind::kAllGather, group, 0.02);
    expect_close(CollectiveKind::kReduceScatter, group, 0.02);
    expect_close(CollectiveKind::kBroadcast, group, 0.02);
    expect_close(CollectiveKind::kAllReduce, group, 0.02);
  }
  // A spine of 100 GB/s that all 64 nodes share is slower than their adapters to an all-to-all:
  // that is what the few do not see. Within one rail nothing is shared.
  expect_close(CollectiveKind::kAllToAll, strided(cluster, 64, 4), 0.02);
}

TEST(Representative, SmallGroupsAreExact) {
  const auto cluster = rails(4, 4);
  const auto group = strided(cluster, 16, 1);
  for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll})
    expect_close(kind, group, 0);
}

}  // namespace
}  // namespace foreshard::comm
