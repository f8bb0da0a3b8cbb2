#include <algorithm>

#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/utility.h"
#include "validate/replay/pattern.h"

namespace foreshard::replay::gpu {
namespace {

FORESHARD_DEVICE std::int64_t thread_number() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}
FORESHARD_DEVICE std::int64_t thread_count() {
  return std::int64_t{gridDim.x} * kThreads;
}
unsigned blocks_for(std::int64_t items) {
  constexpr std::int64_t kMost = 1 << 16;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMost));
}

__global__ void __launch_bounds__(kThreads) plausible(std::uint32_t* data, std::int64_t words) {
  for (std::int64_t i = thread_number(); i < words; i += thread_count()) {
    auto h = static_cast<std::uint32_t>(i) * 0x9e3779b9U + static_cast<std::uint32_t>(i >> 32);
    h = (h ^ (h >> 16)) * 0x7feb352dU;
    h = (h ^ (h >> 15)) * 0x846ca68bU;
    h ^= h >> 16;
    // Each half-word has any sign, the upper byte 0x3f or 0x40 (1.75 to 2.25 as fp16), and any
    // lower byte but fp8's NaN (0x7f, 0xff). As bf16, 0x3f00 to 0x407f is 0.5 to 3.98.
    const std::uint32_t high = h & 0x00010001U;              // selects 0x3f or 0x40
    const std::uint32_t upper = 0x3f003f00U + (high << 8U);  // 0x3f or 0x40
    std::uint32_t lower = (h >> 1) & 0x007f007fU;
    lower |= (h >> 2) & 0x00800080U & ~(high << 7U);  // 0x40: only up to 0x7f
    if ((lower & 0x7fU) == 0x7fU) lower ^= 1U;
    if ((lower & 0x7f0000U) == 0x7f0000U) lower ^= 0x10000U;
    data[i] = upper | lower | (h & 0x80008000U);
  }
}

__global__ void note(std::uint64_t* origin) {
  *origin = device_time();
}

__global__ void hold(const std::uint64_t* origin, std::uint64_t delay) {
  const std::uint64_t until = *origin + delay;
  while (device_time() < until) rest();
}

template <class T>
FORESHARD_DEVICE float number_of(T x) {
  return static_cast<float>(x);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    fill(T* data, std::int64_t count, std::int32_t rank, std::int64_t ordinal, std::int64_t base) {
  for (std::int64_t i = thread_number(); i < count; i += thread_count())
    data[i] = T(static_cast<float>(sent(rank, ordinal, base + i)));
}

FORESHARD_DEVICE int value_of(const Expected& e, std::int64_t i) {
  if (!e.sum) return sent(e.members[i / e.shard], e.ordinal, e.base + i % e.shard);
  int sum = 0;
  for (std::int32_t m = 0; m < e.count; ++m) sum += sent(e.members[m], e.ordinal, e.base + i);
  return sum;
}

// `exact`: the integer up to which integers are exact in T; larger sums may have one rounding error
// per addition.
template <class T>
__global__ void __launch_bounds__(kThreads)
    check(const T* data, std::int64_t count, Expected e, float exact, CheckResult* result) {
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const auto want = static_cast<float>(value_of(e, i));
    const float allowed = want <= exact ? 0.0F : want / exact * static_cast<float>(e.count);
    if (fabsf(number_of(data[i]) - want) <= allowed) continue;  // NaN is wrong
    atomicAdd(&result->wrong, 1ULL);
    atomicMin(&result->first, static_cast<unsigned long long>(i));
  }
}

template <class T>
__global__ void explain(const T* data, std::int64_t count, Expected e, CheckResult* result) {
  const auto first = static_cast<std::int64_t>(result->first);
  if (result->wrong == 0 || first >= count) return;
  result->got = number_of(data[first]);
  result->want = static_cast<float>(value_of(e, first));
}

// Calls f(T(), the integer up to which T represents all integers).
template <class F>
cudaError_t with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return f(float(), 0x1p24F);
    case DType::kFp16:
      return f(__half(), 2048.0F);
    case DType::kBf16:
      return f(__nv_bfloat16(), 256.0F);
    case DType::kFp8:
      return f(Float8(), 16.0F);
    case DType::kFp4:
      break;
    case DType::kInt8:
      return f(std::int8_t(), 127.0F);
    case DType::kInt32:  // NOLINT(bugprone-branch-clone): the types differ
      return f(std::int32_t(), 0x1p24F);
    case DType::kInt64:
      return f(std::int64_t(), 0x1p24F);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t fill_plausibly(void* data, std::size_t bytes, cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>(bytes / 4);
  if (words == 0) return cudaSuccess;
  return launch(plausible, dim3(blocks_for(words)), kThreads, 0, stream,
                static_cast<std::uint32_t*>(data), words);
}

cudaError_t note_time(std::uint64_t* origin, cudaStream_t stream) {
  return launch(note, dim3(1), 1, 0, stream, origin);
}

cudaError_t wait_until(const std::uint64_t* origin, std::uint64_t delay, cudaStream_t stream) {
  return launch(hold, dim3(1), 1, 0, stream, origin, delay);
}

cudaError_t fill_pattern(void* data, std::int64_t count, DType dtype, std::int32_t rank,
                         std::int64_t ordinal, std::int64_t base, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return with_type(dtype, [&](auto type, float) {
    using T = decltype(type);
    return launch(fill<T>, dim3(blocks_for(count)), kThreads, 0, stream, static_cast<T*>(data),
                  count, rank, ordinal, base);
  });
}

cudaError_t check_pattern(const void* data, std::int64_t count, DType dtype,
                          const Expected& expected, CheckResult* result, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return with_type(dtype, [&](auto type, float exact) {
    using T = decltype(type);
    const auto* typed = static_cast<const T*>(data);
    const cudaError_t status = launch(check<T>, dim3(blocks_for(count)), kThreads, 0, stream, typed,
                                      count, expected, exact, result);
    if (status != cudaSuccess) return status;
    return launch(explain<T>, dim3(1), 1, 0, stream, typed, count, expected, result);
  });
}

}  // namespace foreshard::replay::gpu
