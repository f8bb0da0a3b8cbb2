// Passes that reduce columns or the whole array, and the transposition.
#include <algorithm>

#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/passes.h"
#include "validate/replay/pass/rows.h"

namespace foreshard::replay::gpu {
namespace {

// own[column] += values, in shared memory. Packs are stored as quads (place_of_quad), single
// columns in their own order. Only the thread that owns the columns calls it.
template <int kCount>
FORESHARD_DEVICE void gather(float* own, std::int64_t columns, std::int64_t c,
                             const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    own[c] += values[0];
  } else {
#pragma unroll
    for (int q = 0; q < kCount / kQuad; ++q) {
      float* quad = own + place_of_quad(c / kQuad + q, columns);
      float sum[kQuad];
      load(sum, quad);
#pragma unroll
      for (int e = 0; e < kQuad; ++e) sum[e] += values[q * kQuad + e];
      store(quad, sum);
    }
  }
}

// sums[column] += own[column], with the 32 lanes of a warp on 32 neighbouring columns. With packs,
// a warp reads 32 quads, and lane l adds columns l, 32 + l, 64 + l and 96 + l of them: column 32 j
// + l is number l % 4 of the quad of lane 8 j + l / 4.
// \pre all threads of the block have gathered.
template <int kCount>
FORESHARD_DEVICE void hand_over(const float* own, float* sums, std::int64_t columns) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  if constexpr (kCount == 1) {
    over_packs<kThreads, 1>(columns, [&](std::int64_t c) { atomicAdd(sums + c, own[c]); });
  } else {
    const std::int64_t quads = columns / kQuad;
    for (std::int64_t first = thread - lane; first < quads; first += kThreads) {
      float mine[kQuad] = {};
      if (first + lane < quads) load(mine, own + place_of_quad(first + lane, columns));
#pragma unroll
      for (int j = 0; j < kQuad; ++j) {
        float value = 0.0F;
#pragma unroll
        for (int e = 0; e < kQuad; ++e) {
          const float other = __shfl_sync(0xffffffffU, mine[e], 8 * j + lane / kQuad);
          if (lane % kQuad == e) value = other;
        }
        const std::int64_t c = first * kQuad + 32L * j + lane;
        if (c < columns) atomicAdd(sums + c, value);
      }
    }
  }
}

// NormBackward. The threads that own the columns sum the parameters' gradients in shared memory;
// each block then adds its sums to the result once.
template <class T, bool kCentred, int kCount>
__global__ void __launch_bounds__(kThreads)
    norm_backward(const T* dy, const T* x, T* dx, const float* statistics, const T* parameters,
                  float* gradients, std::int64_t rows, std::int64_t columns) {
  auto* own = reinterpret_cast<float*>(shared_memory());
  constexpr int kAtOnce = std::min(kCount, kQuad);
  over_packs<kThreads, kAtOnce>(kCentred ? 2 * columns : columns, [&](std::int64_t c) {
    const float zeros[kAtOnce] = {};
    store(own + c, zeros);
  });
  __syncthreads();
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const NormBackward norm{kCentred ? statistics[2 * row] : 0.0F, statistics[2 * row + 1]};
    const std::int64_t base = row * columns;
    float sum = 0.0F;
    float along = 0.0F;
    over_packs<kThreads, kCount>(columns, [&](std::int64_t c) {
      float d[kCount];
      float a[kCount];
      float gamma[kCount];
      load(d, dy + base + c);
      load(a, x + base + c);
      load(gamma, parameters + c);
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        a[e] = d[e] * norm.normal(a[e]);
        sum += d[e] * gamma[e];
        along += a[e] * gamma[e];
      }
      gather(own, columns, c, a);
      if constexpr (kCentred) gather(own + columns, columns, c, d);
    });
    const auto n = static_cast<float>(columns);
    sum = kCentred ? reduced<kThreads>(sum, Add()) / n : 0.0F;
    along = reduced<kThreads>(along, Add()) / n;
    over_packs<kThreads, kCount>(columns, [&](std::int64_t c) {
      float d[kCount];
      float a[kCount];
      float gamma[kCount];
      load(d, dy + base + c);
      load(a, x + base + c);
      load(gamma, parameters + c);
#pragma unroll
      for (int e = 0; e < kCount; ++e) a[e] = norm.input(d[e] * gamma[e], a[e], sum, along);
      store_chunks(dx + base + c, a);
    });
  }
  __syncthreads();
  hand_over<kCount>(own, gradients, columns);
  if constexpr (kCentred) hand_over<kCount>(own + columns, gradients + columns, columns);
}

// Sums of columns. A block takes 32 kPack columns: its lanes take neighbouring columns, its warps
// take rows. The rows are divided among gridDim.y blocks.
template <class T>
__global__ void __launch_bounds__(kThreads)
    column_sums(const T* x, float* sums, std::int64_t rows, std::int64_t columns) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float of_warp[kWarps][32 * kPack];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool packs = columns % kPack == 0;
  const std::int64_t first = std::int64_t{blockIdx.x} * 32 * kPack;
  float sum[kPack] = {};
  for (std::int64_t row = std::int64_t{blockIdx.y} * kWarps + warp; row < rows;
       row += std::int64_t{gridDim.y} * kWarps) {
    const T* from = x + row * columns;
    if (packs) {
      const std::int64_t c = first + std::int64_t{lane} * kPack;
      if (c >= columns) continue;
      float a[kPack];
      load(a, from + c);
#pragma unroll
      for (int e = 0; e < kPack; ++e) sum[e] += a[e];
    } else {
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        const std::int64_t c = first + std::int64_t{e} * 32 + lane;
        if (c < columns) sum[e] += static_cast<float>(from[c]);
      }
    }
  }
#pragma unroll
  for (int e = 0; e < kPack; ++e) of_warp[warp][packs ? lane * kPack + e : e * 32 + lane] = sum[e];
  __syncthreads();
  const std::int64_t c = first + threadIdx.x;
  if (c >= columns) return;
  float total = 0.0F;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += of_warp[w][threadIdx.x];
  atomicAdd(sums + c, total);
}
static_assert(32 * kPack == kThreads);

// A block takes one tile; the padding keeps its columns in different banks.
constexpr int kTile = 32;
template <class T>
__global__ void __launch_bounds__(kThreads)
    transpose(const T* x, T* y, std::int64_t rows, std::int64_t columns, std::int64_t across) {
  __shared__ T tile[kTile][kTile + 1];
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int first = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t row0 = std::int64_t{blockIdx.x} / across * kTile;
  const std::int64_t column0 = std::int64_t{blockIdx.x} % across * kTile;
  for (int r = first; r < kTile; r += kThreads / kTile)
    if (row0 + r < rows && column0 + lane < columns)
      tile[r][lane] = x[(row0 + r) * columns + column0 + lane];
  __syncthreads();
  for (int c = first; c < kTile; c += kThreads / kTile)
    if (column0 + c < columns && row0 + lane < rows)
      y[(column0 + c) * rows + row0 + lane] = tile[lane][c];
}

__global__ void __launch_bounds__(kThreads)
    sum_of_squares(const float* x, float* sum, std::int64_t n) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  float own = 0.0F;
  for (std::int64_t p = thread; p < n / kPack; p += stride) {
    float a[kPack];
    load(a, x + p * kPack);
#pragma unroll
    for (int e = 0; e < kPack; ++e) own += a[e] * a[e];
  }
  for (std::int64_t i = n / kPack * kPack + thread; i < n; i += stride) own += x[i] * x[i];
  own = reduced<kThreads>(own, Add());
  if (threadIdx.x == 0) atomicAdd(sum, own);
}

// A few more blocks than a device with 132 to 160 multiprocessors runs at once.
constexpr std::int64_t kResident = 1024;

template <class T>
cudaError_t launch_as(const Pass& p, std::span<void* const> o, cudaStream_t stream) {
  const std::int64_t n = p.rows * p.columns;
  const auto in = [&](std::size_t i) { return static_cast<const T*>(o[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(o[i]); };
  const auto blocks = [](std::int64_t count) { return static_cast<unsigned>(count); };
  switch (p.kind) {
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward: {
      const bool centred = p.kind == PassKind::kLayerNormBackward;
      const std::size_t shared =
          (centred ? 2 : 1) * sizeof(float) * static_cast<std::size_t>(p.columns);
      const unsigned grid = blocks(std::min(p.rows, kResident / 2));
      const auto run = [&](auto kernel) {
        return launch(kernel, dim3(grid), kThreads, shared, stream, in(0), in(1), out(2), fp32(3),
                      in(4), fp32(5), p.rows, p.columns);
      };
      if (p.columns % kPack == 0)
        return centred ? run(norm_backward<T, true, kPack>) : run(norm_backward<T, false, kPack>);
      return centred ? run(norm_backward<T, true, 1>) : run(norm_backward<T, false, 1>);
    }
    case PassKind::kBiasGradient: {
      constexpr std::int64_t kColumns = std::int64_t{32} * kPack;  // columns per block
      const std::int64_t across = (p.columns + kColumns - 1) / kColumns;
      const std::int64_t down = std::clamp<std::int64_t>(
          kResident / across, 1, std::min<std::int64_t>((p.rows + 63) / 64, 65535));
      return launch(column_sums<T>, dim3(blocks(across), blocks(down)), kThreads, 0, stream, in(0),
                    fp32(1), p.rows, p.columns);
    }
    case PassKind::kTranspose: {
      const std::int64_t across = (p.columns + kTile - 1) / kTile;
      const std::int64_t down = (p.rows + kTile - 1) / kTile;
      return launch(transpose<T>, dim3(blocks(across * down)), kThreads, 0, stream, in(0), out(1),
                    p.rows, p.columns, across);
    }
    case PassKind::kGradientNorm: {
      const std::int64_t packs = std::max<std::int64_t>(1, n / kPack / kThreads);
      return launch(sum_of_squares, dim3(blocks(std::min(packs, 2 * kResident))), kThreads, 0,
                    stream, static_cast<const float*>(o[0]), fp32(1), n);
    }
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t internal::launch_columns(const Pass& pass, std::span<void* const> operands,
                                     cudaStream_t stream) {
  return with_floating_type(pass.dtype, [&]<class T>(std::type_identity<T>) {
    return launch_as<T>(pass, operands, stream);
  });
}

}  // namespace foreshard::replay::gpu
