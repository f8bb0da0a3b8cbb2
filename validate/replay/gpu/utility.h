/// \file
/// Small kernels that the executor itself needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// Fills memory with numbers that are finite, of both signs and of ordinary size when read as any
/// floating-point type: each half-word is a bf16 (and fp16) with a magnitude between 0.5 and 4, and
/// no byte is an fp8 NaN.
cudaError_t fill_plausibly(void* data, std::size_t bytes, cudaStream_t stream);

/// Writes the device's clock, in nanoseconds, to *origin.
cudaError_t note_time(std::uint64_t* origin, cudaStream_t stream);
/// Makes the stream wait until `delay` nanoseconds after *origin, with one thread that mostly
/// sleeps.
cudaError_t wait_until(const std::uint64_t* origin, std::uint64_t delay, cudaStream_t stream);

/// Result of checking one piece of a receive buffer.
struct CheckResult {
  unsigned long long wrong = 0;
  unsigned long long first = 0;  ///< The first wrong element; meaningless if there is none.
  float got = 0;
  float want = 0;
};

/// data[i] = sent(rank, ordinal, base + i).
cudaError_t fill_pattern(void* data, std::int64_t count, DType dtype, std::int32_t rank,
                         std::int64_t ordinal, std::int64_t base, cudaStream_t stream);

/// The numbers that a receive buffer must hold.
struct Expected {
  const std::int32_t* members = nullptr;  ///< Ranks, in device memory.
  std::int32_t count = 0;                 ///< Number of members.
  /// True: element i is the sum of all members' elements base + i. False: element i is element
  /// base + i % shard of member i / shard.
  bool sum = false;
  std::int64_t shard = 1;
  std::int64_t base = 0;
  std::int64_t ordinal = 0;
};
/// Checks `count` elements and adds the faults to *result.
/// \pre result->first begins as the largest number.
cudaError_t check_pattern(const void* data, std::int64_t count, DType dtype,
                          const Expected& expected, CheckResult* result, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
