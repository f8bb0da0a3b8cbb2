/// \file
/// Emulates CUDA's execution model on the host, for tests. The blocks of a launch run one after
/// another; the threads of a block take turns at barriers and at instructions that a warp executes
/// together. It covers only what device.h and the kernels use. Not modelled: writes that are not
/// yet visible to other threads, and copies that are still under way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <functional>
#include <set>
#include <type_traits>
#include <vector_types.h>

// These are CUDA's names.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __restrict__
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define threadIdx ::foreshard::replay::gpu::emulation::thread_index()
#define blockIdx ::foreshard::replay::gpu::emulation::block_index()
#define blockDim ::foreshard::replay::gpu::emulation::block_size()
#define gridDim ::foreshard::replay::gpu::emulation::grid_size()

// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

namespace foreshard::replay::gpu::emulation {

void run(dim3 grid, unsigned threads, std::size_t shared, const std::function<void()>& kernel);

/// Kernels that the calling thread has launched so far.
std::set<const void*>& launched();

uint3 thread_index();
uint3 block_index();
dim3 block_size();
dim3 grid_size();
unsigned char* shared();
std::uint64_t time();

/// __syncthreads.
void barrier();
/// Exchanges values within the calling thread's warp. All lanes that have not returned must call
/// it.
/// \return lane -> its value, kSlot bytes each; valid until the warp's second next call.
constexpr std::size_t kSlot = 32;
const unsigned char* gather(const void* value, std::size_t bytes);

template <class T>
T from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= kSlot);
  const unsigned char* all = gather(&value, sizeof(T));
  T result;
  std::memcpy(&result, all + lane % 32 * kSlot, sizeof(T));
  return result;
}

void load_tiles(std::uint32_t (&out)[4], const void* row, bool transposed);

template <class T>
float half_of(std::uint32_t word, int which) {
  const auto bits = static_cast<std::uint16_t>(which == 0 ? word & 0xffffU : word >> 16U);
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(bits));
  return static_cast<float>(value);
}

template <class T>
void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  struct Lane {
    std::uint32_t a[4];
    std::uint32_t b[2];
  };
  const Lane mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const unsigned char* all = gather(&mine, sizeof(mine));
  const unsigned lane = thread_index().x % 32;
  const auto of = [&](unsigned l) {
    Lane other;
    std::memcpy(&other, all + l * kSlot, sizeof(other));
    return other;
  };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + (i / 2) * 8;
    const unsigned column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const Lane left = of(row % 8 * 4 + k % 8 / 2);
      const Lane right = of(column * 4 + k % 8 / 2);
      c[i] +=
          half_of<T>(left.a[(row / 8) + (k / 8) * 2], k % 2) * half_of<T>(right.b[k / 8], k % 2);
    }
  }
}

inline void copy(void* to, const void* from, bool valid) {
  if (valid)
    std::memcpy(to, from, 16);
  else
    std::memset(to, 0, 16);
}

}  // namespace foreshard::replay::gpu::emulation

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)

inline void __syncthreads() {
  foreshard::replay::gpu::emulation::barrier();
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  const unsigned lane = foreshard::replay::gpu::emulation::thread_index().x % 32;
  return foreshard::replay::gpu::emulation::from_lane(value, lane ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return foreshard::replay::gpu::emulation::from_lane(value, static_cast<unsigned>(lane));
}
template <class T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
template <class T>
T atomicMin(T* to, T value) {
  const T before = *to;
  if (value < before) *to = value;
  return before;
}

// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
