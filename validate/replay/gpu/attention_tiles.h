/// \file
/// Tiles of attention in shared memory, and their loads as fragments for a warp's products. A
/// tile's rows are padded by 16 bytes, so that the eight rows that ldmatrix reads are in different
/// banks.
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "validate/replay/gpu/device.h"

namespace foreshard::replay::gpu {

constexpr int kAttentionThreads = 256;
constexpr int kPadding = 8;

/// Shape of the arrays, as passed to the kernels.
struct AttentionShape {
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  int query_heads = 0;
  int kv_heads = 0;
  int dimension = 0;
  bool causal = false;
  float scale = 0;  ///< 1 / sqrt(d)

  /// Whether the query may look at the key.
  FORESHARD_DEVICE bool sees(std::int64_t query, std::int64_t key) const {
    return key < key_length && (!causal || key <= query + key_length - query_length);
  }
};

/// Begins to copy rows first ... first + kRows - 1 of one head into a tile, with zeros beyond the
/// sequence's length and the head's dimension.
template <class T, int kDimension, int kRows>
FORESHARD_DEVICE void load_rows(T* tile, const T* array, std::int64_t batch, std::int64_t length,
                                int heads, int head, int dimension, std::int64_t first) {
  constexpr int kChunks = kDimension / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kAttentionThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    const bool valid = first + row < length && column < dimension;
    const T* from =
        valid ? array + ((batch * length + first + row) * heads + head) * dimension + column
              : array;
    copy_async(tile + row * (kDimension + kPadding) + column, from, valid);
  }
}

/// Loads a 16x16 fragment of the left factor from a tile that holds it row by row.
template <int kStride, class T>
FORESHARD_DEVICE void left(std::uint32_t (&a)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_tiles(a, tile + (row + lane % 16) * kStride + column + lane / 16 * 8);
}
/// Loads a 16x16 fragment of the left factor from a tile that holds its transpose.
template <int kStride, class T>
FORESHARD_DEVICE void left_transposed(std::uint32_t (&a)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_tiles_transposed(
      a, tile + (column + lane / 16 * 8 + lane % 8) * kStride + row + lane / 8 % 2 * 8);
}
/// Loads two 16x8 fragments of the right factor (16 x 16 from `row`, `column` on), b[0..1] and
/// b[2..3], from a tile that holds it row by row.
template <int kStride, class T>
FORESHARD_DEVICE void right(std::uint32_t (&b)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_tiles_transposed(b, tile + (row + lane % 16) * kStride + column + lane / 16 * 8);
}
/// Loads two 16x8 fragments of the right factor from a tile that holds its transpose.
template <int kStride, class T>
FORESHARD_DEVICE void right_transposed(std::uint32_t (&b)[4], const T* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_tiles(b, tile + (column + lane / 16 * 8 + lane % 8) * kStride + row + lane / 8 % 2 * 8);
}

/// Packs two numbers into one word, the first in the lower half.
template <class T>
FORESHARD_DEVICE std::uint32_t packed(float first, float second) {
  const T pair[2] = {T(first), T(second)};
  std::uint32_t word = 0;
  memcpy(&word, pair, sizeof(word));
  return word;
}

struct AttentionLaunch {
  AttentionShape shape{};
  std::int64_t batch = 1;
  bool half = false;  ///< True: fp16; false: bf16.
  std::span<void* const> operands{};
};
cudaError_t launch_attention_forward(const AttentionLaunch& attention, cudaStream_t stream);
cudaError_t launch_attention_backward(const AttentionLaunch& attention, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
