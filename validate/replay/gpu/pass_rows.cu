// Passes that reduce rows: norms, softmax, cross entropy, sums, the largest few.
#include <algorithm>

#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/operands.h"
#include "validate/replay/gpu/passes.h"

namespace foreshard::replay::gpu {
namespace {

constexpr float kEpsilon = 1e-5F;

// What of a row a group of threads needs: which it is, and whether it exists (threads of a last,
// incomplete block reduce the last row once more, and write nothing).
struct Row {
  std::int64_t number;
  bool mine;
};
template <int kGroup>
FORESHARD_DEVICE Row row_of(std::int64_t rows) {
  const std::int64_t number =
      std::int64_t{blockIdx.x} * (kThreads / kGroup) + static_cast<int>(threadIdx.x) / kGroup;
  return {number < rows ? number : rows - 1, number < rows};
}
template <int kGroup>
FORESHARD_DEVICE bool first_lane() {
  return static_cast<int>(threadIdx.x) % kGroup == 0;
}

// y = (x - mean) / deviation * gamma + beta; statistics: mean, 1 / deviation. The sums are of
// x - x0, which keeps rows of a large mean exact.
template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    layer_norm(const T* x, T* y, float* statistics, const T* parameters, std::int64_t rows,
               std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  const T* from = x + row.number * columns;
  const auto shift = static_cast<float>(from[0]);
  float sum = 0.0F;
  float squares = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) {
      const float d = a[e] - shift;
      sum += d;
      squares += d * d;
    }
  });
  sum = reduced<kGroup>(sum, Add());
  squares = reduced<kGroup>(squares, Add());
  const auto n = static_cast<float>(columns);
  const float mean = sum / n;
  const float variance = squares / n - mean * mean;
  const float scale = reciprocal_root((variance > 0.0F ? variance : 0.0F) + kEpsilon);
  if (!row.mine) return;
  if (first_lane<kGroup>()) {
    statistics[2 * row.number] = mean + shift;
    statistics[2 * row.number + 1] = scale;
  }
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    float gamma[count.value];
    float beta[count.value];
    load(a, from + c);
    load(gamma, parameters + c);
    load(beta, parameters + columns + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) a[e] = (a[e] - shift - mean) * scale * gamma[e] + beta[e];
    store(y + row.number * columns + c, a);
  });
}

// y = x / sqrt(mean of squares) * gamma. Source: Zhang and Sennrich, "Root Mean Square Layer
// Normalization" (2019).
template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    rms_norm(const T* x, T* y, float* statistics, const T* parameters, std::int64_t rows,
             std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  const T* from = x + row.number * columns;
  float squares = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) squares += a[e] * a[e];
  });
  squares = reduced<kGroup>(squares, Add());
  const float scale = reciprocal_root(squares / static_cast<float>(columns) + kEpsilon);
  if (!row.mine) return;
  if (first_lane<kGroup>()) {
    statistics[2 * row.number] = 0.0F;
    statistics[2 * row.number + 1] = scale;
  }
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    float gamma[count.value];
    load(a, from + c);
    load(gamma, parameters + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) a[e] *= scale * gamma[e];
    store(y + row.number * columns + c, a);
  });
}

// Scale 1/8 (heads of 64), causal mask: row r of a square block sees columns up to r modulo the
// columns. Source: Megatron-LM's scaled_upper_triang_masked_softmax does the same to scores.
constexpr float kScoreScale = 0.125F;

template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    softmax(const T* x, T* y, std::int64_t rows, std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  const T* from = x + row.number * columns;
  const std::int64_t last = row.number % columns;
  float largest = kLowest;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e)
      if (c + e <= last) largest = fmaxf(largest, a[e] * kScoreScale);
  });
  largest = reduced<kGroup>(largest, Larger());
  float sum = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e)
      if (c + e <= last) sum += exponential(a[e] * kScoreScale - largest);
  });
  sum = reduced<kGroup>(sum, Add());
  if (!row.mine) return;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e)
      a[e] = c + e <= last ? exponential(a[e] * kScoreScale - largest) / sum : 0.0F;
    store(y + row.number * columns + c, a);
  });
}

// dx = scale y (dy - sum(y dy)).
template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    softmax_backward(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  const std::int64_t base = row.number * columns;
  float sum = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float d[count.value];
    float a[count.value];
    load(d, dy + base + c);
    load(a, y + base + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) sum += d[e] * a[e];
  });
  sum = reduced<kGroup>(sum, Add());
  if (!row.mine) return;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float d[count.value];
    float a[count.value];
    load(d, dy + base + c);
    load(a, y + base + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) a[e] *= kScoreScale * (d[e] - sum);
    store(dx + base + c, a);
  });
}

// The softmax in fp32, and -log of the target's (row modulo vocabulary).
template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    cross_entropy(const T* logits, float* probabilities, float* losses, std::int64_t rows,
                  std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  const T* from = logits + row.number * columns;
  // Maximum and sum of exponentials in one reading: the sum is rescaled when the maximum grows.
  float largest = kLowest;
  float sum = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
    float top = a[0];
#pragma unroll
    for (int e = 1; e < count.value; ++e) top = fmaxf(top, a[e]);
    if (top > largest) {
      sum *= exponential(largest - top);
      largest = top;
    }
#pragma unroll
    for (int e = 0; e < count.value; ++e) sum += exponential(a[e] - largest);
  });
  const float top = reduced<kGroup>(largest, Larger());
  sum = reduced<kGroup>(sum * exponential(largest - top), Add());
  if (!row.mine) return;
  if (first_lane<kGroup>())
    losses[row.number] = logf(sum) + top - static_cast<float>(from[row.number % columns]);
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, from + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) a[e] = exponential(a[e] - top) / sum;
    store(probabilities + row.number * columns + c, a);
  });
}

template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    row_sums(const T* x, float* out, std::int64_t rows, std::int64_t columns, bool squares_too) {
  const Row row = row_of<kGroup>(rows);
  float sum = 0.0F;
  float squares = 0.0F;
  over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
    float a[count.value];
    load(a, x + row.number * columns + c);
#pragma unroll
    for (int e = 0; e < count.value; ++e) {
      sum += a[e];
      squares += a[e] * a[e];
    }
  });
  sum = reduced<kGroup>(sum, Add());
  if (squares_too) squares = reduced<kGroup>(squares, Add());
  if (!row.mine || !first_lane<kGroup>()) return;
  if (squares_too) {
    out[2 * row.number] = sum;
    out[2 * row.number + 1] = squares;
  } else {
    out[row.number] = sum;
  }
}

// An order of floats as one of integers, the lower column first among equals.
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

// Each round takes the largest below the last one; rows are read again from the cache.
template <class T, int kGroup>
__global__ void __launch_bounds__(kThreads)
    top_k(const T* x, float* out, std::int64_t rows, std::int64_t columns) {
  const Row row = row_of<kGroup>(rows);
  std::uint64_t below = ~std::uint64_t{0};
  for (int k = 0; k < kTopK; ++k) {
    std::uint64_t best = 0;
    over_row<kGroup>(columns, [&](auto count, std::int64_t c) {
      float a[count.value];
      load(a, x + row.number * columns + c);
#pragma unroll
      for (int e = 0; e < count.value; ++e) {
        const std::uint64_t key = key_of(a[e], c + e);
        if (key < below && key > best) best = key;
      }
    });
    best = reduced<kGroup>(best, Larger());
    if (row.mine && first_lane<kGroup>()) {
      const auto column = 0xffffffffU - static_cast<std::uint32_t>(best);
      float* to = out + (row.number * kTopK + k) * 2;
      to[0] = best == 0 ? kLowest : value_of(best);
      to[1] = best == 0 ? -1.0F : static_cast<float>(column);
    }
    below = best;
  }
}

template <class T, int kGroup>
cudaError_t launch_for(const Pass& p, std::span<void* const> o, cudaStream_t stream) {
  constexpr std::int64_t kRows = kThreads / kGroup;
  const dim3 grid(static_cast<unsigned>((p.rows + kRows - 1) / kRows));
  const auto in = [&](std::size_t i) { return static_cast<const T*>(o[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(o[i]); };
  switch (p.kind) {
    case PassKind::kLayerNormForward:
      return launch(layer_norm<T, kGroup>, grid, kThreads, 0, stream, in(0), out(1), fp32(2), in(3),
                    p.rows, p.columns);
    case PassKind::kRmsNormForward:
      return launch(rms_norm<T, kGroup>, grid, kThreads, 0, stream, in(0), out(1), fp32(2), in(3),
                    p.rows, p.columns);
    case PassKind::kSoftmaxForward:
      return launch(softmax<T, kGroup>, grid, kThreads, 0, stream, in(0), out(1), p.rows,
                    p.columns);
    case PassKind::kSoftmaxBackward:
      return launch(softmax_backward<T, kGroup>, grid, kThreads, 0, stream, in(0), in(1), out(2),
                    p.rows, p.columns);
    case PassKind::kCrossEntropyForward:
      return launch(cross_entropy<T, kGroup>, grid, kThreads, 0, stream, in(0), fp32(1), fp32(2),
                    p.rows, p.columns);
    case PassKind::kReduce:
    case PassKind::kStatistics:
      return launch(row_sums<T, kGroup>, grid, kThreads, 0, stream, in(0), fp32(1), p.rows,
                    p.columns, p.kind == PassKind::kStatistics);
    case PassKind::kTopK:
      return launch(top_k<T, kGroup>, grid, kThreads, 0, stream, in(0), fp32(1), p.rows, p.columns);
    default:
      return cudaErrorInvalidValue;
  }
}

template <class T>
cudaError_t launch_as(const Pass& p, std::span<void* const> o, cudaStream_t stream) {
  if (p.columns <= 64) return launch_for<T, 4>(p, o, stream);
  if (p.columns <= 1024) return launch_for<T, 32>(p, o, stream);
  return launch_for<T, kThreads>(p, o, stream);
}

}  // namespace

cudaError_t internal::launch_rows(const Pass& pass, std::span<void* const> operands,
                                  cudaStream_t stream) {
  return with_floating_type(pass.dtype, [&]<class T>(std::type_identity<T>) {
    return launch_as<T>(pass, operands, stream);
  });
}

}  // namespace foreshard::replay::gpu
