/// \file
/// The mathematics of passes that reduce rows (norms, softmax, cross entropy, sums, top-k); both
/// executors use it. A body has `template <class Team> void run(row, mine) const`. A team comprises
/// the threads that work on a row together (threads of a GPU, or one core) and has
///   over_row(columns, f)      calls f(integral_constant<int, n>, column) for a member's stretches
///   reduced(value, combine)   the reduction of all members' values, for every member
///   first()                   whether this member writes results that exist once per row
/// If `mine` is false, the row belongs to another team: the body takes part in reductions but
/// writes nothing.
#pragma once

#include <cmath>
#include <cstring>
#include <span>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/pass/operands.h"
#include "validate/replay/pass/packs.h"

namespace foreshard::replay {

constexpr float kEpsilon = 1e-5F;    ///< Epsilon of norms.
constexpr float kLowest = -3.0e38F;  ///< Below all ordinary numbers.

/// y = (x - mean) / deviation * gamma + beta; statistics: mean, 1 / deviation. Sums are taken over
/// x - x0, which keeps rows with a large mean exact.
template <class T>
struct LayerNorm {
  const T* x;
  T* y;
  float* statistics;
  const T* parameters;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    const T* from = x + row * columns;
    const auto shift = Conversion<T>::read(from[0]);
    float sum = 0.0F;
    float squares = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e) {
        const float d = a[e] - shift;
        sum += d;
        squares += d * d;
      }
    });
    sum = Team::reduced(sum, Add());
    squares = Team::reduced(squares, Add());
    const auto n = static_cast<float>(columns);
    const float mean = sum / n;
    const float variance = squares / n - mean * mean;
    const float scale = reciprocal_root((variance > 0.0F ? variance : 0.0F) + kEpsilon);
    if (!mine) return;
    if (Team::first()) {
      statistics[2 * row] = mean + shift;
      statistics[2 * row + 1] = scale;
    }
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      float gamma[count.value];
      float beta[count.value];
      load(a, from + c);
      load(gamma, parameters + c);
      load(beta, parameters + columns + c);
      for (int e = 0; e < count.value; ++e)
        a[e] = (a[e] - shift - mean) * scale * gamma[e] + beta[e];
      store(y + row * columns + c, a);
    });
  }
};

/// y = x / sqrt(mean of squares) * gamma. Source: Zhang and Sennrich, "Root Mean Square Layer
/// Normalization" (2019).
template <class T>
struct RmsNorm {
  const T* x;
  T* y;
  float* statistics;
  const T* parameters;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    const T* from = x + row * columns;
    float squares = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e) squares += a[e] * a[e];
    });
    squares = Team::reduced(squares, Add());
    const float scale = reciprocal_root(squares / static_cast<float>(columns) + kEpsilon);
    if (!mine) return;
    if (Team::first()) {
      statistics[2 * row] = 0.0F;
      statistics[2 * row + 1] = scale;
    }
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      float gamma[count.value];
      load(a, from + c);
      load(gamma, parameters + c);
      for (int e = 0; e < count.value; ++e) a[e] *= scale * gamma[e];
      store(y + row * columns + c, a);
    });
  }
};

/// Scale of attention scores: 1/8, for heads of 64. The mask is causal: row r of a square block
/// sees columns up to r modulo the number of columns. Source: Megatron-LM's
/// scaled_upper_triang_masked_softmax does the same to scores.
constexpr float kScoreScale = 0.125F;

template <class T>
struct Softmax {
  const T* x;
  T* y;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    const T* from = x + row * columns;
    const std::int64_t last = row % columns;
    float largest = kLowest;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e)
        if (c + e <= last) largest = Larger()(largest, a[e] * kScoreScale);
    });
    largest = Team::reduced(largest, Larger());
    float sum = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      if (c > last) return;
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e)
        if (c + e <= last) sum += exponential(a[e] * kScoreScale - largest);
    });
    sum = Team::reduced(sum, Add());
    if (!mine) return;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e)
        a[e] = c + e <= last ? exponential(a[e] * kScoreScale - largest) / sum : 0.0F;
      store(y + row * columns + c, a);
    });
  }
};

/// dx = scale y (dy - sum(y dy)).
template <class T>
struct SoftmaxBackward {
  const T* dy;
  const T* y;
  T* dx;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    const std::int64_t base = row * columns;
    float sum = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float d[count.value];
      float a[count.value];
      load(d, dy + base + c);
      load(a, y + base + c);
      for (int e = 0; e < count.value; ++e) sum += d[e] * a[e];
    });
    sum = Team::reduced(sum, Add());
    if (!mine) return;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float d[count.value];
      float a[count.value];
      load(d, dy + base + c);
      load(a, y + base + c);
      for (int e = 0; e < count.value; ++e) a[e] *= kScoreScale * (d[e] - sum);
      store(dx + base + c, a);
    });
  }
};

/// The softmax in fp32, and -log of the target's probability. The target of a row is its number
/// modulo the vocabulary.
template <class T>
struct CrossEntropy {
  const T* logits;
  float* probabilities;
  float* losses;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    const T* from = logits + row * columns;
    // One pass computes the maximum and the sum, which is rescaled when the maximum grows.
    float largest = kLowest;
    float sum = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      float top = a[0];
      for (int e = 1; e < count.value; ++e) top = Larger()(top, a[e]);
      if (top > largest) {
        sum *= exponential(largest - top);
        largest = top;
      }
      for (int e = 0; e < count.value; ++e) sum += exponential(a[e] - largest);
    });
    const float top = Team::reduced(largest, Larger());
    sum = Team::reduced(sum * exponential(largest - top), Add());
    if (!mine) return;
    if (Team::first()) losses[row] = logf(sum) + top - Conversion<T>::read(from[row % columns]);
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, from + c);
      for (int e = 0; e < count.value; ++e) a[e] = exponential(a[e] - top) / sum;
      store(probabilities + row * columns + c, a);
    });
  }
};

template <class T>
struct RowSums {
  const T* x;
  float* out;
  std::int64_t columns;
  bool squares_too;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    float sum = 0.0F;
    float squares = 0.0F;
    Team::over_row(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, x + row * columns + c);
      for (int e = 0; e < count.value; ++e) {
        sum += a[e];
        squares += a[e] * a[e];
      }
    });
    sum = Team::reduced(sum, Add());
    if (squares_too) squares = Team::reduced(squares, Add());
    if (!mine || !Team::first()) return;
    if (squares_too) {
      out[2 * row] = sum;
      out[2 * row + 1] = squares;
    } else {
      out[row] = sum;
    }
  }
};

/// Maps a float and its column to an integer with the same order; among equal floats the lower
/// column has the larger key.
FORESHARD_DEVICE std::uint64_t key_of(float value, std::int64_t column) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  bits = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{bits} << 32U | (0xffffffffU - static_cast<std::uint32_t>(column));
}
FORESHARD_DEVICE float value_of(std::uint64_t key) {
  auto bits = static_cast<std::uint32_t>(key >> 32U);
  bits = (bits & 0x80000000U) != 0 ? bits & 0x7fffffffU : ~bits;
  float value = 0;
  memcpy(&value, &bits, sizeof(bits));
  return value;
}

/// Each round takes the largest number below the previous round's; rows are read again from the
/// cache.
template <class T>
struct TopK {
  const T* x;
  float* out;
  std::int64_t columns;
  template <class Team>
  FORESHARD_DEVICE void run(std::int64_t row, bool mine) const {
    std::uint64_t below = ~std::uint64_t{0};
    for (int k = 0; k < kTopK; ++k) {
      std::uint64_t best = 0;
      Team::over_row(columns, [&](auto count, std::int64_t c) {
        float a[count.value];
        load(a, x + row * columns + c);
        for (int e = 0; e < count.value; ++e) {
          const std::uint64_t key = key_of(a[e], c + e);
          if (key < below && key > best) best = key;
        }
      });
      best = Team::reduced(best, Larger());
      if (mine && Team::first()) {
        const auto column = 0xffffffffU - static_cast<std::uint32_t>(best);
        float* to = out + (row * kTopK + k) * 2;
        to[0] = best == 0 ? kLowest : value_of(best);
        to[1] = best == 0 ? -1.0F : static_cast<float>(column);
      }
      below = best;
    }
  }
};

/// Backward of y = (x - mean) s gamma + beta, s = 1 / deviation, h = (x - mean) s:
///   dx = s (gamma dy - mean(gamma dy) - h mean(gamma dy h)).
/// An RMS norm has neither mean(gamma dy) nor beta. The parameters' gradients are the sums of dy h,
/// then of dy, over rows; each executor computes these sums of columns in its own way.
struct NormBackward {
  float mean;   ///< The mean; 0 for an RMS norm.
  float scale;  ///< s = 1 / deviation.
  FORESHARD_DEVICE float normal(float x) const { return (x - mean) * scale; }
  FORESHARD_DEVICE float input(float weighted, float x, float sum, float along) const {
    return scale * (weighted - sum - normal(x) * along);
  }
};

/// Calls use(body) for a pass over rows of type T.
/// \param o  arrays in the order of arrays_of.
/// \return false if the pass is none of these.
/// \pre rows and columns are positive.
template <class T, class Use>
bool with_rows(const Pass& p, std::span<void* const> o, Use use) {
  const auto at = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(o[i]); };
  switch (p.kind) {
    case PassKind::kLayerNormForward:
      use(LayerNorm<T>{at(0), at(1), fp32(2), at(3), p.columns});
      return true;
    case PassKind::kRmsNormForward:
      use(RmsNorm<T>{at(0), at(1), fp32(2), at(3), p.columns});
      return true;
    case PassKind::kSoftmaxForward:
    case PassKind::kLongSoftmaxForward:
      use(Softmax<T>{at(0), at(1), p.columns});
      return true;
    case PassKind::kSoftmaxBackward:
    case PassKind::kLongSoftmaxBackward:
      use(SoftmaxBackward<T>{at(0), at(1), at(2), p.columns});
      return true;
    case PassKind::kCrossEntropyForward:
      use(CrossEntropy<T>{at(0), fp32(1), fp32(2), p.columns});
      return true;
    case PassKind::kReduce:
    case PassKind::kStatistics:
      use(RowSums<T>{at(0), fp32(1), p.columns, p.kind == PassKind::kStatistics});
      return true;
    case PassKind::kTopK:
      use(TopK<T>{at(0), fp32(1), p.columns});
      return true;
    default:
      return false;
  }
}

}  // namespace foreshard::replay
