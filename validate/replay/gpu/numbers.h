/// \file
/// Helpers that kernels share: number types, reductions over threads, and the division of a row
/// among threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/gpu/device.h"
#include "validate/replay/pass/packs.h"

namespace foreshard::replay::gpu {

using Float8 = __nv_fp8_e4m3;

/// Calls f(std::type_identity<T>()), where T stores numbers of `dtype`, which is a floating-point
/// type (in_floating_point).
template <class F>
cudaError_t with_floating_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kFp32:
      return f(std::type_identity<float>());
    case DType::kFp16:
      return f(std::type_identity<__half>());
    case DType::kBf16:
      return f(std::type_identity<__nv_bfloat16>());
    case DType::kFp8:
      return f(std::type_identity<Float8>());
    default:
      return cudaErrorInvalidValue;
  }
}

constexpr int kThreads = 256;  ///< Threads per block.

/// Same as store(), but to global memory and with 16-byte accesses if the pack's size allows.
template <int kCount, class T>
FORESHARD_DEVICE void store_chunks(T* to, const float (&values)[kCount]) {
  const auto pack = packed<T>(values);
  if constexpr (sizeof(pack) % sizeof(Chunk) == 0) {
    constexpr std::size_t kChunks = sizeof(pack) / sizeof(Chunk);
    Chunk chunks[kChunks];
    memcpy(chunks, &pack, sizeof(pack));
#pragma unroll
    for (std::size_t i = 0; i < kChunks; ++i)
      write_chunk(reinterpret_cast<Chunk*>(to) + i, chunks[i]);
  } else {
    *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
  }
}

/// Reduces `value` over the `kGroup` neighbouring threads that work on one row; all of them call it
/// and get the result. kGroup is a power of two; kThreads: the whole block.
template <int kGroup, class T, class Combine>
FORESHARD_DEVICE T reduced(T value, Combine combine) {
  constexpr int kLanes = std::min(kGroup, 32);
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
  if constexpr (kGroup > 32) {
    static_assert(kGroup == kThreads);
    constexpr int kWarps = kThreads / 32;
    alignas(16) __shared__ T of_warp[kWarps];  // read 16 bytes at a time
    __syncthreads();                           // the numbers of the last call have been read
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) value = combine(value, of_warp[w]);
  }
  return value;
}

/// Calls f(column) for each pack of `kCount` columns of a row that belongs to this thread.
/// \pre kCount divides the columns.
template <int kGroup, int kCount, class F>
FORESHARD_DEVICE void over_packs(std::int64_t columns, F f) {
  constexpr std::int64_t kStep = std::int64_t{kGroup} * kCount;
  const int lane = static_cast<int>(threadIdx.x) % kGroup;
  for (std::int64_t c = std::int64_t{lane} * kCount; c < columns; c += kStep) f(c);
}

/// Calls f(std::integral_constant<int, n>, column) for each pack of a row that belongs to this
/// thread; a pack has n columns.
template <int kGroup, class F>
FORESHARD_DEVICE void over_row(std::int64_t columns, F f) {
  const auto each = [&]<int kCount>(std::integral_constant<int, kCount> count) {
    over_packs<kGroup, kCount>(columns, [&](std::int64_t c) { f(count, c); });
  };
  if (columns % kPack == 0)
    each(std::integral_constant<int, kPack>{});
  else
    each(std::integral_constant<int, 1>{});
}

constexpr int kQuad = 4;  ///< fp32 numbers per access to shared memory: 16 bytes.

/// Index in shared memory at which quad q of a row (columns 4 q to 4 q + 3) begins: all even quads
/// come first, then all odd ones. A thread has both quads of its pack. Shared memory has 32 banks
/// of 4 bytes and serves the 16-byte accesses of 8 threads at a time, which need 32 banks together.
/// In the row's own order the threads' quads would be 8 banks apart, so that two quads would share
/// each bank; in this order neighbours are 4 banks apart and there is no conflict.
/// Source: NVIDIA, "CUDA C++ Programming Guide", Shared Memory (32 banks of 32 bits, so 16 bytes
/// for each of 32 threads take four passes). That neighbouring threads share a pass is not
/// documented.
/// \pre kPack divides the columns.
FORESHARD_DEVICE std::int64_t place_of_quad(std::int64_t q, std::int64_t columns) {
  return q % 2 * (columns / 2) + q / 2 * kQuad;
}

template <class Body>
__global__ void __launch_bounds__(kThreads) map_kernel(Body body, std::int64_t n, bool packs) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t full = packs ? n / kPack : 0;
  for (std::int64_t p = thread; p < full; p += stride) body.template run<kPack>(p * kPack);
  for (std::int64_t i = full * kPack + thread; i < n; i += stride) body.template run<1>(i);
}

/// Runs `body` on the indices from 0 to n - 1.
/// \param packs  whether the body can take kPack neighbours at once, from any multiple of kPack on.
template <class Body>
cudaError_t map(const Body& body, std::int64_t n, bool packs, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;
  const std::int64_t items = packs ? (n + kPack - 1) / kPack : n;
  const std::int64_t blocks =
      std::min(kMostBlocks, std::max<std::int64_t>(1, (items + kThreads - 1) / kThreads));
  return launch(map_kernel<Body>, dim3(static_cast<unsigned>(blocks)), kThreads, 0, stream, body, n,
                packs);
}

}  // namespace foreshard::replay::gpu
