// The slowest of several devices.
#include "topology/clock_spread.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/test.h"

namespace foreshard {
namespace {

DeviceType spread_type(double spread) {
  DeviceType type{};
  type.efficiency.value.clock_spread.value = spread;
  type.efficiency.value.gemm.sustained = 0.9;
  type.efficiency.value.gemm.sustained_of["fp8"] = 0.7;
  type.efficiency.value.attention.sustained = 0.8;
  type.efficiency.value.attention_of["flash-2"].sustained = 1;
  return type;
}

// Expected largest of n normal values: Harter, "Expected Values of Normal Order Statistics", 1961,
// table 1.
TEST(ClockSpread, ComesNearTheExactOrderStatistics) {
  EXPECT_EQ(deviations_of_slowest(1), 0);
  EXPECT_NEAR(deviations_of_slowest(2), 0.5642, 0.03);
  EXPECT_NEAR(deviations_of_slowest(5), 1.1630, 0.03);
  EXPECT_NEAR(deviations_of_slowest(10), 1.5388, 0.03);
  EXPECT_NEAR(deviations_of_slowest(100), 2.5076, 0.03);
  EXPECT_NEAR(deviations_of_slowest(400), 2.9682, 0.03);
}

RC_GTEST_PROP(ClockSpread, GrowsWithTheDevices, ()) {
  const auto devices = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
  RC_ASSERT(deviations_of_slowest(devices) < deviations_of_slowest(devices + 1));
}

TEST(ClockSpread, SlowsProductsAndAttentionAtTheirSustainedClocks) {
  const DeviceType slow = slowest_of(spread_type(0.02), 8);
  const double left = 1 - 0.02 * deviations_of_slowest(8);
  EXPECT_DOUBLE_EQ(slow.efficiency->gemm.sustained, 0.9 * left);
  EXPECT_DOUBLE_EQ(slow.efficiency->gemm.sustained_of.at("fp8"), 0.7 * left);
  EXPECT_DOUBLE_EQ(slow.efficiency->attention.sustained, 0.8 * left);
  EXPECT_DOUBLE_EQ(slow.efficiency->attention_of.at("flash-2").sustained, left);
}

// With twice the power limit of the device that its numbers are of, the clocks are capped at 1; the
// slowest is slower than that.
TEST(ClockSpread, SlowsWhatThePowerLimitLeaves) {
  DeviceType type = spread_type(0.02);
  type.tensor_peak["bf16"].value = 100_TFLOP_s;
  type.multiprocessors.value = 10;
  type.power = yaml::Sourced<Watts>{200_W, "test", yaml::Evidence::kUser};
  type.efficiency.value.gemm.measured_at =
      MeasuredAt{.power = 100_W, .peak = 100_TFLOP_s, .multiprocessors = 5};
  type.efficiency.value.gemm.operand_rate = 10_GB_s;
  type.efficiency.value.gemm.adding_rate = 4_GB_s;
  const double left = 1 - 0.02 * deviations_of_slowest(8);
  const DeviceType slow = slowest_of(type, 8);
  const GemmEfficiency& products = slow.efficiency->gemm;
  EXPECT_DOUBLE_EQ(products.sustained, left);
  EXPECT_DOUBLE_EQ(products.sustained_of.at("fp8"), 0.7 * std::cbrt(2.0) * left);
  EXPECT_DOUBLE_EQ(products.operand_rate / 5_GB_s, 1);
  EXPECT_DOUBLE_EQ(*products.adding_rate / 2_GB_s, 1);
  EXPECT_EQ(sustained_on(slow, 0.5), 0.5);
  EXPECT_EQ(operands_on(slow, 1_GB_s), 1_GB_s);
}

// Two nodes of four devices of one kind, three nodes of four of another: each kind has a slowest
// one of its own among those that are used, and those that are not change nothing.
TEST(ClockSpread, CountsTheUsedDevicesOfEachKind) {
  const auto group = [](std::string device, std::int64_t nodes) {
    NodeGroup of_kind;
    of_kind.nodes = nodes;
    of_kind.node.value.gpus = 4;
    of_kind.node.value.device.value = spread_type(0.02);
    of_kind.node.value.device.value.name = std::move(device);
    return of_kind;
  };
  ClusterConfig cluster;
  cluster.groups = {group("one", 2), group("other", 3)};
  const auto sustained = [&](std::vector<std::int32_t> used) {
    const ClusterConfig slow = at_clocks_of_slowest(cluster, used);
    std::vector<double> of_groups;
    for (const NodeGroup& one : slow.groups)
      of_groups.push_back(one.node->device->efficiency->gemm.sustained);
    return of_groups;
  };
  const auto left = [](std::int64_t devices) {
    return 0.9 * (1 - 0.02 * deviations_of_slowest(devices));
  };
  EXPECT_EQ(sustained({0, 1, 2, 9, 3}), (std::vector{left(4), 0.9}));
  EXPECT_EQ(sustained({8, 19, 10}), (std::vector{0.9, left(3)}));
  cluster.groups.push_back(group("one", 1000));
  cluster.groups.push_back(group("a third", 1000));
  EXPECT_EQ(sustained({0, 1, 2, 9, 3}), (std::vector{left(4), 0.9, left(4), 0.9}));
}

}  // namespace
}  // namespace foreshard
