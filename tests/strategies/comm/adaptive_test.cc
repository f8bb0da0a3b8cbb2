// Adaptive routing by the load of a whole operation: minimal while that is even, detours as far as
// it is not. A dragonfly of 9 groups of 8 NICs of 10 GB/s, one cable of 10 GB/s between any two
// groups.
#include "tests/test.h"
#include "tests/topology/small_clusters.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm {
namespace {

constexpr std::int64_t kGroups = 9;
constexpr std::int64_t kDevices = 8 * kGroups;

ClusterView dragonfly(Routing routing) {
  FabricConfig fabric{.kind = "dragonfly"};
  fabric.dragonfly = DragonflyConfig{.nics_per_router = 2,
                                     .routers_per_group = 4,
                                     .global_cables_per_router = 2,
                                     .groups = kGroups,
                                     .local_bandwidth = 1000_GB_s};
  auto config = small_cluster(kDevices, fabric, small_node(1));
  config.routing = routing;
  return must_build(config);
}

/// Every device once, each `step` places behind the one before as far as that goes: a ring of
/// `kDevices` in which all but a few send `step` places on.
Participants striding(const ClusterView& cluster, std::int64_t step) {
  Participants group{.cluster = &cluster, .devices = {}};
  for (std::int64_t first = 0; first < step; ++first)
    for (std::int64_t i = first; i < kDevices; i += step) group.devices.emplace_back(i);
  return group;
}

/// Bytes of the operation per second, links alone.
BytesPerSecond rate(const Pattern& pattern, const ClusterView& cluster) {
  FlatCollective flat;
  flat.loads = pattern.loads;
  return flat.idle_rate(cluster);
}

// An all-to-all of all 72: a NIC sends 71/72 of its bytes, a cable carries 64 pairs of 1/72 each:
// the NICs decide, so nothing takes a detour, and the time is that of minimal routing.
TEST(Adaptive, IsMinimalForAnAllToAll) {
  const auto adaptive = dragonfly(Routing::kAdaptive);
  const auto minimal = dragonfly(Routing::kSpread);
  const auto pattern = pairwise_all_to_all(striding(adaptive, 1));
  const auto expected = pairwise_all_to_all(striding(minimal, 1));
  ASSERT_TRUE(pattern && expected);
  EXPECT_EQ(pattern->detour, 0);
  EXPECT_NEAR(rate(*pattern, adaptive) / (10_GB_s * 72 / 71), 1, 1e-9);
  ASSERT_EQ(pattern->loads.size(), expected->loads.size());
  EXPECT_EQ(pattern->path.wire, expected->path.wire);
}

// Each group sends to the next alone: 8 flows on one cable, 10 / 8 GB/s, by minimal routing. Spread
// ideally each cable carries 8 x 2/9 of a flow, which is more than a NIC's 1: all is spread.
TEST(Adaptive, SpreadsAShiftByAWholeGroup) {
  const auto minimal = dragonfly(Routing::kSpread);
  const auto adaptive = dragonfly(Routing::kAdaptive);
  const auto slow = direct_shift(striding(minimal, 8));
  const auto pattern = direct_shift(striding(adaptive, 8));
  ASSERT_TRUE(slow && pattern);
  EXPECT_NEAR(rate(*slow, minimal) / 1_GB_s, 10.0 / 8, 1e-9);
  EXPECT_NEAR(pattern->detour, 1, 1e-9);
  EXPECT_NEAR(rate(*pattern, adaptive) / 1_GB_s, 10 / (8 * 2.0 / 9), 1e-9);
}

// Half of each group sends to the next one: 4 flows on the direct cable by minimal routing, 8/9 of
// a flow on each if spread. With the part x spread the direct cable carries 4 - x (4 - 8/9), which
// is a NIC's 1 at x = 27/28: no more takes a detour than keeps the NICs busy.
TEST(Adaptive, SpreadsNoMoreThanNicsCanUse) {
  const auto adaptive = dragonfly(Routing::kAdaptive);
  const auto pattern = value_of(direct_shift(striding(adaptive, 4)));
  EXPECT_NEAR(pattern.detour, 27.0 / 28, 1e-9);
  EXPECT_NEAR(rate(pattern, adaptive) / 1_GB_s, 10, 1e-9);
}

// Message by message, the same links carry the same.
TEST(Adaptive, LoadsTheSameLinksMessageByMessage) {
  const auto adaptive = dragonfly(Routing::kAdaptive);
  const auto group = striding(adaptive, 4);
  const auto pattern = direct_shift(group);
  const auto steps = direct_shift_steps(group);
  ASSERT_TRUE(pattern && steps);
  std::map<LinkId, double> loads;
  for (const Message& message : steps->messages) {
    const auto route = value_of(steps->route_of(message, group));
    for (const RoutedLink& part : route.taken(pattern->detour))
      loads[part.link] += part.share * message.part;
  }
  ASSERT_EQ(loads.size(), pattern->loads.size());
  for (const LinkLoad& load : pattern->loads)
    EXPECT_NEAR(loads.at(load.link), load.bytes_per_byte, 1e-9);
}

// Whatever the group: never slower than minimal routing.
TEST(Adaptive, IsNeverSlowerThanMinimal) {
  const auto minimal = dragonfly(Routing::kSpread);
  const auto adaptive = dragonfly(Routing::kAdaptive);
  for (const std::int64_t count : {2, 3, 9, 16, 24, 40, 64})
    for (const std::int64_t step : {1, 3, 4, 8, 24}) {
      const auto part = [&](const ClusterView& cluster) {
        Participants group = striding(cluster, step);
        group.devices.resize(static_cast<std::size_t>(count));
        return group;
      };
      for (const auto algorithm : {pairwise_all_to_all, direct_shift, ring_all_reduce}) {
        const auto direct = algorithm(part(minimal));
        const auto chosen = algorithm(part(adaptive));
        ASSERT_TRUE(direct && chosen);
        EXPECT_GE(rate(*chosen, adaptive), rate(*direct, minimal) * (1 - 1e-9))
            << count << " by " << step;
      }
    }
}

}  // namespace
}  // namespace foreshard::comm
