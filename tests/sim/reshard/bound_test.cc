// What must cross a border, by hand: fp32, devices with one link of 100 GB/s each way on one hub.

#include "tests/sim/reshard/cases.h"
#include "tests/sim/reshard/catalogue.h"
#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "strategies/reshard/choose.h"

namespace foreshard::reshard {
namespace {

const TensorSpec kTensor{.dtype = DType::kFp32, .shape = {4000, 4000}};  // 64 MB

// Each of 4 ranks needs 16 MB, of which it holds a quarter.
TEST(LowerBound, OfATransposeIsWhatEnters) {
  const auto cluster = sim::star(4);
  const auto bound = lower_bound(kTensor, on({{"x", 4}}, {{0}, {}}), on({{"x", 4}}, {{}, {0}}),
                                 {.cluster = &cluster});
  EXPECT_NEAR(bound.time / 1_us, 120, 1e-9);
}

// One rank has it all and three others want it: 64 MB must leave it once, not three times.
TEST(LowerBound, CountsWhatLeavesOnce) {
  const auto cluster = sim::star(4);
  const auto bound = lower_bound(kTensor, on({{"x", 1}}, {{}, {}}), on({{"x", 3}}, {{}, {}}, 1),
                                 {.cluster = &cluster});
  EXPECT_NEAR(bound.time / 1_us, 640, 1e-9);
}

// Of summands none is a value: all 16 MB must enter each rank, and every rank's summand of what the
// three others need must leave it: 48 MB, 480 us.
TEST(LowerBound, OfSummandsIsAllThatIsNeeded) {
  const auto cluster = sim::star(4);
  Layout from = on({{"x", 4}}, {{}, {}});
  from.attribute.partial = {{0}};
  const auto bound = lower_bound(kTensor, from, on({{"x", 4}}, {{0}, {}}), {.cluster = &cluster});
  EXPECT_NEAR(bound.time / 1_us, 480, 1e-9);
  EXPECT_THAT(bound.meaning, HasSubstr("must leave device 0"));
}

TEST(LowerBound, IsNothingWhereNothingMustMove) {
  const auto cluster = sim::star(4);
  const Layout whole = on({{"x", 4}}, {{}, {}});
  const Layout rows = on({{"x", 4}}, {{0}, {}});
  EXPECT_EQ(lower_bound(kTensor, whole, rows, {.cluster = &cluster}).time, 0_s);
  EXPECT_EQ(lower_bound(kTensor, rows, rows, {.cluster = &cluster}).time, 0_s);
  Layout partial = whole;
  partial.attribute.partial = {{0}};
  EXPECT_EQ(lower_bound(kTensor, rows, partial, {.cluster = &cluster}).time, 0_s);
}

// From all of node 0 to all of node 1: everything must cross 8 adapters, whatever the devices do.
TEST(LowerBound, SeesTheNodesAdapters) {
  const Shipped shipped = reshard::shipped("two-dgx-h100");
  const auto bound = lower_bound(kTensor, on({{"x", 8}}, {{0}, {}}), on({{"x", 8}}, {{0}, {}}, 8),
                                 {.cluster = &*shipped.cluster});
  EXPECT_THAT(bound.meaning, HasSubstr("node"));
  EXPECT_NEAR(bound.time / 1_us, 64e6 / (8 * 50e9 * 0.978) * 1e6, 1e-6);
}

}  // namespace
}  // namespace foreshard::reshard
