// The forward pass of attention, which launch_attention (attention.cc) launches for the replay and
// attention_backward.cu continues. A thread block takes 128 queries of a head, 16 per warp, and
// loops over the keys, 64 at a time; the next keys and values are loaded while it computes. Lengths
// are tokens, sizes of tiles elements. A query that sees no key gets zeros. attention_fault() has
// refused the shapes that this cannot compute (heads wider than 128, or no multiple of 8).
#include "validate/replay/gpu/attention_tiles.h"

namespace foreshard::replay::gpu {
namespace {

// Offsets within a tile are small enough for 32 bits.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

constexpr int kQueries = 128;  // of a thread block
constexpr int kKeys = 64;      // of a turn of its loop: a block of keys
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

template <class T, int kDimension>
struct ForwardTiles {
  static constexpr int kStride = kDimension + kPadding;
  T query[kQueries * kStride];
  T key[2][kKeys * kStride];
  T value[2][kKeys * kStride];
};

// `logarithms`: per head and query, the natural logarithm of the sum of the exponentials of its
// scores, from which the backward pass computes probabilities anew.
template <class T, int kDimension>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    attention_forward(const T* q, const T* k, const T* v, T* o, float* logarithms,
                      AttentionShape shape) {
  using Tiles = ForwardTiles<T, kDimension>;
  constexpr int kStride = Tiles::kStride;
  constexpr int kColumns = kDimension / 8;  // fragments, of 8 elements, of the output's width
  constexpr int kScores = kKeys / 8;        // fragments of the scores of a block of keys
  auto& tiles = *reinterpret_cast<Tiles*>(shared_memory());
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y);
  const int kv_head = head / (shape.query_heads / shape.kv_heads);
  const std::int64_t batch = blockIdx.z;
  // With a causal mask, the last queries see the most keys, so they begin first.
  const std::int64_t first = std::int64_t{gridDim.x - 1 - blockIdx.x} * kQueries;

  std::int64_t blocks = (shape.key_length + kKeys - 1) / kKeys;
  if (shape.causal) {
    const std::int64_t last = first + kQueries - 1 + shape.key_length - shape.query_length;
    const std::int64_t visible = last < 0 ? 0 : last / kKeys + 1;
    if (visible < blocks) blocks = visible;
  }
  const auto fetch = [&](std::int64_t block) {
    const int buffer = static_cast<int>(block % 2);
    load_rows<T, kDimension, kKeys>(tiles.key[buffer], k, batch, shape.key_length, shape.kv_heads,
                                    kv_head, shape.dimension, block * kKeys);
    load_rows<T, kDimension, kKeys>(tiles.value[buffer], v, batch, shape.key_length, shape.kv_heads,
                                    kv_head, shape.dimension, block * kKeys);
  };
  load_rows<T, kDimension, kQueries>(tiles.query, q, batch, shape.query_length, shape.query_heads,
                                     head, shape.dimension, first);
  copies_issued();
  if (blocks > 0) fetch(0);
  copies_issued();
  copies_done<1>();
  __syncthreads();

  std::uint32_t query[kDimension / 16][4];
#pragma unroll
  for (int d = 0; d < kDimension / 16; ++d) left<kStride>(query[d], tiles.query, warp * 16, d * 16);

  const std::int64_t row = first + warp * 16 + lane / 4;  // a thread has this row and row + 8
  const float scale = shape.scale * kLog2E;
  float out[kColumns][4] = {};
  // The online softmax: the largest score of each row so far, times log2(e), and the sum of
  // 2^(score - largest). Where a block of keys has a larger score, `sum` and `out` shrink.
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (block + 1 < blocks) fetch(block + 1);
    copies_issued();
    copies_done<1>();
    __syncthreads();
    const T* keys = tiles.key[block % 2];
    const T* values = tiles.value[block % 2];

    float score[kScores][4] = {};
#pragma unroll
    for (int d = 0; d < kDimension / 16; ++d)
#pragma unroll
      for (int n = 0; n < kScores / 2; ++n) {
        std::uint32_t b[4];
        right_transposed<kStride>(b, keys, d * 16, n * 16);
        multiply<T>(score[2 * n], query[d], b[0], b[1]);
        multiply<T>(score[2 * n + 1], query[d], b[2], b[3]);
      }

    const std::int64_t key = block * kKeys + lane % 4 * 2;
    const bool sees_all = shape.sees(first + warp * 16, block * kKeys + kKeys - 1);
    float top[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < kScores; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[n][i] *= scale;
        if (!sees_all && !shape.sees(row + i / 2 * 8, key + n * 8 + i % 2)) score[n][i] = -INFINITY;
        top[i / 2] = fmaxf(top[i / 2], score[n][i]);
      }
    float shrink[2];
    float base[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffU, top[r], 1));
      top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffU, top[r], 2));
      base[r] = top[r] == -INFINITY ? 0.0F : top[r];  // 0 for a row that sees nothing yet
      shrink[r] = power_of_two(largest[r] - base[r]);
      largest[r] = top[r];
      sum[r] *= shrink[r];
    }
#pragma unroll
    for (int n = 0; n < kScores; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[n][i] = power_of_two(score[n][i] - base[i / 2]);
        sum[i / 2] += score[n][i];
      }
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[c][i] *= shrink[i / 2];

        // The scores' fragments already have the layout of a left factor.
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      const std::uint32_t a[4] = {packed<T>(score[2 * n][0], score[2 * n][1]),
                                  packed<T>(score[2 * n][2], score[2 * n][3]),
                                  packed<T>(score[2 * n + 1][0], score[2 * n + 1][1]),
                                  packed<T>(score[2 * n + 1][2], score[2 * n + 1][3])};
#pragma unroll
      for (int c = 0; c < kColumns / 2; ++c) {
        std::uint32_t b[4];
        right<kStride>(b, values, n * 16, c * 16);
        multiply<T>(out[2 * c], a, b[0], b[1]);
        multiply<T>(out[2 * c + 1], a, b[2], b[3]);
      }
    }
    __syncthreads();  // all warps have read this buffer before it is filled again
  }
  copies_done<0>();

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(0xffffffffU, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffU, sum[r], 2);
    const bool nothing = !(sum[r] > 0.0F);  // the backward pass makes 0 of infinity
    if (lane % 4 == 0 && row + r * 8 < shape.query_length)
      logarithms[(batch * shape.query_heads + head) * shape.query_length + row + r * 8] =
          nothing ? INFINITY : largest[r] * kLn2 + logf(sum[r]);
    sum[r] = nothing ? 0.0F : 1.0F / sum[r];
  }
  // So that whole rows are stored, results go through the queries' tile, which no warp reads any
  // more.
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t word = packed<T>(out[c][2 * r] * sum[r], out[c][2 * r + 1] * sum[r]);
      T* to = tiles.query + (warp * 16 + lane / 4 + r * 8) * kStride + c * 8 + lane % 4 * 2;
      *reinterpret_cast<std::uint32_t*>(to) = word;
    }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kColumns; i += kAttentionThreads) {
    const std::int64_t query_row = first + i / kColumns;
    const int column = i % kColumns * 8;
    if (query_row >= shape.query_length || column >= shape.dimension) continue;
    T* to =
        o +
        ((batch * shape.query_length + query_row) * shape.query_heads + head) * shape.dimension +
        column;
    *reinterpret_cast<Chunk*>(to) =
        *reinterpret_cast<const Chunk*>(tiles.query + i / kColumns * kStride + column);
  }
}

template <class T, int kDimension>
cudaError_t launch_as(const AttentionLaunch& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((a.shape.query_length + kQueries - 1) / kQueries),
                  static_cast<unsigned>(a.shape.query_heads), static_cast<unsigned>(a.batch));
  return launch(attention_forward<T, kDimension>, grid, kAttentionThreads,
                sizeof(ForwardTiles<T, kDimension>), stream, static_cast<const T*>(a.operands[0]),
                static_cast<const T*>(a.operands[1]), static_cast<const T*>(a.operands[2]),
                static_cast<T*>(a.operands[3]), static_cast<float*>(a.operands[4]), a.shape);
}

}  // namespace

cudaError_t launch_attention_forward(const AttentionLaunch& a, cudaStream_t stream) {
  if (a.half)
    return a.shape.dimension <= 64 ? launch_as<__half, 64>(a, stream)
                                   : launch_as<__half, 128>(a, stream);
  return a.shape.dimension <= 64 ? launch_as<__nv_bfloat16, 64>(a, stream)
                                 : launch_as<__nv_bfloat16, 128>(a, stream);
}

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)

}  // namespace foreshard::replay::gpu
