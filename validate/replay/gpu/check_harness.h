/// \file
/// Helpers that checks share: storage formats of arrays, running something on copies of them, and
/// comparing the results.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {

using Arrays = std::vector<std::vector<double>>;
using Bytes = std::vector<std::vector<unsigned char>>;  ///< Arrays as they are stored.

/// How an array's elements are stored.
enum class Stored : std::uint8_t { kFp32, kFp16, kBf16, kFp8, kByte, kInt32 };
Stored stored_as(DType dtype);
std::size_t bytes_of(Stored stored);
/// The largest relative error of rounding to this format.
double step_of(Stored stored);
/// The number nearest to `value` that can be stored in this format.
double as_stored(Stored stored, double value);

/// Device memory of a check.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    status_ = cudaMalloc(&data_, bytes == 0 ? 1 : bytes);
  }
  DeviceBytes(DeviceBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), status_(other.status_) {}
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  DeviceBytes& operator=(DeviceBytes&&) = delete;
  ~DeviceBytes() { cudaFree(data_); }
  void* data() const { return data_; }
  cudaError_t status() const { return status_; }
  // An empty vector may have a null address.
  cudaError_t put(const std::vector<unsigned char>& from) const {
    return bytes_ == 0 ? cudaSuccess
                       : cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice);
  }
  cudaError_t get(std::vector<unsigned char>& to) const {
    return bytes_ == 0 ? cudaSuccess : cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  cudaError_t status_ = cudaSuccess;
};

/// Numbers between -2 and 2 (masks: 0 and 1), which depend only on the seed.
Arrays inputs_for(const std::vector<Operand>& operands, const std::vector<Stored>& stores,
                  std::uint64_t seed = 0);

Bytes encoded(const std::vector<Stored>& stores, const Arrays& arrays);
Arrays decoded(const std::vector<Stored>& stores, const Bytes& bytes);

/// Runs `launch` on copies of `arrays` on the device, and copies the results back into `arrays`.
std::optional<std::string> on_device(
    const std::vector<Stored>& stores, Arrays& arrays,
    const std::function<std::optional<std::string>(std::span<void* const>)>& launch);

/// Describes the first element whose error exceeds `absolute` plus a relative error of `slack`
/// steps of its format and 1e-4 (for sums and fast special functions in fp32); nothing if none
/// does.
std::optional<std::string> difference(const std::vector<Stored>& stores, const Arrays& got,
                                      const Arrays& want, double slack, double absolute);

}  // namespace foreshard::replay::gpu
