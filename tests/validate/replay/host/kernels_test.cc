// Every kernel against the naive formula, in double, on small shapes; and that a pass moves the
// bytes that its line of traffic_of() says.
#include "validate/replay/host/kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "validate/replay/host/elementary.h"
#include "validate/replay/host/number.h"

namespace foreshard::replay::host {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats out(count);
  for (float& x : out) x = normal(random);
  return out;
}

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
    const Floats a = random_floats(3 * 5 * 4, 1);
    const Floats b = random_floats(3 * 4 * 7, 2);
    Floats d = random_floats(3 * 5 * 7, 3);
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
                                                   .causal = false}));

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

// One pass in fp32 on owned arrays.
struct Arrays {
  explicit Arrays(const Pass& of) : pass(of) {
    const PassArrays counts = arrays_of(pass.kind);
    const auto all = static_cast<std::size_t>(pass.rows * pass.columns);
    const auto rows = static_cast<std::size_t>(pass.rows);
    const auto columns = static_cast<std::size_t>(pass.columns);
    unsigned seed = 1;
    const auto make = [&](std::vector<Floats>& list, int count, std::size_t size) {
      for (int i = 0; i < count; ++i) list.push_back(random_floats(size, seed++));
    };
    make(in, counts.in, all);
    make(out, counts.out, all);
    make(wide_in, counts.wide_in, all);
    make(state, counts.wide_state, all);
    make(wide_out, counts.wide_out, all);
    make(row_in, counts.row_in, rows);
    make(row_out, counts.row_out, rows);
    make(column_in, counts.column_in, columns);
    make(column_out, counts.column_out, columns);
    mask.assign(all, 0);
    for (std::size_t i = 0; i < all && counts.mask_in > 0; ++i) mask[i] = i % 3 != 0 ? 1 : 0;
    before = out;
    state_before = state;
  }
  void run() {
    PassOperands x;
    for (std::size_t i = 0; i < in.size(); ++i)
      x.in[i] = reinterpret_cast<const std::byte*>(in[i].data());
    for (std::size_t i = 0; i < out.size(); ++i)
      x.out[i] = reinterpret_cast<std::byte*>(out[i].data());
    for (std::size_t i = 0; i < wide_in.size(); ++i) x.wide_in[i] = wide_in[i].data();
    for (std::size_t i = 0; i < state.size(); ++i) x.wide_state[i] = state[i].data();
    for (std::size_t i = 0; i < wide_out.size(); ++i) x.wide_out[i] = wide_out[i].data();
    for (std::size_t i = 0; i < row_in.size(); ++i) x.row_in[i] = row_in[i].data();
    for (std::size_t i = 0; i < row_out.size(); ++i) x.row_out[i] = row_out[i].data();
    for (std::size_t i = 0; i < column_in.size(); ++i) x.column_in[i] = column_in[i].data();
    for (std::size_t i = 0; i < column_out.size(); ++i) x.column_out[i] = column_out[i].data();
    x.mask_in[0] = mask.data();
    x.mask_out[0] = mask.data();
    pass_over(pass, x);
  }
  Pass pass;
  std::vector<Floats> in, out, wide_in, state, wide_out, row_in, row_out, column_in, column_out;
  std::vector<Floats> before, state_before;
  std::vector<std::uint8_t> mask;
};

constexpr std::int64_t kRows = 11;
constexpr std::int64_t kColumns = 37;

Arrays after(PassKind kind, std::int64_t rows = kRows, std::int64_t columns = kColumns) {
  Arrays x({.kind = kind, .rows = rows, .columns = columns, .dtype = DType::kFp32});
  x.run();
  return x;
}

// wanted[r][c] of the first output.
void expect_out(const Arrays& x, const std::function<double(std::size_t, std::size_t)>& wanted,
                std::size_t which = 0, double tolerance = 2e-5) {
  const auto columns = static_cast<std::size_t>(x.pass.columns);
  for (std::size_t r = 0; r < static_cast<std::size_t>(x.pass.rows); ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const double w = wanted(r, c);
      ASSERT_NEAR(static_cast<double>(x.out[which][r * columns + c]), w,
                  tolerance * (1 + std::fabs(w)))
          << traffic_of(x.pass.kind).name << " row " << r << " column " << c;
    }
}
double at(const Floats& values, std::size_t i) {
  return static_cast<double>(values[i]);
}
double at(const Floats& values, std::size_t r, std::size_t c) {
  return at(values, r * static_cast<std::size_t>(kColumns) + c);
}

double mean_of(const std::function<double(std::size_t)>& f) {
  double sum = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c) sum += f(c);
  return sum / static_cast<double>(kColumns);
}

TEST(Pass, LayerNormForward) {
  const Arrays x = after(PassKind::kLayerNormForward);
  expect_out(x, [&](std::size_t r, std::size_t c) {
    const double mean = mean_of([&](std::size_t i) { return at(x.in[0], r, i); });
    const double variance =
        mean_of([&](std::size_t i) { return std::pow(at(x.in[0], r, i) - mean, 2); });
    return (at(x.in[0], r, c) - mean) / std::sqrt(variance + 1e-5) * at(x.column_in[0], c) +
           at(x.column_in[1], c);
  });
}

// The gradient of the forward pass by differences: L = sum(dy y), dL/dx = (L(x+h) - L(x-h)) / 2h.
TEST(Pass, LayerNormBackwardIsTheGradient) {
  Arrays x({.kind = PassKind::kLayerNormBackward,
            .rows = kRows,
            .columns = kColumns,
            .dtype = DType::kFp32});
  const auto stats = [&](const std::vector<double>& row, double& mean, double& scale) {
    mean = 0;
    for (const double v : row) mean += v / static_cast<double>(kColumns);
    double variance = 0;
    for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(kColumns);
    scale = 1 / std::sqrt(variance + 1e-5);
  };
  const auto row_of = [&](std::size_t r) {
    std::vector<double> row;
    for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c)
      row.push_back(at(x.in[0], r, c));
    return row;
  };
  for (std::size_t r = 0; r < static_cast<std::size_t>(kRows); ++r) {
    double mean = 0, scale = 0;
    stats(row_of(r), mean, scale);
    x.row_in[0][r] = static_cast<float>(mean);
    x.row_in[1][r] = static_cast<float>(scale);
  }
  x.run();
  expect_out(
      x,
      [&](std::size_t r, std::size_t c) {
        const auto loss = [&](double shift) {
          std::vector<double> row = row_of(r);
          row[c] += shift;
          double mean = 0, scale = 0, sum = 0;
          stats(row, mean, scale);
          for (std::size_t i = 0; i < row.size(); ++i)
            sum += at(x.in[1], r, i) * (row[i] - mean) * scale * at(x.column_in[0], i);
          return sum;
        };
        return (loss(1e-4) - loss(-1e-4)) / 2e-4;
      },
      0, 2e-4);
  for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c) {
    double gain = 0, bias = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(kRows); ++r) {
      gain += at(x.in[1], r, c) * (at(x.in[0], r, c) - at(x.row_in[0], r)) * at(x.row_in[1], r);
      bias += at(x.in[1], r, c);
    }
    EXPECT_NEAR(at(x.column_out[0], c), gain, 1e-4);
    EXPECT_NEAR(at(x.column_out[1], c), bias, 1e-4);
  }
}

TEST(Pass, RmsNorm) {
  const Arrays x = after(PassKind::kRmsNormForward);
  expect_out(x, [&](std::size_t r, std::size_t c) {
    const double square = mean_of([&](std::size_t i) { return std::pow(at(x.in[0], r, i), 2); });
    return at(x.in[0], r, c) / std::sqrt(square + 1e-5) * at(x.column_in[0], c);
  });
  // dx = s (g - x s^2 mean(g x)), g = dy gain, s as given.
  const Arrays back = after(PassKind::kRmsNormBackward);
  expect_out(back, [&](std::size_t r, std::size_t c) {
    const double s = at(back.row_in[0], r);
    const auto g = [&](std::size_t i) { return at(back.in[1], r, i) * at(back.column_in[0], i); };
    const double dot = mean_of([&](std::size_t i) { return g(i) * at(back.in[0], r, i); });
    return s * (g(c) - at(back.in[0], r, c) * s * s * dot);
  });
}

double gelu(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}
double silu(double v) {
  return v / (1 + std::exp(-v));
}
double slope(const std::function<double(double)>& f, double v) {
  return (f(v + 1e-5) - f(v - 1e-5)) / 2e-5;
}

TEST(Pass, Activations) {
  const Arrays forward = after(PassKind::kGeluForward);
  expect_out(forward, [&](std::size_t r, std::size_t c) { return gelu(at(forward.in[0], r, c)); });
  const Arrays backward = after(PassKind::kGeluBackward);
  expect_out(backward, [&](std::size_t r, std::size_t c) {
    return at(backward.in[1], r, c) * slope(gelu, at(backward.in[0], r, c));
  });
  const Arrays swiglu = after(PassKind::kSwigluForward);
  expect_out(swiglu, [&](std::size_t r, std::size_t c) {
    return silu(at(swiglu.in[0], r, c)) * at(swiglu.in[1], r, c);
  });
  const Arrays back = after(PassKind::kSwigluBackward);
  expect_out(back, [&](std::size_t r, std::size_t c) {
    return at(back.in[2], r, c) * at(back.in[1], r, c) * slope(silu, at(back.in[0], r, c));
  });
  expect_out(
      back,
      [&](std::size_t r, std::size_t c) {
        return at(back.in[2], r, c) * silu(at(back.in[0], r, c));
      },
      1);
}

TEST(Pass, Softmax) {
  const Arrays x = after(PassKind::kSoftmaxForward);
  expect_out(x, [&](std::size_t r, std::size_t c) {
    if (c > r) return 0.0;
    double total = 0;
    for (std::size_t i = 0; i <= r; ++i) total += std::exp(at(x.in[0], r, i) / 8);
    return std::exp(at(x.in[0], r, c) / 8) / total;
  });
  const Arrays back = after(PassKind::kSoftmaxBackward);
  expect_out(back, [&](std::size_t r, std::size_t c) {
    const double dot = static_cast<double>(kColumns) * mean_of([&](std::size_t i) {
                         return at(back.in[0], r, i) * at(back.in[1], r, i);
                       });
    return at(back.in[0], r, c) * (at(back.in[1], r, c) - dot) / 8;
  });
}

TEST(Pass, DropoutKeepsNineInTen) {
  const Arrays x = after(PassKind::kDropoutForward, 100, 370);
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < x.mask.size(); ++i) {
    kept += x.mask[i];
    ASSERT_FLOAT_EQ(x.out[0][i], x.mask[i] != 0 ? x.in[0][i] / 0.9F : 0.0F);
  }
  // 37000 draws: 0.9 within 4 standard deviations of 0.00156.
  EXPECT_NEAR(static_cast<double>(kept) / 37000, 0.9, 0.0063);
  for (const PassKind kind : {PassKind::kDropoutBackward, PassKind::kBiasDropoutAddBackward}) {
    const Arrays back = after(kind);
    expect_out(back, [&](std::size_t r, std::size_t c) {
      return (r * static_cast<std::size_t>(kColumns) + c) % 3 != 0 ? at(back.in[0], r, c) / 0.9 : 0;
    });
  }
  const Arrays add = after(PassKind::kBiasDropoutAddForward);
  expect_out(add, [&](std::size_t r, std::size_t c) {
    const bool kept_here = add.mask[r * static_cast<std::size_t>(kColumns) + c] != 0;
    return at(add.in[1], r, c) +
           (kept_here ? (at(add.in[0], r, c) + at(add.column_in[0], c)) / 0.9 : 0);
  });
}

TEST(Pass, SumsAndCopies) {
  for (const PassKind kind : {PassKind::kResidualAdd, PassKind::kBinary}) {
    const Arrays x = after(kind);
    expect_out(x,
               [&](std::size_t r, std::size_t c) { return at(x.in[0], r, c) + at(x.in[1], r, c); });
  }
  const Arrays bias = after(PassKind::kBiasAdd);
  expect_out(bias, [&](std::size_t r, std::size_t c) {
    return at(bias.in[0], r, c) + at(bias.column_in[0], c);
  });
  const Arrays gradient = after(PassKind::kBiasGradient);
  for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c) {
    double sum = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(kRows); ++r)
      sum += at(gradient.in[0], r, c);
    EXPECT_NEAR(at(gradient.column_out[0], c), sum, 1e-5);
  }
  const Arrays unary = after(PassKind::kUnary);
  expect_out(unary, [&](std::size_t r, std::size_t c) { return -at(unary.in[0], r, c); });
  const Arrays ternary = after(PassKind::kTernary);
  expect_out(ternary, [&](std::size_t r, std::size_t c) {
    return at(ternary.in[0], r, c) * at(ternary.in[1], r, c) + at(ternary.in[2], r, c);
  });
  const Arrays zero = after(PassKind::kZero);
  expect_out(zero, [](std::size_t, std::size_t) { return 0.0; });
  const Arrays expand = after(PassKind::kExpand);
  expect_out(expand, [&](std::size_t r, std::size_t) { return at(expand.row_in[0], r); });
  const Arrays cast = after(PassKind::kCast);
  EXPECT_EQ(cast.wide_out[0], cast.in[0]);
  // Transposed: row r of the input is column r of an 37 x 11 output. 40 x 70: over tiles of 32.
  const Arrays turned = after(PassKind::kTranspose, 40, 70);
  for (std::size_t r = 0; r < 40; ++r)
    for (std::size_t c = 0; c < 70; ++c)
      ASSERT_EQ(turned.out[0][c * 40 + r], turned.in[0][r * 70 + c]);
}

// Rows are permuted: each appears once. 7919 mod 11 = 10, so row r comes from row 10 r mod 11.
TEST(Pass, GathersAndScatters) {
  for (const PassKind kind : {PassKind::kEmbeddingForward, PassKind::kTokenPermute}) {
    const Arrays x = after(kind);
    expect_out(x, [&](std::size_t r, std::size_t c) { return at(x.in[0], 10 * r % 11, c); });
  }
  const Arrays scatter = after(PassKind::kEmbeddingBackward);
  for (std::size_t r = 0; r < 11; ++r)
    for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c)
      ASSERT_NEAR(at(scatter.out[0], 10 * r % 11, c),
                  at(scatter.before[0], 10 * r % 11, c) + at(scatter.in[0], r, c), 1e-6);
}

TEST(Pass, RopeTurnsPairsAndBack) {
  const Arrays x = after(PassKind::kRopeForward);
  const Arrays back = after(PassKind::kRopeBackward);
  const auto turned = [](const Arrays& of, double sign) {
    return [&of, sign](std::size_t r, std::size_t c) {
      if (c + 1 == static_cast<std::size_t>(kColumns)) return at(of.in[0], r, c);
      const std::size_t even = c - c % 2;
      const double cosine = at(of.column_in[0], even);
      const double sine = sign * at(of.column_in[1], even);
      const double first = at(of.in[0], r, even);
      const double second = at(of.in[0], r, even + 1);
      return c % 2 == 0 ? first * cosine - second * sine : first * sine + second * cosine;
    };
  };
  expect_out(x, turned(x, 1));
  expect_out(back, turned(back, -1));
}

TEST(Pass, CrossEntropy) {
  const Arrays x = after(PassKind::kCrossEntropyForward);
  for (std::size_t r = 0; r < static_cast<std::size_t>(kRows); ++r) {
    double total = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c)
      total += std::exp(at(x.in[0], r, c));
    for (std::size_t c = 0; c < static_cast<std::size_t>(kColumns); ++c)
      EXPECT_NEAR(at(x.wide_out[0], r, c), std::exp(at(x.in[0], r, c)) / total, 1e-6);
    const auto label = mixed(static_cast<std::uint32_t>(r)) % kColumns;
    EXPECT_NEAR(at(x.row_out[0], r), std::log(total) - at(x.in[0], r, label), 1e-5);
  }
  const Arrays back = after(PassKind::kCrossEntropyBackward);
  expect_out(back, [&](std::size_t r, std::size_t c) {
    const bool label = c == mixed(static_cast<std::uint32_t>(r)) % kColumns;
    return (at(back.wide_in[0], r, c) - (label ? 1 : 0)) / static_cast<double>(kRows);
  });
}

TEST(Pass, Optimizers) {
  const Arrays adam = after(PassKind::kAdam, 500, 1);
  for (std::size_t i = 0; i < 500; ++i) {
    const double g = at(adam.wide_in[0], i);
    const double m = 0.9 * at(adam.state_before[1], i) + 0.1 * g;
    const double v = 0.999 * std::fabs(at(adam.state_before[2], i)) + 0.001 * g * g;
    const double p = at(adam.state_before[0], i) - 1e-4 * (m / 0.1) / (std::sqrt(v / 0.001) + 1e-8);
    ASSERT_NEAR(at(adam.state[1], i), m, 1e-6);
    ASSERT_NEAR(at(adam.state[2], i), v, 1e-6);
    ASSERT_NEAR(at(adam.state[0], i), p, 1e-6);
    ASSERT_EQ(adam.out[0][i], adam.state[0][i]);
  }
  const Arrays momentum = after(PassKind::kOptimizer, 500, 1);
  for (std::size_t i = 0; i < 500; ++i) {
    const double m = 0.9 * at(momentum.state_before[1], i) + at(momentum.wide_in[0], i);
    ASSERT_NEAR(at(momentum.state[1], i), m, 1e-6);
    ASSERT_NEAR(at(momentum.out[0], i), at(momentum.state_before[0], i) - 1e-4 * m, 1e-6);
  }
  const Arrays sum = after(PassKind::kGradientAccumulate, 500, 1);
  for (std::size_t i = 0; i < 500; ++i)
    ASSERT_NEAR(at(sum.state[0], i), at(sum.state_before[0], i) + at(sum.in[0], i), 1e-6);
  const Arrays norm = after(PassKind::kGradientNorm, 10'000, 1);
  double squares = 0;
  for (std::size_t i = 0; i < 10'000; ++i) squares += std::pow(at(norm.wide_in[0], i), 2);
  EXPECT_NEAR(at(norm.column_out[0], 0), squares, 1e-5 * squares);
}

TEST(Pass, RowsToNumbers) {
  const Arrays sum = after(PassKind::kReduce);
  const Arrays both = after(PassKind::kStatistics);
  const Arrays top = after(PassKind::kTopK);
  for (std::size_t r = 0; r < static_cast<std::size_t>(kRows); ++r) {
    const auto n = static_cast<double>(kColumns);
    EXPECT_NEAR(at(sum.row_out[0], r),
                n * mean_of([&](std::size_t c) { return at(sum.in[0], r, c); }), 1e-5);
    EXPECT_NEAR(at(both.row_out[1], r),
                n * mean_of([&](std::size_t c) { return std::pow(at(both.in[0], r, c), 2); }),
                1e-4);
    Floats row(top.in[0].begin() + static_cast<std::ptrdiff_t>(r) * kColumns,
               top.in[0].begin() + static_cast<std::ptrdiff_t>(r + 1) * kColumns);
    std::sort(row.begin(), row.end(), std::greater<>());
    EXPECT_EQ(top.row_out[0][r], row[0]);
    EXPECT_EQ(top.row_out[1][r], row[1]);
  }
}

// Arrays read and written, in bytes an element, are those of the table. Two differ on purpose: the
// logits of cross-entropy are one array that is read twice, and the rows that embedding_bwd adds
// to are read and written.
TEST(Pass, MovesTheBytesOfItsTable) {
  for (int i = 0; i <= static_cast<int>(PassKind::kOptimizer); ++i) {
    const auto kind = static_cast<PassKind>(i);
    const PassTraffic& line = traffic_of(kind);
    const PassArrays arrays = arrays_of(kind);
    double read = arrays.in;
    if (kind == PassKind::kCrossEntropyForward) read += 1;
    if (kind == PassKind::kEmbeddingBackward) read += arrays.out;
    EXPECT_EQ(read, line.read_elements) << line.name;
    EXPECT_EQ(arrays.out, line.written_elements) << line.name;
    EXPECT_EQ(4 * (arrays.wide_in + arrays.wide_state) + arrays.mask_in, line.other_bytes_read)
        << line.name;
    EXPECT_EQ(4 * (arrays.wide_out + arrays.wide_state) + arrays.mask_out, line.other_bytes_written)
        << line.name;
  }
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
