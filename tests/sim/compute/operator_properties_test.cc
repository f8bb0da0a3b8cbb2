// What must hold for every kernel on every device.
#include <rapidcheck.h>

#include "tests/sim/compute/toy_device.h"
#include "tests/test.h"

#include "sim/compute/operator_time.h"

namespace foreshard::operator_properties_test {

DeviceType catalogue_device(const std::string& name) {
  return value_of(yaml::Loader(shipped_options()).read_ref<DeviceType>(name));
}

const DeviceType& any_device() {
  static const std::vector<DeviceType> devices{
      catalogue_device("A100-SXM-80GB"), catalogue_device("H100-SXM"), catalogue_device("B200"),
      catalogue_device("V100-SXM-16GB"), test::toy_device()};
  return devices[*rc::gen::inRange<std::size_t>(0, devices.size())];
}

std::int64_t extent(std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(1, most + 1);
}

Gemm any_gemm() {
  return {.batch = extent(8),
          .m = extent(20000),
          .n = extent(20000),
          .k = extent(20000),
          .dtype = *rc::gen::element(DType::kBf16, DType::kFp16, DType::kFp8, DType::kFp32),
          .accumulate = *rc::gen::arbitrary<bool>()};
}
Attention any_attention() {
  const std::int64_t kv_heads = extent(16);
  return {.batch = extent(8),
          .query_heads = kv_heads * extent(8),
          .kv_heads = kv_heads,
          .query_length = extent(16384),
          .key_length = extent(16384),
          .head_dim = extent(256),
          .causal = *rc::gen::arbitrary<bool>(),
          .direction = *rc::gen::element(Direction::kForward, Direction::kBackward)};
}
Pass any_pass() {
  return {.kind = static_cast<PassKind>(
              *rc::gen::inRange(0, static_cast<int>(PassKind::kOptimizer) + 1)),
          .rows = extent(1 << 20),
          .columns = extent(1 << 14)};
}

Duty any_duty() {
  return *rc::gen::element(Duty::kSustained, Duty::kBurst);
}

TEST(OperatorTimeProperties, NeverFasterThanPeakOrThanBandwidth) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType& device = any_device();
    const Gemm gemm = any_gemm();
    const Kernel kernel = *rc::gen::inRange(0, 2) == 0 ? Kernel(gemm) : Kernel(any_pass());
    const FlopsPerSecond peak = std::holds_alternative<Gemm>(kernel)
                                    ? peak_of(device, std::string(name_of(gemm.dtype)))
                                    : *device.vector_peak;
    const Seconds time = time_of(kernel, device, any_duty()).total();
    RC_ASSERT(time * (1 + 1e-9) >= flops_of(kernel) / peak);
    RC_ASSERT(time * (1 + 1e-9) >= bytes_of(kernel) / *device.memory_bandwidth);
  }));
}

// A causal unit's diagonal tile is computed in full, so the bound holds with half of the products.
TEST(OperatorTimeProperties, AttentionIsNeverFasterThanPeak) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType& device = any_device();
    const Attention attention = any_attention();
    const OperatorTime time = time_of(attention, device, any_duty());
    RC_ASSERT(time.total() * (1 + 1e-9) >= flops_of(attention) / peak_of(device, "bf16"));
    RC_ASSERT(time.total() * (1 + 1e-9) >= bytes_of(attention) / *device.memory_bandwidth);
  }));
}

TEST(OperatorTimeProperties, SustainedIsNeverFasterThanBurst) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType& device = any_device();
    const Kernel kernel =
        *rc::gen::inRange(0, 2) == 0 ? Kernel(any_gemm()) : Kernel(any_attention());
    RC_ASSERT(time_of(kernel, device, Duty::kSustained).total() >=
              time_of(kernel, device, Duty::kBurst).total());
  }));
}

// With one tile shape and no splits, more of anything takes no less time.
TEST(OperatorTimeProperties, LargerProductsTakeLonger) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType device = test::toy_device();
    const Gemm small = any_gemm();
    Gemm large = small;
    large.batch += extent(4) - 1;
    large.m += extent(1000) - 1;
    large.n += extent(1000) - 1;
    large.k += extent(1000) - 1;
    RC_ASSERT(time_of(large, device).total() >= time_of(small, device).total());
  }));
}

// b products that fill the device take b times the work of one, whatever tile is chosen: within one
// wave, and never less.
TEST(OperatorTimeProperties, ABatchOfLargeProductsIsThatManyTimesTheWork) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType& device = any_device();
    Gemm gemm{.m = 4096 + extent(8192), .n = 4096 + extent(8192), .k = 1024 + extent(4096)};
    gemm.dtype = DType::kFp16;
    const OperatorTime one = time_of(gemm, device);
    gemm.batch = 1 + extent(15);
    const OperatorTime all = time_of(gemm, device);
    const double ratio =
        (all.total() - all.floor) / (one.total() - one.floor) / static_cast<double>(gemm.batch);
    RC_ASSERT(ratio <= 1 + 1e-9);
    RC_ASSERT(ratio >= 0.75);
  }));
}

TEST(OperatorTimeProperties, MoreBytesTakeLonger) {
  EXPECT_TRUE(rc::check([] {
    const DeviceType& device = any_device();
    Pass pass = any_pass();
    const Seconds before = time_of(pass, device).total();
    pass.rows += extent(1000);
    RC_ASSERT(time_of(pass, device).total() > before);
  }));
}

TEST(OperatorTimeProperties, TheCacheAgrees) {
  EXPECT_TRUE(rc::check([] {
    static const DeviceType device = catalogue_device("H100-SXM");
    static CachedOperatorTime times(device);
    const Kernel kernel = *rc::gen::element<Kernel>(any_gemm(), any_attention(), any_pass());
    RC_ASSERT(times(kernel) == time_of(kernel, device).total());
    RC_ASSERT(times(kernel) == time_of(kernel, device).total());
  }));
}

}  // namespace foreshard::operator_properties_test
