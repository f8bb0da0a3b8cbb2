/// \file
/// The device language of the kernels: CUDA, with names for the few PTX instructions that they use.
/// Compiled by a host compiler, the same sources run under emulation.h, so that the kernels'
/// results can be tested without a GPU.
///
/// Source of the fragment layouts: "PTX ISA 8.5", 9.7.14.5 (mma.m16n8k16, ldmatrix), 9.7.9.25
/// (cp.async).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "validate/replay/gpu/emulation.h"
#endif

#include "validate/replay/pass/elementary.h"

namespace foreshard::replay::gpu {

/// Most bytes of dynamic shared memory without an attribute of the kernel: 48 KiB.
constexpr std::size_t kSharedWithoutAsking = 49152;

/// Launches `kernel` on one-dimensional blocks.
/// \return CUDA's status of the launch.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t shared,
                   cudaStream_t stream, A... arguments) {
#ifdef __CUDACC__
  if (shared > kSharedWithoutAsking) {
    const cudaError_t status =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (status != cudaSuccess) return status;
  }
  kernel<<<grid, threads, shared, stream>>>(static_cast<P>(arguments)...);
  return cudaGetLastError();
#else
  (void)stream;
  emulation::launched().insert(reinterpret_cast<const void*>(kernel));
  emulation::run(grid, threads, shared, [&] { kernel(static_cast<P>(arguments)...); });
  return cudaSuccess;
#endif
}

/// The block's dynamic shared memory.
FORESHARD_DEVICE unsigned char* shared_memory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char bytes[];
  return bytes;
#else
  return emulation::shared();
#endif
}

/// The device's own clock in nanoseconds; it may tick as rarely as once per microsecond.
FORESHARD_DEVICE std::uint64_t device_time() {
#ifdef __CUDACC__
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return emulation::time();
#endif
}

FORESHARD_DEVICE void rest() {
#ifdef __CUDACC__
  __nanosleep(100);
#endif
}

/// 16 bytes of one row of a matrix tile.
struct alignas(16) Chunk {
  std::uint32_t word[4];
};

/// Writes to global memory in a single access. A plain assignment may not: nvcc splits it in some
/// unrolled loops.
FORESHARD_DEVICE void write_chunk(void* to, const Chunk& chunk) {
#ifdef __CUDACC__
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(chunk.word[0]), "r"(chunk.word[1]), "r"(chunk.word[2]), "r"(chunk.word[3])
               : "memory");
#else
  emulation::copy(to, &chunk, true);
#endif
}

/// Loads four 8x8 tiles of 2-byte numbers (ldmatrix). `row` is the address of row lane % 8 of tile
/// lane / 8. From each tile, lane l gets the numbers at (l / 4, 2 (l % 4)) and next to it in the
/// row.
FORESHARD_DEVICE void load_tiles(std::uint32_t (&out)[4], const void* row) {
#ifdef __CUDACC__
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
#else
  emulation::load_tiles(out, row, false);
#endif
}

/// Same as load_tiles, with each tile transposed.
FORESHARD_DEVICE void load_tiles_transposed(std::uint32_t (&out)[4], const void* row) {
#ifdef __CUDACC__
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
#else
  emulation::load_tiles(out, row, true);
#endif
}

/// c += a b in fp32, with a 16x16 fragment a and a 16x8 fragment b. T is __nv_bfloat16 or __half.
template <class T>
FORESHARD_DEVICE void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                               std::uint32_t b1) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 2 && std::is_same_v<T, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  emulation::multiply<T>(c, a, b0, b1);
#endif
}

/// Copies 16 bytes to shared memory asynchronously; writes zeros if `valid` is false.
FORESHARD_DEVICE void copy_async(void* to, const void* from, bool valid) {
#ifdef __CUDACC__
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
#else
  emulation::copy(to, from, valid);
#endif
}
/// Closes a group with the copies issued since the last one.
FORESHARD_DEVICE void copies_issued() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until all but the last `kPending` groups of this thread have arrived. A barrier must
/// follow before other threads read them.
template <int kPending>
FORESHARD_DEVICE void copies_done() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

FORESHARD_DEVICE float power_of_two(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}

}  // namespace foreshard::replay::gpu
