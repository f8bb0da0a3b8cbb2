// The backward pass. A block takes 64 keys of a head and loops over the queries that see them, 64
// at a time, for all query heads that share the key head. dK and dV stay in registers; dQ is summed
// in memory.
#include "validate/replay/gpu/attention_tiles.h"
#include "validate/replay/gpu/numbers.h"

namespace foreshard::replay::gpu {
namespace {

// Offsets within a tile are small enough for 32 bits.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

constexpr int kSide = 64;  // Queries, and keys, per tile.
constexpr float kLog2E = 1.4426950408889634F;

template <class T, int kDimension>
struct BackwardTiles {
  static constexpr int kStride = kDimension + kPadding;
  static constexpr int kScoreStride = kSide + kPadding;
  T key[kSide * kStride];
  T value[kSide * kStride];
  T query[2][kSide * kStride];
  T d_out[2][kSide * kStride];
  T probability[kSide * kScoreStride];
  T d_score[kSide * kScoreStride];
};

// Sums of dO O over each row. Each warp takes one query of one head.
template <class T>
__global__ void __launch_bounds__(kAttentionThreads)
    output_sums(const T* o, const T* d_out, float* sums, AttentionShape shape,
                std::int64_t sequences) {
  const std::int64_t rows = sequences * shape.query_length * shape.query_heads;
  const std::int64_t number =
      std::int64_t{blockIdx.x} * (kAttentionThreads / 32) + threadIdx.x / 32;
  const std::int64_t row = number < rows ? number : rows - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0.0F;
  for (int d = lane; d < shape.dimension; d += 32)
    sum += static_cast<float>(o[row * shape.dimension + d]) *
           static_cast<float>(d_out[row * shape.dimension + d]);
  sum = reduced<32>(sum, Add());
  if (lane != 0 || number >= rows) return;
  const std::int64_t position = row / shape.query_heads;  // index over all sequences
  sums[(position / shape.query_length * shape.query_heads + row % shape.query_heads) *
           shape.query_length +
       position % shape.query_length] = sum;
}

template <class T, int kDimension>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    attention_backward(const T* q, const T* k, const T* v, const T* d_out, const float* logarithms,
                       const float* sums, float* d_query, T* d_key, T* d_value,
                       AttentionShape shape) {
  using Tiles = BackwardTiles<T, kDimension>;
  constexpr int kStride = Tiles::kStride;
  constexpr int kScoreStride = Tiles::kScoreStride;
  constexpr int kColumns = kDimension / 16;  // fragments of half the width
  auto& tiles = *reinterpret_cast<Tiles*>(shared_memory());
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int tile_row = warp / 2 * 16;  // the warp's 16 rows of every product
  const int half = warp % 2;           // and which half of its columns
  const int kv_head = static_cast<int>(blockIdx.y);
  const std::int64_t batch = blockIdx.z;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * kSide;
  const int group = shape.query_heads / shape.kv_heads;

  const std::int64_t all_blocks = (shape.query_length + kSide - 1) / kSide;
  std::int64_t first_block = 0;
  if (shape.causal) {
    const std::int64_t first_query = first_key - (shape.key_length - shape.query_length);
    if (first_query > 0) first_block = first_query / kSide;
    if (first_block > all_blocks) first_block = all_blocks;
  }
  const std::int64_t blocks = all_blocks - first_block;
  const std::int64_t steps = blocks * group;
  const auto fetch = [&](std::int64_t step) {
    const int head = kv_head * group + static_cast<int>(step / blocks);
    const std::int64_t first = (first_block + step % blocks) * kSide;
    load_rows<T, kDimension, kSide>(tiles.query[step % 2], q, batch, shape.query_length,
                                    shape.query_heads, head, shape.dimension, first);
    load_rows<T, kDimension, kSide>(tiles.d_out[step % 2], d_out, batch, shape.query_length,
                                    shape.query_heads, head, shape.dimension, first);
  };
  load_rows<T, kDimension, kSide>(tiles.key, k, batch, shape.key_length, shape.kv_heads, kv_head,
                                  shape.dimension, first_key);
  load_rows<T, kDimension, kSide>(tiles.value, v, batch, shape.key_length, shape.kv_heads, kv_head,
                                  shape.dimension, first_key);
  if (steps > 0) fetch(0);
  copies_issued();

  float dk[kColumns][4] = {};
  float dv[kColumns][4] = {};
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step + 1 < steps) fetch(step + 1);
    copies_issued();
    copies_done<1>();
    __syncthreads();
    const T* query = tiles.query[step % 2];
    const T* d_output = tiles.d_out[step % 2];
    const int head = kv_head * group + static_cast<int>(step / blocks);
    const std::int64_t row = (first_block + step % blocks) * kSide + tile_row + lane / 4;
    float logarithm[2];
    float sum[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool valid = row + r * 8 < shape.query_length;
      const std::int64_t at = (batch * shape.query_heads + head) * shape.query_length + row + r * 8;
      logarithm[r] = valid ? logarithms[at] * kLog2E : INFINITY;
      sum[r] = valid ? sums[at] : 0.0F;
    }

    // Scores and dP: each warp takes 16 queries by 32 keys.
    float score[4][4] = {};
    float dp[4][4] = {};
#pragma unroll
    for (int d = 0; d < kDimension / 16; ++d) {
      std::uint32_t a[4];
      std::uint32_t b[4];
      left<kStride>(a, query, tile_row, d * 16);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        right_transposed<kStride>(b, tiles.key, d * 16, half * 32 + n * 16);
        multiply<T>(score[2 * n], a, b[0], b[1]);
        multiply<T>(score[2 * n + 1], a, b[2], b[3]);
      }
      left<kStride>(a, d_output, tile_row, d * 16);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        right_transposed<kStride>(b, tiles.value, d * 16, half * 32 + n * 16);
        multiply<T>(dp[2 * n], a, b[0], b[1]);
        multiply<T>(dp[2 * n + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int column = half * 32 + n * 8 + lane % 4 * 2;
        float p[2];
        float ds[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const bool seen = shape.sees(row + r * 8, first_key + column + i);
          p[i] =
              seen ? power_of_two(score[n][2 * r + i] * shape.scale * kLog2E - logarithm[r]) : 0.0F;
          ds[i] = p[i] * (dp[n][2 * r + i] - sum[r]);
        }
        const int at = (tile_row + lane / 4 + r * 8) * kScoreStride + column;
        *reinterpret_cast<std::uint32_t*>(tiles.probability + at) = packed<T>(p[0], p[1]);
        *reinterpret_cast<std::uint32_t*>(tiles.d_score + at) = packed<T>(ds[0], ds[1]);
      }
    __syncthreads();

    // dV += P^T dO and dK += dS^T Q: each warp takes 16 keys by half the width.
#pragma unroll
    for (int s = 0; s < kSide / 16; ++s) {
      std::uint32_t a[4];
      std::uint32_t b[4];
      left_transposed<kScoreStride>(a, tiles.probability, tile_row, s * 16);
#pragma unroll
      for (int c = 0; c < kColumns / 2; ++c) {
        right<kStride>(b, d_output, s * 16, half * (kDimension / 2) + c * 16);
        multiply<T>(dv[2 * c], a, b[0], b[1]);
        multiply<T>(dv[2 * c + 1], a, b[2], b[3]);
      }
      left_transposed<kScoreStride>(a, tiles.d_score, tile_row, s * 16);
#pragma unroll
      for (int c = 0; c < kColumns / 2; ++c) {
        right<kStride>(b, query, s * 16, half * (kDimension / 2) + c * 16);
        multiply<T>(dk[2 * c], a, b[0], b[1]);
        multiply<T>(dk[2 * c + 1], a, b[2], b[3]);
      }
    }
    // dQ += dS K: each warp takes 16 queries by half the width.
    float dq[kColumns][4] = {};
#pragma unroll
    for (int s = 0; s < kSide / 16; ++s) {
      std::uint32_t a[4];
      std::uint32_t b[4];
      left<kScoreStride>(a, tiles.d_score, tile_row, s * 16);
#pragma unroll
      for (int c = 0; c < kColumns / 2; ++c) {
        right<kStride>(b, tiles.key, s * 16, half * (kDimension / 2) + c * 16);
        multiply<T>(dq[2 * c], a, b[0], b[1]);
        multiply<T>(dq[2 * c + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t query_row = row + i / 2 * 8;
        const int column = half * (kDimension / 2) + c * 8 + lane % 4 * 2 + i % 2;
        if (query_row < shape.query_length && column < shape.dimension)
          atomicAdd(d_query +
                        ((batch * shape.query_length + query_row) * shape.query_heads + head) *
                            shape.dimension +
                        column,
                    dq[c][i] * shape.scale);
      }
    __syncthreads();  // all warps have read this stage and the scores
  }
  copies_done<0>();

#pragma unroll
  for (int c = 0; c < kColumns; ++c)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int64_t key = first_key + tile_row + lane / 4 + r * 8;
      const int column = half * (kDimension / 2) + c * 8 + lane % 4 * 2;
      if (key >= shape.key_length || column >= shape.dimension) continue;
      const std::int64_t at =
          ((batch * shape.key_length + key) * shape.kv_heads + kv_head) * shape.dimension + column;
      *reinterpret_cast<std::uint32_t*>(d_key + at) =
          packed<T>(dk[c][2 * r] * shape.scale, dk[c][2 * r + 1] * shape.scale);
      *reinterpret_cast<std::uint32_t*>(d_value + at) = packed<T>(dv[c][2 * r], dv[c][2 * r + 1]);
    }
}

template <class T>
struct Narrow {
  const float* x;
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
    store(y + i, a);
  }
};

template <class T, int kDimension>
cudaError_t launch_as(const AttentionLaunch& a, cudaStream_t stream) {
  const AttentionShape& s = a.shape;
  const auto in = [&](std::size_t i) { return static_cast<const T*>(a.operands[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(a.operands[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(a.operands[i]); };
  const std::int64_t rows = a.batch * s.query_length * s.query_heads;
  const std::int64_t numbers = rows * s.dimension;
  cudaError_t status = launch(output_sums<T>, dim3(static_cast<unsigned>((rows + 7) / 8)),
                              kAttentionThreads, 0, stream, in(3), in(4), fp32(6), s, a.batch);
  if (status != cudaSuccess) return status;
  status =
      cudaMemsetAsync(a.operands[7], 0, static_cast<std::size_t>(numbers) * sizeof(float), stream);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>((s.key_length + kSide - 1) / kSide),
                  static_cast<unsigned>(s.kv_heads), static_cast<unsigned>(a.batch));
  status = launch(attention_backward<T, kDimension>, grid, kAttentionThreads,
                  sizeof(BackwardTiles<T, kDimension>), stream, in(0), in(1), in(2), in(4),
                  static_cast<const float*>(a.operands[5]),
                  static_cast<const float*>(a.operands[6]), fp32(7), out(9), out(10), s);
  if (status != cudaSuccess) return status;
  return map(Narrow<T>{fp32(7), out(8)}, numbers, true, stream);
}

}  // namespace

cudaError_t launch_attention_backward(const AttentionLaunch& a, cudaStream_t stream) {
  if (a.half)
    return a.shape.dimension <= 64 ? launch_as<__half, 64>(a, stream)
                                   : launch_as<__half, 128>(a, stream);
  return a.shape.dimension <= 64 ? launch_as<__nv_bfloat16, 64>(a, stream)
                                 : launch_as<__nv_bfloat16, 128>(a, stream);
}

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)

}  // namespace foreshard::replay::gpu
