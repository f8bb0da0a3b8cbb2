// Products and attention against the naive formula, in double, on small shapes, and how numbers are
// rounded. Passes: ../pass_test.cc.
#include "validate/replay/host/kernels.h"

#include "tests/test.h"
#include "tests/validate/replay/host/floats.h"

#include "validate/replay/number.h"
#include "validate/replay/pass/elementary.h"

namespace foreshard::replay::host {
namespace {

void expect_near(const Floats& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), wanted[i], tolerance * (1 + std::fabs(wanted[i])))
        << "element " << i;
}

TEST(Exponential, IsRightToThreeTenMillionths) {
  for (float x = -86.0F; x < 86.0F; x += 0.0137F)
    ASSERT_NEAR(static_cast<double>(exponential(x)) / std::exp(static_cast<double>(x)), 1.0, 3e-7)
        << x;
  EXPECT_EQ(exponential(-1000.0F), exponential(-87.0F));
}

// All 65536 numbers of the 2-byte types and 256 of fp8 come back as they were, but NaN and
// infinities; and a number between two neighbours goes to the nearer, a tie to the even one.
TEST(Number, RoundsToTheNearest) {
  for (unsigned bits = 0; bits < 0x7c00U; ++bits) {
    Fp16 out{};
    const float value = to_float(Fp16{static_cast<std::uint16_t>(bits)});
    store(value, out);
    ASSERT_EQ(out.bits, bits);
    store(-value, out);
    ASSERT_EQ(out.bits, bits | 0x8000U);
    const float next = to_float(Fp16{static_cast<std::uint16_t>(bits + 1)});
    if (bits + 1 == 0x7c00U) continue;
    store((value + next) / 2, out);
    ASSERT_EQ(out.bits, bits + (bits & 1U));
    store(value + (next - value) * 0.51F, out);
    ASSERT_EQ(out.bits, bits + 1);
  }
  for (unsigned bits = 0; bits < 0x7eU; ++bits) {
    Fp8 out{};
    const float value = to_float(Fp8{static_cast<std::uint8_t>(bits)});
    const float next = to_float(Fp8{static_cast<std::uint8_t>(bits + 1)});
    store(value, out);
    ASSERT_EQ(out.bits, bits);
    store((value + next) / 2, out);
    ASSERT_EQ(out.bits, bits + (bits & 1U));
  }
  for (unsigned bits = 0; bits < 0x7f80U; ++bits) {
    Bf16 out{};
    store(to_float(Bf16{static_cast<std::uint16_t>(bits)}), out);
    ASSERT_EQ(out.bits, bits);
  }
  Fp16 half{};
  store(1e6F, half);
  EXPECT_EQ(to_float(half), 65504.0F);
  Fp8 eighth{};
  store(1e6F, eighth);
  EXPECT_EQ(to_float(eighth), 448.0F);
}

TEST(Multiply, IsTheProductOfEachBatch) {
  for (const bool accumulate : {false, true}) {
    const Gemm gemm{
        .batch = 3, .m = 5, .n = 7, .k = 4, .dtype = DType::kFp32, .accumulate = accumulate};
    const Floats a = random_floats(60, 1);
    const Floats b = random_floats(84, 2);
    Floats d = random_floats(105, 3);
    std::vector<double> wanted(d.begin(), d.end());
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t r = 0; r < 5; ++r)
        for (std::size_t c = 0; c < 7; ++c) {
          double sum = accumulate ? wanted[(i * 5 + r) * 7 + c] : 0.0;
          for (std::size_t k = 0; k < 4; ++k)
            sum += static_cast<double>(a[(i * 5 + r) * 4 + k]) *
                   static_cast<double>(b[(i * 4 + k) * 7 + c]);
          wanted[(i * 5 + r) * 7 + c] = sum;
        }
    multiply(gemm, a.data(), b.data(), d.data());
    expect_near(d, wanted, 1e-5);
  }
}

// Probabilities of one head: softmax of the scaled scores of the keys that each query sees.
std::vector<double> probabilities(const Attention& a, const float* q, const float* k) {
  const auto rows = static_cast<std::size_t>(a.query_length);
  const auto keys = static_cast<std::size_t>(a.key_length);
  const auto d = static_cast<std::size_t>(a.head_dim);
  std::vector<double> p(rows * keys, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    double total = 0;
    for (std::size_t c = 0; c < keys; ++c) {
      if (a.causal && static_cast<std::int64_t>(c) - a.key_length >
                          static_cast<std::int64_t>(r) - a.query_length)
        continue;
      double dot = 0;
      for (std::size_t i = 0; i < d; ++i)
        dot += static_cast<double>(q[r * d + i]) * static_cast<double>(k[c * d + i]);
      p[r * keys + c] = std::exp(dot / std::sqrt(static_cast<double>(d)));
      total += p[r * keys + c];
    }
    for (std::size_t c = 0; c < keys; ++c)
      if (total > 0) p[r * keys + c] /= total;
  }
  return p;
}

class AttentionShapes : public testing::TestWithParam<Attention> {};

// Shapes over one, several and broken tiles (128 queries, 256 keys), grouped heads, with and
// without mask, more keys than queries and fewer.
INSTANTIATE_TEST_SUITE_P(All, AttentionShapes,
                         testing::Values(Attention{.batch = 1,
                                                   .query_heads = 1,
                                                   .kv_heads = 1,
                                                   .query_length = 3,
                                                   .key_length = 3,
                                                   .head_dim = 4,
                                                   .causal = true},
                                         Attention{.batch = 2,
                                                   .query_heads = 4,
                                                   .kv_heads = 2,
                                                   .query_length = 130,
                                                   .key_length = 130,
                                                   .head_dim = 8,
                                                   .causal = true},
                                         Attention{.batch = 1,
                                                   .query_heads = 2,
                                                   .kv_heads = 1,
                                                   .query_length = 300,
                                                   .key_length = 520,
                                                   .head_dim = 16,
                                                   .causal = true},
                                         Attention{.batch = 1,
                                                   .query_heads = 2,
                                                   .kv_heads = 2,
                                                   .query_length = 40,
                                                   .key_length = 10,
                                                   .head_dim = 8,
                                                   .causal = true},
                                         Attention{.batch = 1,
                                                   .query_heads = 3,
                                                   .kv_heads = 1,
                                                   .query_length = 129,
                                                   .key_length = 257,
                                                   .head_dim = 8,
                                                   .causal = false}),
                         [](const auto& of) {
                           return std::to_string(of.param.query_length) + "_queries_" +
                                  std::to_string(of.param.key_length) + "_keys";
                         });

TEST_P(AttentionShapes, MatchTheFormula) {
  Attention a = GetParam();
  a.dtype = DType::kFp32;
  const auto heads = static_cast<std::size_t>(a.batch * a.query_heads);
  const auto rows = static_cast<std::size_t>(a.query_length);
  const auto keys = static_cast<std::size_t>(a.key_length);
  const auto d = static_cast<std::size_t>(a.head_dim);
  const std::size_t queries = heads * rows * d;
  const std::size_t key_size = static_cast<std::size_t>(a.batch * a.kv_heads) * keys * d;
  const Floats q = random_floats(queries, 1);
  const Floats k = random_floats(key_size, 2);
  const Floats v = random_floats(key_size, 3);
  const Floats go = random_floats(queries, 4);
  Floats o(queries), statistics(heads * rows), gq(queries), gk(key_size), gv(key_size);
  std::vector<std::byte> work(footprint_of(a).work);
  attend(a,
         {.query = q.data(),
          .key = k.data(),
          .value = v.data(),
          .output = o.data(),
          .statistics = statistics.data()},
         work);
  Attention back = a;
  back.direction = Direction::kBackward;
  attend(back,
         {.query = q.data(),
          .key = k.data(),
          .value = v.data(),
          .forward_output = o.data(),
          .forward_statistics = statistics.data(),
          .output_gradient = go.data(),
          .query_gradient = gq.data(),
          .key_gradient = gk.data(),
          .value_gradient = gv.data()},
         work);

  std::vector<double> wanted(queries, 0.0), wanted_q(queries, 0.0), wanted_k(key_size, 0.0),
      wanted_v(key_size, 0.0);
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  for (std::size_t h = 0; h < heads; ++h) {
    const auto batch = h / static_cast<std::size_t>(a.query_heads);
    const auto head = h % static_cast<std::size_t>(a.query_heads);
    const std::size_t shared = (batch * static_cast<std::size_t>(a.kv_heads) +
                                head / static_cast<std::size_t>(a.query_heads / a.kv_heads)) *
                               keys * d;
    const std::size_t own = h * rows * d;
    const auto p = probabilities(a, q.data() + own, k.data() + shared);
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0;
      std::vector<double> dp(keys, 0.0);
      for (std::size_t c = 0; c < keys; ++c)
        for (std::size_t i = 0; i < d; ++i) {
          const auto value = static_cast<double>(v[shared + c * d + i]);
          const auto gradient = static_cast<double>(go[own + r * d + i]);
          wanted[own + r * d + i] += p[r * keys + c] * value;
          dp[c] += gradient * value;
          wanted_v[shared + c * d + i] += p[r * keys + c] * gradient;
        }
      for (std::size_t c = 0; c < keys; ++c) mean += p[r * keys + c] * dp[c];
      for (std::size_t c = 0; c < keys; ++c) {
        const double ds = p[r * keys + c] * (dp[c] - mean) * scale;
        for (std::size_t i = 0; i < d; ++i) {
          wanted_q[own + r * d + i] += ds * static_cast<double>(k[shared + c * d + i]);
          wanted_k[shared + c * d + i] += ds * static_cast<double>(q[own + r * d + i]);
        }
      }
    }
  }
  expect_near(o, wanted, 2e-5);
  expect_near(gq, wanted_q, 1e-4);
  expect_near(gk, wanted_k, 1e-4);
  expect_near(gv, wanted_v, 1e-4);
}

// Every pass in every dtype, kernels of no rows included, through the regions: nothing is written
// where operands are only read.
TEST(Run, TakesWhatFootprintSays) {
  for (int i = 0; i <= static_cast<int>(PassKind::kOptimizer); ++i)
    for (int d = 0; d <= static_cast<int>(DType::kInt64); ++d)
      for (const std::int64_t rows : {0, 1, 19}) {
        const Kernel kernel = Pass{.kind = static_cast<PassKind>(i),
                                   .rows = rows,
                                   .columns = 33,
                                   .dtype = static_cast<DType>(d)};
        const Footprint memory = footprint_of(kernel);
        auto read = Region::make(memory.read, Region::Content::kOrdinary);
        auto written = Region::make(memory.written, Region::Content::kZero);
        ASSERT_TRUE(read && written);
        Region from = *std::move(read);
        Region to = *std::move(written);
        run(kernel, from, to, {});
      }
}

TEST(Run, RefusesWhatBlasCannotCount) {
  EXPECT_THAT(refusal_of(Gemm{.m = 1, .n = 3'000'000'000, .k = 1}).value_or(""),
              HasSubstr("n = 3000000000: BLAS counts to 2147483647"));
  EXPECT_FALSE(refusal_of(Gemm{.m = 1, .n = 3, .k = 1}));
}

}  // namespace
}  // namespace foreshard::replay::host
