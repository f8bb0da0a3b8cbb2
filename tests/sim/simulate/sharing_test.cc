// What groups that do the same at once add to each other's time, against the fluid engine.

#include "base/quantity.h"
#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "sim/study/run.h"

namespace foreshard::sim::sharing_test {

using program::CollectiveKind;

study::LoadedStudy study_of(const std::string& cluster) {
  return value_of(study::load_study({.cluster = cluster,
                                     .model = "gpt-1.7b",
                                     .strategy = "{global_batch: 64}",
                                     .sizes_matter = false},
                                    shipped_options()));
}

std::string nodes(int adapters) {
  return "{name: nodes, nodes: 2, node: {device: A100-SXM-80GB, gpus: 4, nvlink: {bandwidth: 300 "
         "GB/s}, nics: {count: " +
         std::to_string(adapters) + ", bandwidth: 200 Gbit/s}}, fabric: {kind: single-switch}}";
}

// Of ranks a + near b, groups along axis 0 (of the same b) or 1 (of the same a).
std::vector<std::vector<DeviceId>> along(Axis axis, std::int64_t near, std::int64_t far) {
  std::vector<std::vector<DeviceId>> groups(static_cast<std::size_t>(axis == 0 ? far : near));
  for (std::int64_t a = 0; a < near; ++a)
    for (std::int64_t b = 0; b < far; ++b)
      groups[static_cast<std::size_t>(axis == 0 ? b : a)].emplace_back(a + near * b);
  return groups;
}

Seconds simulated(const study::LoadedStudy& study, const ClusterView& cluster, Axis axis,
                  std::int64_t near, std::int64_t far, CollectiveKind kind, Bytes bytes) {
  program::Program program =
      every_rank(near * far, {{.name = "c",
                               .body = program::Communication{.kind = kind,
                                                              .group = program::AxisGroup{{axis}},
                                                              .bytes = bytes},
                               .stream = kFirst}});
  program.mesh = {{"near", near}, {"far", far}};
  return value_of(simulate(cluster, program, study.communication, {})).step;
}

// By hand: of 2 GB each, 1 GB takes four messages over one adapter twice as long as two; one alone
// is a little slower than the adapter.
TEST(Sharing, OfOneAdapterIsByHand) {
  const auto study = study_of(nodes(1));
  const auto cluster = value_of(study::cluster_of(study));
  const SimulatedCost cost(cluster, study.communication);
  const auto groups = along(1, 4, 2);
  const auto of = [&](Bytes bytes, const std::vector<std::vector<DeviceId>>& crowd) {
    Seconds alone;
    for (const auto& group : crowd)
      alone = std::max(alone, *cost.communication_time(CollectiveKind::kSend, bytes, group));
    return alone + *cost.sharing_time(CollectiveKind::kSend, bytes, cost.crowd_kind(crowd));
  };
  const Seconds of_four = of(2_GB, groups) - of(1_GB, groups);
  const Seconds of_two = of(2_GB, {groups[0], groups[1]}) - of(1_GB, {groups[0], groups[1]});
  EXPECT_NEAR(of_four / of_two, 2, 1e-6);
  EXPECT_NEAR(of_four / (4_GB / 25_GB_s), 1, 0.1);  // an adapter's own efficiency
}

// One group alone, and groups whose links are their own, share nothing.
TEST(Sharing, IsNothingWhereNoLinkIsShared) {
  const auto study = study_of(nodes(4));
  const auto cluster = value_of(study::cluster_of(study));
  const SimulatedCost cost(cluster, study.communication);
  for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kSend}) {
    EXPECT_EQ(*cost.sharing_time(kind, 1_GB, cost.crowd_kind({along(1, 4, 2)[0]})), 0_s);
    const auto inside = cost.crowd_kind({{DeviceId{0}, DeviceId{1}}, {DeviceId{2}, DeviceId{3}}});
    EXPECT_EQ(*cost.sharing_time(kind, 1_GB, inside), 0_s);
  }
}

struct Case {
  const char* name;
  std::string cluster;
  std::int64_t near;
  std::int64_t far;
  Axis axis = 1;
};
class SharingOf : public testing::TestWithParam<Case> {};

TEST_P(SharingOf, IsThatOfTheEngine) {
  const Case& of = GetParam();
  const auto study = study_of(of.cluster);
  const auto cluster = value_of(study::cluster_of(study));
  const SimulatedCost cost(cluster, study.communication);
  const auto groups = along(of.axis, of.near, of.far);
  const std::int32_t crowd = cost.crowd_kind(groups);
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    for (const Bytes bytes : {1_KiB, 1_MiB, 256_MiB}) {
      Seconds alone;
      for (const auto& group : groups)
        alone = std::max(alone, *cost.communication_time(kind, bytes, group));
      const auto shared = value_of(cost.sharing_time(kind, bytes, crowd));
      const Seconds step = simulated(study, cluster, of.axis, of.near, of.far, kind, bytes);
      // Groups that need longer to start begin to send later: short operations share less.
      EXPECT_NEAR((alone + shared) / step, 1, bytes < 256_MiB ? 0.06 : 0.01)
          << program::name_of(kind) << format(bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, SharingOf,
                         testing::Values(Case{"one_adapter", nodes(1), 4, 2},
                                         Case{"two_adapters", nodes(2), 4, 2},
                                         Case{"inside", nodes(2), 1, 4},
                                         Case{"rails", "two-dgx-a100", 8, 2},
                                         Case{"pairs_on_rails", "two-dgx-a100", 4, 4},
                                         Case{"uplinks", "mixed-a100-h100", 128, 2},
                                         Case{"larger_over_uplinks", "mixed-a100-h100", 32, 8},
                                         Case{"threes", "mixed-a100-h100", 3, 64, 0},
                                         Case{"twelves", "mixed-a100-h100", 12, 16, 0}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace foreshard::sim::sharing_test
