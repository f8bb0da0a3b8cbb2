#include "sim/simulate/cost.h"

#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::sim {
namespace {

class GroupKinds : public testing::TestWithParam<const char*> {};

// Random groups of a few devices each. Those of one kind take the same time, asked of a cost that
// knows no other group; kinds are few where the cluster is built evenly.
TEST_P(GroupKinds, TakeTheSameTime) {
  const auto study = value_of(study::load_study({.cluster = GetParam(),
                                                 .model = "gpt-1.7b",
                                                 .strategy = "{global_batch: 64}",
                                                 .sizes_matter = false},
                                                shipped_options()));
  const auto cluster = value_of(study::cluster_of(study));
  std::mt19937 random(7);  // NOLINT: repeatable on purpose
  const SimulatedCost kinds(cluster, study.communication);
  std::map<std::int32_t, std::vector<std::vector<DeviceId>>> groups;
  for (int i = 0; i < 60; ++i) {
    const auto size = 2 + static_cast<std::int64_t>(random() % 3);
    const auto stride = std::int64_t{1} << (random() % 4);
    const auto room = static_cast<std::int64_t>(cluster.devices().size()) - (size - 1) * stride;
    if (room <= 0) continue;
    const auto first = static_cast<std::int64_t>(random()) % room;
    std::vector<DeviceId> group;
    for (std::int64_t member = 0; member < size; ++member)
      group.emplace_back(first + member * stride);
    groups[kinds.group_kind(group)].push_back(std::move(group));
  }
  for (const auto& [kind, alike] : groups) {
    for (const Bytes bytes : {1_KiB, 1_MiB, 256_MiB}) {
      std::vector<Seconds> times;
      for (const auto& group : alike) {
        const SimulatedCost alone(cluster, study.communication);
        const auto time =
            value_of(alone.communication_time(program::CollectiveKind::kAllReduce, bytes, group));
        times.push_back(time);
      }
      EXPECT_NEAR(*std::ranges::max_element(times) / *std::ranges::min_element(times), 1, 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, GroupKinds,
                         testing::Values("two-dgx-a100", "mixed-a100-h100", "dual-plane-b300-512",
                                         "h100-256-broken", "gb200-8-racks"));

}  // namespace
}  // namespace foreshard::sim
