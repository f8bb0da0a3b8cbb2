
#include "tests/test.h"

#include "sim/search/internal/passes.h"
#include "topology/cluster_builder.h"

namespace foreshard::search::times_test {

using program::Block;
using program::Task;

// A product takes as many seconds as it has rows; communication among d devices that are far apart
// (the last index is far) takes bytes seconds, twice that from device 4 on.
class PlainCost final : public CostModel {
 public:
  Seconds kernel_time(const Kernel& kernel, DeviceTypeId) const override {
    return static_cast<double>(std::get<Gemm>(kernel).m) * 1_s;
  }
  Result<Seconds> communication_time(program::CollectiveKind, Bytes bytes,
                                     const std::vector<DeviceId>& devices) const override {
    return (devices.front().value() >= 4 ? 2.0 : 1.0) * bytes.in_base() * 1_s;
  }
  std::int32_t group_kind(const std::vector<DeviceId>& devices) const override {
    return devices.front().value() >= 4 ? 1 : 0;
  }
  // Each group beside others adds a tenth of what one of its size takes alone.
  std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const override {
    return static_cast<std::int32_t>(groups.size()) - 1;
  }
  Result<Seconds> sharing_time(program::CollectiveKind, Bytes bytes,
                               std::int32_t crowd) const override {
    return 0.1 * shares_ * crowd * bytes.in_base() * 1_s;
  }
  double shares_ = 0;
  Result<HeldMultiprocessors> held(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override {
    return HeldMultiprocessors{.share = held_, .time = *communication_time(kind, bytes, devices)};
  }
  double held_ = 0;
  Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override {
    return communication_time(kind, bytes, devices);
  }
  // Not asked.
  Result<Seconds> exchange_time(const std::vector<DeviceTransfer>&) const override { return 0_s; }
  Result<Seconds> program_time(const program::Program&) const override { return 0_s; }
  Result<std::vector<LinkBytes>> link_bytes(const program::Program&) const override {
    return std::vector<LinkBytes>{};
  }
};

ClusterView eight_devices() {
  ClusterView::Builder builder("eight");
  DeviceType type;
  type.name = "plain";
  const auto id = builder.add_device_type(type);
  const auto node = builder.add_node();
  for (int i = 0; i < 8; ++i) builder.add_device(id, "gpu" + std::to_string(i), node);
  return std::move(builder).build();
}

Task kernel(std::int64_t seconds, std::vector<std::int32_t> after = {}) {
  return {.name = "k",
          .body = Kernel{Gemm{.m = seconds, .n = 1, .k = 1}},
          .stream = lower::stream(lower::kComputeStream),
          .after = std::move(after)};
}
Task communication(double seconds, std::vector<std::int32_t> after) {
  return {.name = "c",
          .body = program::Communication{.group = program::AxisGroup{.axes = {0}},
                                         .bytes = Bytes::from_base(seconds)},
          .stream = lower::stream(lower::kTensorStream),
          .after = std::move(after)};
}

class PassTimeTest : public testing::Test {
 protected:
  PassTime time_of(std::vector<Task> tasks) {
    const auto time =
        value_of(pass_time(Block{.name = "b", .tasks = std::move(tasks)},
                           {{"tensor", tensor_}, {"data", 8 / tensor_}}, {0}, times_));
    return time;
  }
  std::int64_t tensor_ = 4;
  PlainCost cost_;
  ClusterView cluster_ = eight_devices();
  RankDevices places_{cluster_, {0, 1, 2, 3, 4, 5, 6, 7}};
  CostCache times_{cost_, places_};
};

// Group 0..3 takes 2 s, group 4..7 takes 4 s: the slowest decides the time, the fastest the bound.
TEST_F(PassTimeTest, CommunicationBetweenKernelsIsExposed) {
  const PassTime time = time_of({kernel(1), communication(2, {0}), kernel(1, {1})});
  EXPECT_DOUBLE_EQ(time.first / 1_s, 1 + 4 + 1);
  EXPECT_DOUBLE_EQ(time.next / 1_s, 6);
  EXPECT_DOUBLE_EQ(time.least / 1_s, 1 + 2 + 1);
  EXPECT_EQ(time.launches, 3);
}

// What the other group of the stage adds, 0.1 x 2 s, counts for the time and not for the bound.
TEST_F(PassTimeTest, GroupsOfAStageShareLinks) {
  cost_.shares_ = 1;
  const PassTime time = time_of({kernel(1), communication(2, {0}), kernel(1, {1})});
  EXPECT_DOUBLE_EQ(time.first / 1_s, 1 + 4 + 0.2 + 1);
  EXPECT_DOUBLE_EQ(time.least / 1_s, 1 + 2 + 1);
}

// Of two stages, one has the slow devices: each takes its own time.
TEST_F(PassTimeTest, StagesThatDifferAreToldApart) {
  const std::vector<MeshAxis> mesh{{"tensor", 4}, {"pipeline", 2}};
  const RankGroups groups(mesh, {0});
  EXPECT_EQ(groups.stages(), (StridedAxis{4, 2}));
  EXPECT_NE(times_.group_kinds(groups, 8, {0}, 0), times_.group_kinds(groups, 8, {0}, 1));
  const Block block{.name = "b", .tasks = {kernel(1), communication(2, {0}), kernel(1, {1})}};
  EXPECT_DOUBLE_EQ(pass_time(block, mesh, {0}, times_, 0)->first / 1_s, 1 + 2 + 1);
  EXPECT_DOUBLE_EQ(pass_time(block, mesh, {0}, times_, 1)->first / 1_s, 1 + 4 + 1);
  EXPECT_DOUBLE_EQ(pass_time(block, mesh, {0}, times_)->first / 1_s, 1 + 4 + 1);
}

// 4 s of communication beside 3 s of kernels: 1 s of it shows.
TEST_F(PassTimeTest, CommunicationBesideKernelsCountsWhereItIsLonger) {
  const PassTime time = time_of({kernel(1), communication(2, {0}), kernel(3), kernel(1, {1})});
  EXPECT_DOUBLE_EQ(time.first / 1_s, 1 + 4 + 1);
  EXPECT_DOUBLE_EQ(time.least / 1_s, 1 + 3 + 1);
}

// Communication at the end runs beside the next pass: 1 + 2 (x 2) first, then each pass adds what
// the slower stream takes.
TEST_F(PassTimeTest, CommunicationAtTheEndHidesBesideTheNextPass) {
  const PassTime hidden = time_of({kernel(5), communication(1, {0})});
  EXPECT_DOUBLE_EQ(hidden.first / 1_s, 5 + 2);
  EXPECT_DOUBLE_EQ(hidden.next / 1_s, 5);
  EXPECT_DOUBLE_EQ(hidden.times(3) / 1_s, 17);
  EXPECT_DOUBLE_EQ(hidden.least / 1_s, 5);
}

// 4 s of communication hold a quarter of the second kernel's device: it takes 1 s longer. Where
// no kernel waits for them, nothing is told.
TEST_F(PassTimeTest, BoundKnowsWhatCommunicationHolds) {
  cost_.held_ = 0.25;
  const std::vector<Task> beside{kernel(1), communication(4, {0}), kernel(10), kernel(1, {1})};
  EXPECT_DOUBLE_EQ(time_of(beside).least / 1_s, 1 + 10 + 1 + 1);
  EXPECT_DOUBLE_EQ(time_of({kernel(1), communication(4, {0}), kernel(10)}).least / 1_s, 11);
}
TEST_F(PassTimeTest, BoundDoesNotKnowWhatMuchCommunicationHolds) {
  cost_.held_ = 0.75;
  const std::vector<Task> beside{kernel(1), communication(4, {0}), kernel(10), kernel(1, {1})};
  EXPECT_DOUBLE_EQ(time_of(beside).least / 1_s, 12);
}

// Group 4..7 comes first here: what it takes is at least what a step has, though 0..3 are faster.
TEST_F(PassTimeTest, LeastCommunicationIsThatOfTheFirstRank) {
  const std::vector<MeshAxis> mesh{{"tensor", 4}, {"data", 2}};
  const Block block{.name = "b", .tasks = {communication(3, {}), communication(1, {0})}};
  cost_.shares_ = 1;  // others do not count
  cost_.held_ = 0.25;
  RankDevices turned{cluster_, {4, 5, 6, 7, 0, 1, 2, 3}};
  CostCache times{cost_, turned};
  const auto slow = chain_least(block, lower::kTensorStream, mesh, times);
  const auto fast = chain_least(block, lower::kTensorStream, mesh, times_);
  ASSERT_TRUE(slow && fast);
  EXPECT_DOUBLE_EQ(slow->time / 1_s, 6 + 2);
  EXPECT_DOUBLE_EQ(slow->held.delay / 1_s, 0.25 * 8);
  EXPECT_DOUBLE_EQ(slow->held.share, 0.25);
  EXPECT_DOUBLE_EQ(fast->time / 1_s, 3 + 1);
}

// What waits for nothing may have been done before the first kernel.
TEST_F(PassTimeTest, BoundLeavesOutCommunicationThatCanComeBefore) {
  const PassTime time = time_of({communication(3, {}), kernel(1, {0})});
  EXPECT_DOUBLE_EQ(time.first / 1_s, 6 + 1);
  EXPECT_DOUBLE_EQ(time.least / 1_s, 1);
}

TEST(LineOf, StridesAreProductsOfTheAxesBefore) {
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 4}, {"pipeline", 3}};
  EXPECT_EQ(strided_axis(mesh, 0), (StridedAxis{1, 2}));
  EXPECT_EQ(strided_axis(mesh, 1), (StridedAxis{2, 4}));
  EXPECT_EQ(strided_axis(mesh, 2), (StridedAxis{8, 3}));
}

// Ranks t + 2 d + 8 p: groups along tensor and pipeline are those of one d.
TEST(RankGroups, AreNumberedByTheirFirstRank) {
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 4}, {"pipeline", 3}};
  const auto group = [&](const std::vector<Axis>& axes, std::int64_t index) {
    const RankGroups groups(mesh, axes);
    std::vector<std::int64_t> ranks;
    for (std::int64_t i = 0; i < groups.size(); ++i) ranks.push_back(groups.rank(index, i));
    return ranks;
  };
  using Ranks = std::vector<std::int64_t>;
  EXPECT_EQ(group({0, 2}, 0), (Ranks{0, 1, 8, 9, 16, 17}));
  EXPECT_EQ(group({0, 2}, 3), (Ranks{6, 7, 14, 15, 22, 23}));
  EXPECT_EQ(group({0, 1}, 1), (Ranks{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(group({1}, 1), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(group({1}, 2), (Ranks{8, 10, 12, 14}));
}

}  // namespace foreshard::search::times_test
