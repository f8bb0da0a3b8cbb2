/// \file
/// Small kernels that the executor itself needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// Fills memory with numbers that are finite, of both signs and of ordinary size, read as any
/// floating-point type: each half-word is a bf16 (and fp16) between 0.5 and 4, no byte is fp8's
/// NaN.
cudaError_t fill_plausibly(void* data, std::size_t bytes, cudaStream_t stream);

/// Notes the device's clock, in nanoseconds.
cudaError_t note_time(std::uint64_t* origin, cudaStream_t stream);
/// Holds the stream until `delay` nanoseconds after *origin, with one thread that mostly sleeps.
cudaError_t wait_until(const std::uint64_t* origin, std::uint64_t delay, cudaStream_t stream);

/// What `verify` found of one communication.
struct CheckResult {
  unsigned long long wrong = 0;
  unsigned long long first = 0;  ///< The first wrong element; meaningless if there is none.
  float got = 0;
  float want = 0;
};

/// data[i] = sent(rank, ordinal, base + i).
cudaError_t fill_pattern(void* data, std::int64_t count, DType dtype, std::int32_t rank,
                         std::int64_t ordinal, std::int64_t base, cudaStream_t stream);

/// What a receive buffer must hold. `members` lies on the device.
struct Expected {
  const std::int32_t* members = nullptr;
  std::int32_t count = 0;
  bool sum =
      false;  ///< Of all members' element base + i; else of member i / shard, base + i % shard.
  std::int64_t shard = 1;
  std::int64_t base = 0;
  std::int64_t ordinal = 0;
};
/// Adds to *result, whose `first` must begin at the largest number.
cudaError_t check_pattern(const void* data, std::int64_t count, DType dtype,
                          const Expected& expected, CheckResult* result, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
