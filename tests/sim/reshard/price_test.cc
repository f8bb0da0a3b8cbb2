// Closed forms of steps: groups that look alike, and those that do not; links by hand.
#include "strategies/reshard/price.h"

#include "tests/sim/reshard/catalogue.h"
#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "strategies/reshard/choose.h"
#include "strategies/reshard/program.h"

namespace foreshard::reshard::price_test {

std::vector<DeviceId> devices(const std::vector<std::int32_t>& list) {
  std::vector<DeviceId> ids(list.size());
  std::ranges::transform(list, ids.begin(), [](std::int32_t device) { return DeviceId{device}; });
  return ids;
}

// Two nodes of eight: pairs within either node are alike, and so are pairs across; the same two
// places of a node are another pattern than two others, whose rails differ.
TEST(DeviceSymmetry, TellsGroupsApartByWhereTheyAre) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const DeviceSymmetry around(*shipped.cluster);
  const auto pattern = [&](const std::vector<std::int32_t>& list) {
    return around.pattern_of(devices(list));
  };
  EXPECT_EQ(pattern({0, 1}), pattern({8, 9}));
  EXPECT_EQ(pattern({0, 8}), pattern({8, 0}));
  EXPECT_NE(pattern({0, 1}), pattern({0, 8}));
  EXPECT_NE(pattern({0, 1}), pattern({0, 1, 2}));
  EXPECT_TRUE(around.uniform(devices({0, 1, 8, 9})));
  EXPECT_FALSE(around.uniform(devices({0, 1, 8})));
}

// Pods of 32 nodes: neighbours under one leaf are not like nodes of different pods.
TEST(DeviceSymmetry, TellsPodsApart) {
  const Shipped shipped = reshard::shipped("dgx-h100-superpod");
  const DeviceSymmetry around(*shipped.cluster);
  const auto pair = [&](std::int32_t a, std::int32_t b) {
    return around.pattern_of(devices({8 * a, 8 * b}));
  };
  EXPECT_EQ(pair(0, 1), pair(33, 40));
  EXPECT_NE(pair(0, 1), pair(0, 32));
  EXPECT_EQ(pair(0, 32), pair(1, 100));
}

// fp32[1000000] from rank 0 to rank 1 of a star: 4 MB on the way out, 4 MB on the way in.
TEST(LinkBytes, AreWhatCrosses) {
  const auto cluster = sim::star(3);
  const auto parameters = sim::rings();
  const sim::SimulatedCost cost(cluster, parameters);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {1'000'000}};
  const Layout from{.mesh = mesh_from({{"x", 1}}), .attribute = {.dims = {{}}}};
  const Layout to{.mesh = mesh_from({{"x", 1}}, 1), .attribute = {.dims = {{}}}};
  const Plan plan{.name = "move",
                  .steps = {{.primitive = Primitive::kTransfer, .from = from, .to = to}}};
  const auto program = value_of(program_of(plan, tensor, {.cluster = &cluster}));
  const auto loads = value_of(cost.link_bytes(program));
  ASSERT_EQ(loads.size(), 2U);
  for (const LinkBytes& load : loads) EXPECT_NEAR(load.bytes / 1_MB, 4, 1e-9);
}

// 4,096 ranks: a transfer of 16 million messages has a price, and is left out of the simulation.
TEST(StepPrice, OfMillionsOfMessagesListsFew) {
  const Shipped shipped = reshard::shipped("h100-16384");
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  const Placement placement{.cluster = &*shipped.cluster};
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = {8192, 8192}};
  const auto mesh = mesh_from({{"a", 16}, {"b", 16}, {"c", 16}});
  const Layout rows{.mesh = mesh, .attribute = {.dims = {{0, 1, 2}, {}}}};
  const Layout columns{.mesh = mesh, .attribute = {.dims = {{}, {2, 1, 0}}}};
  const Step step{.primitive = Primitive::kTransfer, .from = rows, .to = columns};
  ASSERT_GT(count_moves(step, tensor), 16e6);
  StepPricer price(tensor, cost, placement);
  const auto time = value_of(price(step));
  // A rank receives 4,095 messages, 8 B each: start-up is all there is, at least 1 us each.
  EXPECT_GT(time, 4_ms);
}

// All-to-alls of 512 ranks, 8 side by side, are two million messages.
TEST(StepPrice, OfTooManyMessagesIsNotSimulated) {
  const Shipped shipped = reshard::shipped("h100-16384");
  const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = {8192, 4096, 4096}};
  const auto mesh = mesh_from({{"tp", 8}, {"cp", 16}, {"dp", 32}});
  const Layout from{.mesh = mesh, .attribute = {.dims = {{2, 1, 0}, {}, {}}}};
  const Layout to{.mesh = mesh, .attribute = {.dims = {{}, {2, 1}, {0}}}};
  const auto choice = value_of(choose(tensor, from, to, cost, {.cluster = &*shipped.cluster}));
  std::string remarks;
  for (const Alternative& one : choice.alternatives)
    remarks += one.plan.name + ": " + one.remark + "\n";
  EXPECT_THAT(remarks, HasSubstr("too many to simulate"));
}

}  // namespace foreshard::reshard::price_test
