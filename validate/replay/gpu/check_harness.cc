#include "validate/replay/gpu/check_harness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <utility>

#include "base/check.h"

#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

struct Format {
  std::size_t bytes;
  double step;  // largest relative rounding error
};
Format format_of(Stored stored) {
  switch (stored) {
    case Stored::kFp32:
      return {4, 0x1p-24};
    case Stored::kFp16:
      return {2, 0x1p-11};
    case Stored::kBf16:
      return {2, 0x1p-8};
    case Stored::kFp8:
      return {1, 0x1p-4};
    case Stored::kByte:
      return {1, 0};
    case Stored::kInt32:
      return {4, 0};
  }
  FORESHARD_CHECK(false);
}

template <class T>
void put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}
template <class T>
double get(const unsigned char* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof(value));
  return static_cast<double>(static_cast<float>(value));
}

void encode(Stored stored, double value, unsigned char* to) {
  const auto number = static_cast<float>(value);
  switch (stored) {
    case Stored::kFp32:
      return put(to, number);
    case Stored::kFp16:
      return put(to, __half(number));
    case Stored::kBf16:
      return put(to, __nv_bfloat16(number));
    case Stored::kFp8:
      return put(to, __nv_fp8_e4m3(number));
    case Stored::kByte:
      return put(to, static_cast<std::int8_t>(value));
    case Stored::kInt32:
      return put(to, static_cast<std::int32_t>(value));
  }
}
double decode(Stored stored, const unsigned char* from) {
  switch (stored) {
    case Stored::kFp32:
      return get<float>(from);
    case Stored::kFp16:
      return get<__half>(from);
    case Stored::kBf16:
      return get<__nv_bfloat16>(from);
    case Stored::kFp8:
      return get<__nv_fp8_e4m3>(from);
    case Stored::kByte:
      return get<std::int8_t>(from);
    case Stored::kInt32:
      return get<std::int32_t>(from);
  }
  FORESHARD_CHECK(false);
}

// A number between -2 and 2, the same in each run.
double some_number(std::uint64_t seed, std::size_t array, std::size_t element) {
  std::uint64_t h =
      element * 0x9e3779b97f4a7c15U + array * 0xd1342543de82ef95U + 1 + seed * 0x94d049bb133111ebU;
  h = (h ^ (h >> 31U)) * 0xbf58476d1ce4e5b9U;
  h ^= h >> 29U;
  return static_cast<double>(h >> 40U) * 0x1p-22 - 2.0;
}

}  // namespace

std::size_t bytes_of(Stored stored) {
  return format_of(stored).bytes;
}
double step_of(Stored stored) {
  return format_of(stored).step;
}
double as_stored(Stored stored, double value) {
  std::array<unsigned char, 4> bytes{};
  encode(stored, value, bytes.data());
  return decode(stored, bytes.data());
}

Stored stored_as(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return Stored::kFp16;
    case DType::kBf16:
      return Stored::kBf16;
    case DType::kFp8:
      return Stored::kFp8;
    case DType::kInt8:
      return Stored::kByte;
    case DType::kInt32:
      return Stored::kInt32;
    default:
      return Stored::kFp32;
  }
}

Bytes encoded(const std::vector<Stored>& stores, const Arrays& arrays) {
  Bytes bytes;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t each = bytes_of(stores[i]);
    bytes.emplace_back(arrays[i].size() * each);
    for (std::size_t e = 0; e < arrays[i].size(); ++e)
      encode(stores[i], arrays[i][e], &bytes[i][e * each]);
  }
  return bytes;
}

Arrays decoded(const std::vector<Stored>& stores, const Bytes& bytes) {
  Arrays arrays;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t each = bytes_of(stores[i]);
    arrays.emplace_back(bytes[i].size() / each);
    for (std::size_t e = 0; e < arrays[i].size(); ++e)
      arrays[i][e] = decode(stores[i], &bytes[i][e * each]);
  }
  return arrays;
}

std::optional<std::string> on_device(
    const std::vector<Stored>& stores, Arrays& arrays,
    const std::function<std::optional<std::string>(std::span<void* const>)>& launch) {
  std::vector<DeviceBytes> buffers;
  std::vector<void*> pointers;
  Bytes bytes = encoded(stores, arrays);
  for (const auto& array : bytes) {
    buffers.emplace_back(array.size());
    if (buffers.back().status() != cudaSuccess) return said(buffers.back().status());
    if (const auto status = buffers.back().put(array); status != cudaSuccess) return said(status);
    pointers.push_back(buffers.back().data());
  }
  if (auto fault = launch(pointers)) return "launch: " + *fault;
  if (const auto status = cudaDeviceSynchronize(); status != cudaSuccess)
    return "kernel: " + said(status);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (const auto status = buffers[i].get(bytes[i]); status != cudaSuccess) return said(status);
  arrays = decoded(stores, bytes);
  return std::nullopt;
}

std::optional<std::string> difference(const std::vector<Stored>& stores, const Arrays& got,
                                      const Arrays& want, double slack, double absolute) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double relative = slack * step_of(stores[i]) + 1e-4;
    for (std::size_t e = 0; e < got[i].size(); ++e) {
      const double a = got[i][e];
      const double b = want[i][e];
      if (a == b || (std::isinf(a) && std::isinf(b))) continue;
      if (std::abs(a - b) <= relative * std::abs(b) + absolute) continue;
      return "operand " + std::to_string(i) + ", element " + std::to_string(e) + " of " +
             std::to_string(got[i].size()) + " is " + std::to_string(a) + ", not " +
             std::to_string(b);
    }
  }
  return std::nullopt;
}

Arrays inputs_for(const std::vector<Operand>& operands, const std::vector<Stored>& stores,
                  std::uint64_t seed) {
  Arrays arrays;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::vector<double> values(operands[i].bytes / bytes_of(stores[i]));
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (stores[i] == Stored::kByte) {
        values[e] = some_number(seed, i, e) < 1.6 ? 1 : 0;
        continue;
      }
      values[e] = as_stored(stores[i], some_number(seed, i, e));
    }
    arrays.push_back(std::move(values));
  }
  return arrays;
}

}  // namespace foreshard::replay::gpu
