// Every pass against the naive formula, in double, on small shapes; and that it moves the bytes
// that its line of traffic_of() says.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/validate/replay/host/floats.h"

#include "validate/replay/host/elementary.h"
#include "validate/replay/host/kernels.h"

namespace foreshard::replay::host {
namespace {

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
    const std::size_t label = mixed(static_cast<std::uint32_t>(r)) % kColumns;
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

}  // namespace
}  // namespace foreshard::replay::host
