#include "sim/compute/measured.h"

#include <rapidcheck.h>

#include "tests/test.h"
#include "toy_device.h"

#include "sim/compute/kernel_text.h"

namespace foreshard::measured_test {

constexpr Gemm kProduct{.m = 512, .n = 512, .k = 2048};

DeviceType with(std::vector<MeasuredKernel> measured, double reach = 0) {
  DeviceType device = test::toy_device();
  device.efficiency.value.measured_on = {device.name};
  device.efficiency.value.measured = std::move(measured);
  device.efficiency.value.reach = reach;
  return device;
}
MeasuredKernel measured(const Kernel& kernel, Seconds time, bool burst = false) {
  return {.kernel = describe(kernel),
          .time = time,
          .low = {},
          .high = {},
          .burst = burst,
          .source = "test"};
}

TEST(Measured, TakesTheMeasuredTimeOfTheVeryKernel) {
  const DeviceType device = with({measured(kProduct, 7_ms)});
  const OperatorTime time = time_of(kProduct, device);
  EXPECT_NEAR(time.total() / 7_ms, 1, 1e-12);
  EXPECT_EQ(time.basis, Basis::kMeasured);
  EXPECT_THAT(explain(kProduct, time), HasSubstr("measured"));
  CachedOperatorTime cache(device);
  EXPECT_NEAR(cache(kProduct) / 7_ms, 1, 1e-12);
  Gemm other = kProduct;
  other.accumulate = true;
  EXPECT_EQ(time_of(other, device).total(), model_time_of(other, device).total());
}

TEST(Measured, OtherDevicesOfTheFileTakeNothingOfIt) {
  DeviceType device = with({measured(kProduct, 7_ms)});
  device.name = "a relative";
  EXPECT_EQ(time_of(kProduct, device).total(), model_time_of(kProduct, device).total());
}

// Measured at full clocks, asked for in continuous use: times the model's ratio of the two.
TEST(Measured, MindsTheClocks) {
  const DeviceType device = with({measured(kProduct, 7_ms, true)});
  const double clocks = model_time_of(kProduct, device, Duty::kSustained).total() /
                        model_time_of(kProduct, device, Duty::kBurst).total();
  EXPECT_NEAR(time_of(kProduct, device, Duty::kBurst).total() / 7_ms, 1, 1e-12);
  EXPECT_NEAR(time_of(kProduct, device).total() / 7_ms, clocks, 1e-12);
}

// One neighbour at distance 1 octave that takes twice the model's time, reach 1:
// w = exp(-1/2) = 0.6065; factor = exp(0.6065 ln 2 / (0.25 + 0.6065)) = exp(0.4908) = 1.6337.
TEST(Measured, NeighboursCorrectTheModel) {
  Gemm near = kProduct;
  near.k = 1024;
  const DeviceType plain = with({});
  const Seconds twice = 2.0 * model_time_of(near, plain).total();
  const DeviceType device = with({measured(near, twice)}, 1);
  const OperatorTime time = time_of(kProduct, device);
  EXPECT_EQ(time.basis, Basis::kNeighbours);
  EXPECT_NEAR(time.correction, 1.6337, 1e-4);
  EXPECT_NEAR(time.total() / model_time_of(kProduct, device).total(), 1.6337, 1e-4);
  // Of another kind, dtype or far away: the model's.
  Gemm half = kProduct;
  half.dtype = DType::kFp16;
  EXPECT_EQ(time_of(half, device).total(), model_time_of(half, device).total());
  Gemm far = kProduct;
  far.m = far.n = 1 << 20;
  EXPECT_NEAR(time_of(far, device).total() / model_time_of(far, device).total(), 1, 1e-9);
}

TEST(Measured, NamesWhatIsNoKernel) {
  EXPECT_EQ(fault_in(*with({measured(kProduct, 7_ms)}).efficiency), "");
  DeviceType device = with({measured(kProduct, 7_ms), measured(kProduct, 8_ms)});
  EXPECT_THAT(fault_in(*device.efficiency), HasSubstr("measured twice"));
  device.efficiency.value.measured[1].kernel = "gem 1x2x3 fp32";
  EXPECT_THAT(fault_in(*device.efficiency), HasSubstr("'gem 1x2x3 fp32' is not a kernel"));
  device.efficiency.value.attention_of["cudnn-fp8"] = device.efficiency->attention;
  EXPECT_THAT(fault_in(*device.efficiency), Not(HasSubstr("cudnn")));
  device.efficiency.value.attention_of["flash-9"] = device.efficiency->attention;
  EXPECT_THAT(fault_in(*device.efficiency),
              HasSubstr("'flash-9' under attention_of is no implementation of fused attention"));
}

TEST(KernelText, ReadsWhatDescribeWrites) {
  rc::check([] {
    const auto extent = [] { return *rc::gen::inRange<std::int64_t>(1, 100000); };
    const auto dtype = static_cast<DType>(*rc::gen::inRange(0, 8));
    const bool flag = *rc::gen::arbitrary<bool>();
    const std::vector<Kernel> kernels{
        Gemm{.batch = *rc::gen::inRange<std::int64_t>(1, 4),
             .m = extent(),
             .n = extent(),
             .k = extent(),
             .dtype = dtype,
             .accumulate = flag,
             .matrix_units = *rc::gen::arbitrary<bool>(),
             .scales = static_cast<Scales>(*rc::gen::inRange(0, 3)),
             .apart = *rc::gen::arbitrary<bool>()},
        Attention{
            .batch = extent(),
            .query_heads = extent(),
            .kv_heads = extent(),
            .query_length = extent(),
            .key_length = extent(),
            .head_dim = extent(),
            .causal = flag,
            .direction = *rc::gen::arbitrary<bool>() ? Direction::kForward : Direction::kBackward,
            .dtype = dtype},
        Pass{.kind = static_cast<PassKind>(
                 *rc::gen::inRange(0, static_cast<int>(PassKind::kOptimizer) + 1)),
             .rows = extent(),
             .columns = extent(),
             .dtype = dtype}};
    for (const Kernel& kernel : kernels) {
      const auto read = kernel_from(describe(kernel));
      RC_ASSERT(read.has_value());
      RC_ASSERT(*read == kernel);
    }
  });
}

TEST(KernelText, RefusesWhatDescribeNeverWrites) {
  for (const char* text :
       {"", "gemm", "gemm 1x2 fp32", "gemm 1x2x3", "gemm 1x2x3 fp33", "gemm 1x2x3 batch 1 fp32",
        "gemm 1x2x3 batch fp32", "gemm 1x2x3  fp32", "gemm 01x2x3 fp32", "gemm 1x2x3 fp32 x",
        "attention_fwd 1x2/2 seq 3x4 dim 5", "nothing 3x4 fp32", "cast 3x4", "cast 3x4 fp32 fp32",
        "cast 99999999999999999999x4 fp32", "cast -3x4 fp32"})
    EXPECT_FALSE(kernel_from(text)) << text;
}

}  // namespace foreshard::measured_test
