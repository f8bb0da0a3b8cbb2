#include "tests/validate/replay/pass_oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"

#include "validate/replay/pass/operands.h"

namespace foreshard::replay {
namespace {

std::size_t permuted_row(std::size_t row, std::size_t rows) {
  return row * std::size_t{2654435761U} % rows;
}

// The index of the number of fp4 that is nearest; of two, the even one. Negative ones come behind
// the positive ones.
int fp4_nearest(double x) {
  constexpr std::array kNumbers{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  int nearest = 0;
  for (int i = 1; i < 8; ++i) {
    const double nearer = std::abs(std::abs(x) - kNumbers.at(static_cast<std::size_t>(nearest))) -
                          std::abs(std::abs(x) - kNumbers.at(static_cast<std::size_t>(i)));
    if (nearer > 0 || (nearer == 0 && i % 2 == 0)) nearest = i;
  }
  return x < 0 ? nearest + 8 : nearest;
}

double gelu_of(double x) {
  const double root = std::sqrt(2.0 / 3.14159265358979323846);
  return 0.5 * x * (1.0 + std::tanh(root * (x + 0.044715 * x * x * x)));
}
// By a central difference: independent of the kernel's own derivative.
double gelu_slope_of(double x) {
  constexpr double kStep = 1e-5;
  return (gelu_of(x + kStep) - gelu_of(x - kStep)) / (2 * kStep);
}
double silu_of(double x) {
  return x / (1.0 + std::exp(-x));
}
double silu_slope_of(double x) {
  constexpr double kStep = 1e-5;
  return (silu_of(x + kStep) - silu_of(x - kStep)) / (2 * kStep);
}

void norm(const Pass& p, Arrays& o, std::size_t rows, std::size_t columns) {
  const bool centred = p.kind == PassKind::kLayerNormForward;
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0;
    double variance = 0;
    for (std::size_t c = 0; centred && c < columns; ++c) mean += o[0][r * columns + c];
    mean /= static_cast<double>(columns);
    for (std::size_t c = 0; c < columns; ++c) variance += std::pow(o[0][r * columns + c] - mean, 2);
    const double scale = 1.0 / std::sqrt(variance / static_cast<double>(columns) + 1e-5);
    o[2][2 * r] = mean;
    o[2][2 * r + 1] = scale;
    for (std::size_t c = 0; c < columns; ++c)
      o[1][r * columns + c] =
          (o[0][r * columns + c] - mean) * scale * o[3][c] + (centred ? o[3][columns + c] : 0.0);
  }
}

void norm_backward(const Pass& p, Arrays& o, std::size_t rows, std::size_t columns) {
  const bool centred = p.kind == PassKind::kLayerNormBackward;
  for (std::size_t r = 0; r < rows; ++r) {
    const double mean = centred ? o[3][2 * r] : 0.0;
    const double scale = o[3][2 * r + 1];
    double sum = 0;
    double along = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double h = (o[1][r * columns + c] - mean) * scale;
      const double d = o[0][r * columns + c];
      sum += d * o[4][c];
      along += d * o[4][c] * h;
      o[5][c] += d * h;
      if (centred) o[5][columns + c] += d;
    }
    if (!centred) sum = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double h = (o[1][r * columns + c] - mean) * scale;
      o[2][r * columns + c] = scale * (o[0][r * columns + c] * o[4][c] -
                                       (sum + h * along) / static_cast<double>(columns));
    }
  }
}

void softmax_rows(const Pass& p, Arrays& o, std::size_t rows, std::size_t columns) {
  const bool forward =
      p.kind == PassKind::kSoftmaxForward || p.kind == PassKind::kLongSoftmaxForward;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t base = r * columns;
    double sum = 0;
    if (!forward) {
      for (std::size_t c = 0; c < columns; ++c) sum += o[0][base + c] * o[1][base + c];
      for (std::size_t c = 0; c < columns; ++c)
        o[2][base + c] = 0.125 * o[1][base + c] * (o[0][base + c] - sum);
      continue;
    }
    for (std::size_t c = 0; c <= r % columns; ++c) sum += std::exp(0.125 * o[0][base + c]);
    for (std::size_t c = 0; c < columns; ++c)
      o[1][base + c] = c <= r % columns ? std::exp(0.125 * o[0][base + c]) / sum : 0.0;
  }
}

void cross_entropy(Arrays& o, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < columns; ++c) sum += std::exp(o[0][r * columns + c]);
    for (std::size_t c = 0; c < columns; ++c)
      o[1][r * columns + c] = std::exp(o[0][r * columns + c]) / sum;
    o[2][r] = -std::log(o[1][r * columns + r % columns]);
  }
}

void rope(const Pass& p, Arrays& o, std::size_t rows, std::size_t columns) {
  const double sign = p.kind == PassKind::kRopeForward ? 1.0 : -1.0;
  const auto head = static_cast<std::size_t>(rope_head(p.columns));
  o[2] = o[0];
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t h = 0; head > 0 && h < columns / head; ++h)
      for (std::size_t j = 0; j < head / 2; ++j) {
        const std::size_t a = r * columns + h * head + j;
        const std::size_t b = a + head / 2;
        const double cosine = o[1][r * head + j];
        const double sine = sign * o[1][r * head + head / 2 + j];
        o[2][a] = o[0][a] * cosine - o[0][b] * sine;
        o[2][b] = o[0][b] * cosine + o[0][a] * sine;
      }
}

void top_k(Arrays& o, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t c = 0; c < columns; ++c) order.emplace_back(-o[0][r * columns + c], c);
    std::sort(order.begin(), order.end());
    for (std::size_t k = 0; k < std::size_t{kTopK}; ++k) {
      double* to = &o[1][(r * kTopK + k) * 2];
      to[0] = k < columns ? -order[k].first : -3.0e38F;
      to[1] = k < columns ? static_cast<double>(order[k].second) : -1.0;
    }
  }
}

void update(const Pass& p, Arrays& o, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double g = o[0][i];
    if (p.state_bytes > 0) {
      const auto wide = static_cast<std::size_t>(p.state_bytes / 4);
      for (std::size_t a = 1; a <= wide; ++a) o[a][i] = 0.9 * o[a][i] + 0.1 * g;
      o.back()[i] = o[1][i];
    } else if (p.kind == PassKind::kLambUpdate) {
      o[2][i] = 0.9 * o[2][i] + 0.1 * g;
      o[3][i] = 0.95 * std::abs(o[3][i]) + 0.05 * g * g;
      o[4][i] = o[2][i] / (std::sqrt(o[3][i]) + 1e-6) + 0.1 * o[1][i];
    } else if (p.kind == PassKind::kLambApply) {
      o[0][i] -= 1e-3 * o[1][i];
      o[2][i] = o[0][i];
    } else if (p.kind == PassKind::kAdam) {
      o[2][i] = 0.9 * o[2][i] + 0.1 * g;
      o[3][i] = 0.95 * std::abs(o[3][i]) + 0.05 * g * g;
      o[1][i] -= 1e-4 * (o[2][i] / (std::sqrt(o[3][i]) + 1e-8) + 0.1 * o[1][i]);
      o[4][i] = o[1][i];
    } else {
      o[2][i] = 0.9 * o[2][i] + g;
      o[1][i] -= 1e-2 * o[2][i];
      o[3][i] = o[1][i];
    }
  }
}

void swiglu(const Pass& p, Arrays& o, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (p.kind == PassKind::kSwigluForward) {
      o[1][i] = silu_of(o[0][i]) * o[0][n + i];
    } else {
      o[2][i] = o[0][i] * o[1][n + i] * silu_slope_of(o[1][i]);
      o[2][n + i] = o[0][i] * silu_of(o[1][i]);
    }
  }
}

}  // namespace

void compute(const Pass& given, Arrays& o) {
  const Pass p = in_floating_point(given);
  const auto rows = static_cast<std::size_t>(p.rows);
  const auto columns = static_cast<std::size_t>(p.columns);
  const std::size_t n = rows * columns;
  const auto each = [&](std::size_t to, auto value) {
    for (std::size_t i = 0; i < n; ++i) o[to][i] = value(i, i / columns, i % columns);
  };
  using Size = std::size_t;
  switch (p.kind) {
    case PassKind::kLayerNormForward:
    case PassKind::kRmsNormForward:
      return norm(p, o, rows, columns);
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward:
      return norm_backward(p, o, rows, columns);
    case PassKind::kSoftmaxForward:
    case PassKind::kSoftmaxBackward:
    case PassKind::kLongSoftmaxForward:
    case PassKind::kLongSoftmaxBackward:
      return softmax_rows(p, o, rows, columns);
    case PassKind::kCrossEntropyForward:
      return cross_entropy(o, rows, columns);
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return rope(p, o, rows, columns);
    case PassKind::kTopK:
      return top_k(o, rows, columns);
    case PassKind::kAdam:
    case PassKind::kLambUpdate:
    case PassKind::kLambApply:
    case PassKind::kOptimizer:
      return update(p, o, n);
    case PassKind::kSwigluForward:
    case PassKind::kSwigluBackward:
      return swiglu(p, o, n);
    case PassKind::kGeluForward:
      return each(1, [&](Size i, Size, Size) { return gelu_of(o[0][i]); });
    case PassKind::kGeluBackward:
      return each(2, [&](Size i, Size, Size) { return o[0][i] * gelu_slope_of(o[1][i]); });
    case PassKind::kUnary:
      return each(1, [&](Size i, Size, Size) { return std::max(o[0][i], 0.0); });
    case PassKind::kResidualAdd:
    case PassKind::kBinary:
      return each(2, [&](Size i, Size, Size) { return o[0][i] + o[1][i]; });
    case PassKind::kTernary:
      return each(3, [&](Size i, Size, Size) { return o[0][i] * o[1][i] + o[2][i]; });
    case PassKind::kBiasAdd:
      return each(2, [&](Size i, Size, Size c) { return o[0][i] + o[1][c]; });
    // The pass's own mask decides what is dropped; the test looks at the share.
    case PassKind::kDropoutForward:
      return each(1, [&](Size i, Size, Size) { return o[0][i] * o[2][i] / 0.9; });
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return each(2, [&](Size i, Size, Size) { return o[0][i] * o[1][i] / 0.9; });
    case PassKind::kBiasDropoutAddForward:
      return each(
          3, [&](Size i, Size, Size c) { return (o[0][i] + o[2][c]) * o[4][i] / 0.9 + o[1][i]; });
    case PassKind::kBiasGradient:
      for (Size i = 0; i < n; ++i) o[1][i % columns] += o[0][i];
      return;
    case PassKind::kTranspose:
      for (Size i = 0; i < n; ++i) o[1][i % columns * rows + i / columns] = o[0][i];
      return;
    case PassKind::kTokenPermute:
    case PassKind::kEmbeddingForward:
      return each(1,
                  [&](Size, Size r, Size c) { return o[0][permuted_row(r, rows) * columns + c]; });
    case PassKind::kEmbeddingBackward:
      for (Size i = 0; i < n; ++i)
        o[1][permuted_row(i / columns, rows) * columns + i % columns] += o[0][i];
      return;
    case PassKind::kCrossEntropyBackward:
      return each(1,
                  [&](Size i, Size r, Size c) { return o[0][i] - (c == r % columns ? 1.0 : 0.0); });
    case PassKind::kGradientAccumulate:
      return each(1, [&](Size i, Size, Size) { return o[1][i] + o[0][i]; });
    case PassKind::kGradientNorm:
      for (Size i = 0; i < n; ++i) o[1][0] += o[0][i] * o[0][i];
      return;
    case PassKind::kCast:
    case PassKind::kQuantize:
      return each(1, [&](Size i, Size, Size) { return o[0][i]; });
    case PassKind::kQuantizeFp4:
    case PassKind::kQuantizeFp4Twice:
      for (std::size_t i = 0; i < o[1].size(); ++i)
        o[1][i] =
            static_cast<std::int8_t>(fp4_nearest(o[0][2 * i]) + 16 * fp4_nearest(o[0][2 * i + 1]));
      if (o.size() > 2) o[2] = o[1];
      return;
    case PassKind::kDequantizeNf4:
      for (std::size_t i = 0; i < o[0].size(); ++i) {
        const int code = static_cast<std::uint8_t>(static_cast<std::int64_t>(o[0][i]));
        const int high = code / 16;
        o[1][2 * i] = code % 16 - 8;
        o[1][2 * i + 1] = high - 8;
      }
      return;
    case PassKind::kQuantizeTwice:
    case PassKind::kQuantizeTranspose:
      each(1, [&](Size i, Size, Size) { return o[0][i]; });
      return each(2, [&](Size i, Size, Size) { return o[0][i]; });
    case PassKind::kZero:
      return each(0, [](Size, Size, Size) { return 0.0; });
    case PassKind::kReduce:
    case PassKind::kStatistics: {
      const Size wide = p.kind == PassKind::kStatistics ? 2 : 1;
      std::fill(o[1].begin(), o[1].end(), 0.0);
      for (Size i = 0; i < n; ++i) {
        o[1][i / columns * wide] += o[0][i];
        if (wide == 2) o[1][i / columns * wide + 1] += o[0][i] * o[0][i];
      }
      return;
    }
    case PassKind::kExpand:
      return each(1, [&](Size, Size r, Size) { return o[0][r]; });
  }
  FORESHARD_CHECK(false);
}

}  // namespace foreshard::replay
