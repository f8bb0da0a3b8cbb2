// The GPU's kernels, run by the emulation of CUDA's execution model.
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "tests/test.h"

#include "validate/replay/gpu/checks.h"
#include "validate/replay/gpu/emulation.h"
#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/utility.h"
#include "validate/replay/pattern.h"

namespace foreshard::replay::gpu {
namespace {

void expect_all(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    const auto fault = check.run();
    EXPECT_FALSE(fault) << check.name << ": " << *fault;
  }
}

TEST(GpuPasses, AgreeWithTheHosts) {
  expect_all(pass_checks());
}

// Shapes of all three kinds of teams (four lanes, a warp, a block), even and odd.
TEST(GpuPasses, AgreeWithTheHostsOnThousandRandomInputs) {
  constexpr std::array kDTypes{DType::kFp32, DType::kBf16, DType::kFp16};
  std::mt19937_64 random(1);
  for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
    for (int i = 0; i < 1000; ++i) {
      const auto rows = static_cast<std::int64_t>(random() % 6 + 1);
      const auto most = i % 50 == 0 ? 1300U : i % 10 == 0 ? 200U : 40U;
      const auto columns = static_cast<std::int64_t>(random() % most + 1);
      const Pass pass{static_cast<PassKind>(kind), rows, columns, kDTypes[random() % 3]};
      const std::uint64_t seed = random();
      const auto fault = disagreement(pass, seed);
      ASSERT_FALSE(fault) << describe(Kernel(pass)) << ", seed " << seed << ": " << *fault;
    }
}

// Shared memory serves 16-byte accesses of 8 threads at a time, from 32 banks of 4 bytes. Threads
// of norm_backward read and write the first quads of their packs (quads 2 t), then the second ones
// (2 t + 1), and at the end quads t. 24 columns are 6 quads: at 0, 12, 4, 16, 8, 20.
TEST(GpuShared, QuadsOfNeighboursLieInBanksOfTheirOwn) {
  const std::int64_t of_24[] = {0, 12, 4, 16, 8, 20};
  for (std::int64_t q = 0; q < 6; ++q) EXPECT_EQ(place_of_quad(q, 24), of_24[q]);
  const auto shared_banks = [](std::int64_t columns, auto quad_of) {
    int shared = 0;
    for (std::int64_t first = 0; first < kThreads; first += 8) {
      std::vector<int> uses(32);
      for (std::int64_t t = first; t < first + 8; ++t)
        if (const std::int64_t q = quad_of(t); q < columns / kQuad)
          for (std::int64_t word = 0; word < kQuad; ++word)
            shared += uses[static_cast<std::size_t>((place_of_quad(q, columns) + word) % 32)]++;
    }
    return shared;
  };
  for (const std::int64_t columns : {8, 24, 1024, 2056, 4096, 12288}) {
    EXPECT_EQ(shared_banks(columns, [](std::int64_t t) { return 2 * t; }), 0) << columns;
    EXPECT_EQ(shared_banks(columns, [](std::int64_t t) { return 2 * t + 1; }), 0) << columns;
    std::vector<int> taken(static_cast<std::size_t>(columns / kQuad));
    for (std::int64_t q = 0; q < columns / kQuad; ++q) {
      EXPECT_EQ(place_of_quad(q, columns) % kQuad, 0);
      ++taken.at(static_cast<std::size_t>(place_of_quad(q, columns) / kQuad));
    }
    EXPECT_THAT(taken, testing::Each(1)) << columns;
  }
  // Quads one after another alternate between the halves; those share banks unless the halves lie
  // 16 banks apart, once for each block.
  EXPECT_EQ(shared_banks(2080, [](std::int64_t t) { return t; }), 0);
}

TEST(GpuAttention, ComputesSoftmaxOfScoresTimesValues) {
  expect_all(attention_checks());
}

// A product of fragments of known numbers: a[i][k] = i + k, b[k][j] = k - j, so that
// (a b)[i][j] = sum over k of (i + k)(k - j) = 16 (-i j) + 120 (i - j) + 1240.
TEST(GpuEmulation, MultipliesFragmentsAsThePtxManualLaysThemOut) {
  const auto word = [](float low, float high) {
    const __nv_bfloat16 pair[2] = {__nv_bfloat16(low), __nv_bfloat16(high)};
    std::uint32_t bits = 0;
    std::memcpy(&bits, pair, sizeof(bits));
    return bits;
  };
  std::vector<float> out(128);  // 16 x 8
  emulation::run(dim3(1), 32, 0, [&] {
    const unsigned lane = emulation::thread_index().x;
    const unsigned group = lane / 4;
    const auto g = static_cast<float>(group), t = static_cast<float>(lane % 4 * 2);
    const std::uint32_t a[4] = {word(g + t, g + t + 1), word(g + 8 + t, g + 8 + t + 1),
                                word(g + t + 8, g + t + 9), word(g + 8 + t + 8, g + 8 + t + 9)};
    float c[4] = {};
    emulation::multiply<__nv_bfloat16>(c, a, word(t - g, t + 1 - g), word(t + 8 - g, t + 9 - g));
    for (unsigned i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
  });
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      EXPECT_EQ(out[static_cast<std::size_t>(i * 8 + j)],
                static_cast<float>(-16 * i * j + 120 * (i - j) + 1240));
}

TEST(GpuScratch, HoldsOrdinaryNumbersOfEveryType) {
  std::vector<std::uint32_t> words(4096);
  ASSERT_EQ(fill_plausibly(words.data(), words.size() * 4, nullptr), cudaSuccess);
  int negative = 0;
  for (const std::uint32_t w : words)
    for (const std::uint32_t half : {w & 0xffffU, w >> 16U}) {
      const auto bits = static_cast<std::uint16_t>(half);
      __nv_bfloat16 bf16;
      __half fp16;
      std::memcpy(static_cast<void*>(&bf16), &bits, 2);
      std::memcpy(static_cast<void*>(&fp16), &bits, 2);
      const float a = std::abs(static_cast<float>(bf16));
      const float b = std::abs(static_cast<float>(fp16));
      EXPECT_TRUE(a >= 0.5F && a < 4.0F) << a;
      EXPECT_TRUE(b >= 1.5F && b < 2.5F) << b;
      for (const std::uint32_t byte : {half & 0xffU, half >> 8U}) EXPECT_NE(byte & 0x7fU, 0x7fU);
      negative += static_cast<float>(bf16) < 0 ? 1 : 0;
    }
  EXPECT_NEAR(negative, 4096, 400);
}

CheckResult checked(std::vector<float>& data, const Expected& expected) {
  CheckResult result{.first = ~0ULL};
  EXPECT_EQ(check_pattern(data.data(), static_cast<std::int64_t>(data.size()), DType::kFp32,
                          expected, &result, nullptr),
            cudaSuccess);
  return result;
}

TEST(GpuPattern, FindsTheFirstWrongElement) {
  const std::vector<std::int32_t> members{3, 5};
  std::vector<float> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto e = static_cast<std::int64_t>(i);
    data[i] = static_cast<float>(sent(3, 2, 7 + e) + sent(5, 2, 7 + e));
  }
  const Expected sum{.members = members.data(), .count = 2, .sum = true, .base = 7, .ordinal = 2};
  EXPECT_EQ(checked(data, sum).wrong, 0U);
  data[400] += 1;
  data[17] = std::numeric_limits<float>::quiet_NaN();
  const CheckResult result = checked(data, sum);
  EXPECT_EQ(result.wrong, 2U);
  EXPECT_EQ(result.first, 17U);
  EXPECT_TRUE(std::isnan(result.got));
  EXPECT_EQ(result.want, static_cast<float>(sent(3, 2, 24) + sent(5, 2, 24)));
}

TEST(GpuPattern, FillsEveryType) {
  const auto filled = [](DType dtype, auto type) {
    using T = decltype(type);
    std::vector<T> data(300);
    EXPECT_EQ(fill_pattern(data.data(), 300, dtype, 1, 4, 9, nullptr), cudaSuccess);
    for (std::size_t i = 0; i < data.size(); ++i)
      EXPECT_EQ(static_cast<float>(data[i]),
                static_cast<float>(sent(1, 4, 9 + static_cast<std::int64_t>(i))));
  };
  filled(DType::kFp32, float());
  filled(DType::kTf32, float());
  filled(DType::kFp16, __half());
  filled(DType::kBf16, __nv_bfloat16());
  filled(DType::kFp8, __nv_fp8_e4m3());
  filled(DType::kInt8, std::int8_t());
  filled(DType::kInt32, std::int32_t());
  filled(DType::kInt64, std::int64_t());
}

}  // namespace
}  // namespace foreshard::replay::gpu
