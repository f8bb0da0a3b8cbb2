#include "validate/replay/gpu/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"

#include "validate/replay/gpu/attention.h"
#include "validate/replay/gpu/operands.h"
#include "validate/replay/gpu/passes.h"

namespace foreshard::replay::gpu {
namespace {

using Arrays = std::vector<std::vector<double>>;

// How an operand's elements are stored.
enum class Stored : std::uint8_t { kFp32, kFp16, kBf16, kFp8, kByte };

struct Format {
  std::size_t bytes;
  double step;  // of the largest relative rounding
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
      return put(to, static_cast<unsigned char>(value));
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
      return get<unsigned char>(from);
  }
  FORESHARD_CHECK(false);
}

Stored stored_as(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return Stored::kFp16;
    case DType::kBf16:
      return Stored::kBf16;
    case DType::kFp8:
      return Stored::kFp8;
    default:
      return Stored::kFp32;
  }
}

// By operand: t the kernel's dtype, f fp32, m a mask.
std::string_view stores_of(PassKind kind) {
  switch (kind) {
    case PassKind::kLayerNormForward:
    case PassKind::kRmsNormForward:
      return "ttft";
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward:
      return "tttftf";
    case PassKind::kDropoutForward:
      return "ttm";
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return "tmt";
    case PassKind::kBiasDropoutAddForward:
      return "ttttm";
    case PassKind::kBiasGradient:
    case PassKind::kGradientAccumulate:
    case PassKind::kCast:
    case PassKind::kReduce:
    case PassKind::kStatistics:
    case PassKind::kTopK:
      return "tf";
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return "tft";
    case PassKind::kCrossEntropyForward:
      return "tff";
    case PassKind::kCrossEntropyBackward:
    case PassKind::kExpand:
      return "ft";
    case PassKind::kGradientNorm:
      return "ff";
    case PassKind::kAdam:
      return "fffft";
    case PassKind::kOptimizer:
      return "ffft";
    default:
      return "tttt";
  }
}

// Numbers between -2 and 2, the same in each run.
double some_number(std::size_t array, std::size_t element) {
  std::uint64_t h = element * 0x9e3779b97f4a7c15U + array * 0xd1342543de82ef95U + 1;
  h = (h ^ (h >> 31U)) * 0xbf58476d1ce4e5b9U;
  h ^= h >> 29U;
  return static_cast<double>(h >> 40U) * 0x1p-22 - 2.0;
}

// Device memory of one check.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    status_ = cudaMalloc(&data_, bytes == 0 ? 1 : bytes);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), status_(other.status_) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { cudaFree(data_); }
  void* data() const { return data_; }
  cudaError_t status() const { return status_; }
  cudaError_t put(const std::vector<unsigned char>& from) const {
    return cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice);
  }
  cudaError_t get(std::vector<unsigned char>& to) const {
    return cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  cudaError_t status_ = cudaSuccess;
};

std::string said(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
}

// Runs `launch` on copies of `arrays` and brings back what it made of them.
std::optional<std::string> on_device(
    const std::vector<Stored>& stores, Arrays& arrays,
    const std::function<cudaError_t(std::span<void* const>)>& launch) {
  std::vector<Buffer> buffers;
  std::vector<void*> pointers;
  std::vector<std::vector<unsigned char>> bytes;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t each = format_of(stores[i]).bytes;
    bytes.emplace_back(arrays[i].size() * each);
    for (std::size_t e = 0; e < arrays[i].size(); ++e)
      encode(stores[i], arrays[i][e], &bytes.back()[e * each]);
    buffers.emplace_back(bytes.back().size());
    if (buffers.back().status() != cudaSuccess) return said(buffers.back().status());
    if (const auto status = buffers.back().put(bytes.back()); status != cudaSuccess)
      return said(status);
    pointers.push_back(buffers.back().data());
  }
  if (const auto status = launch(pointers); status != cudaSuccess) return "launch: " + said(status);
  if (const auto status = cudaDeviceSynchronize(); status != cudaSuccess)
    return "kernel: " + said(status);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (const auto status = buffers[i].get(bytes[i]); status != cudaSuccess) return said(status);
    const std::size_t each = format_of(stores[i]).bytes;
    for (std::size_t e = 0; e < arrays[i].size(); ++e)
      arrays[i][e] = decode(stores[i], &bytes[i][e * each]);
  }
  return std::nullopt;
}

// The first element that is off. `slack`: of rounding steps of the format, on top of 1e-4 for fp32
// sums and fast special functions.
std::optional<std::string> difference(const std::vector<Stored>& stores, const Arrays& got,
                                      const Arrays& want, double slack, double absolute,
                                      const std::vector<std::size_t>& skipped) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::find(skipped.begin(), skipped.end(), i) != skipped.end()) continue;
    const double relative = slack * format_of(stores[i]).step + 1e-4;
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

Arrays inputs_for(const std::vector<Operand>& operands, const std::vector<Stored>& stores) {
  Arrays arrays;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Format format = format_of(stores[i]);
    std::vector<double> values(operands[i].bytes / format.bytes);
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (stores[i] == Stored::kByte) {
        values[e] = some_number(i, e) < 1.6 ? 1 : 0;
        continue;
      }
      std::array<unsigned char, 4> stored{};
      encode(stores[i], some_number(i, e), stored.data());
      values[e] = decode(stores[i], stored.data());
    }
    arrays.push_back(std::move(values));
  }
  return arrays;
}

std::optional<std::string> check(const Pass& pass) {
  const Pass run = in_floating_point(pass);
  std::vector<Stored> stores;
  const auto operands = operands_of(Kernel(pass));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const char letter = stores_of(pass.kind)[i];
    stores.push_back(letter == 'f'   ? Stored::kFp32
                     : letter == 'm' ? Stored::kByte
                                     : stored_as(run.dtype));
  }
  Arrays want = inputs_for(operands, stores);
  if (pass.kind == PassKind::kAdam)  // a second moment is not negative
    for (double& value : want[3]) value = static_cast<double>(static_cast<float>(std::abs(value)));
  Arrays got = want;
  if (auto fault = on_device(stores, got, [&](std::span<void* const> pointers) {
        return launch_pass(pass, pointers, nullptr);
      }))
    return fault;
  std::vector<std::size_t> skipped;
  const bool drops =
      pass.kind == PassKind::kDropoutForward || pass.kind == PassKind::kBiasDropoutAddForward;
  if (drops) {  // which elements are kept is the kernel's choice, one in ten is not
    const std::vector<double>& mask = got.back();
    want.back() = mask;
    double kept = 0;
    for (const double m : mask) kept += m;
    const double share = kept / static_cast<double>(mask.size());
    if (mask.size() > 1000 && std::abs(share - 0.9) > 0.05)
      return "the mask keeps " + std::to_string(share) + " of the elements, not 0.9";
  }
  compute(pass, want);
  // Sums over rows add rounding in fp32; results near zero are differences of larger numbers.
  return difference(stores, got, want, 1.5, 2e-3, skipped);
}

std::optional<std::string> check(const Attention& a) {
  const auto operands = operands_of(Kernel(a));
  const bool backward = a.direction == Direction::kBackward;
  const Stored stored = stored_as(a.dtype);
  std::vector<Stored> stores(operands.size(), stored);
  if (backward)
    stores[5] = stores[6] = stores[7] = Stored::kFp32;
  else
    stores[4] = Stored::kFp32;
  Arrays want = inputs_for(operands, stores);
  if (backward) {  // o and the logarithms belong to q, k and v
    Attention forward = a;
    forward.direction = Direction::kForward;
    Arrays first = {want[0], want[1], want[2], want[3], want[5]};
    compute(forward, first);
    want[3] = first[3];
    want[5] = first[4];
    std::array<unsigned char, 4> bytes{};
    for (double& value : want[3]) {
      encode(stored, value, bytes.data());
      value = decode(stored, bytes.data());
    }
  }
  Arrays got = want;
  if (auto fault = on_device(stores, got, [&](std::span<void* const> pointers) {
        return launch_attention(a, pointers, nullptr);
      }))
    return fault;
  compute(a, want);
  // Probabilities and their gradients are rounded to the dtype before they meet the next product;
  // errors of single terms add up against the size of the inputs, not of the result.
  const double absolute = format_of(stored).step * 4;
  return difference(stores, got, want, 8, absolute, {});
}

}  // namespace

std::vector<Check> pass_checks() {
  struct Shape {
    std::int64_t rows;
    std::int64_t columns;
  };
  // Rows for four lanes, a warp and a block; lengths that are no multiple of a pack; odd ones.
  constexpr std::array kShapes{Shape{37, 24},  Shape{5, 256}, Shape{9, 130}, Shape{3, 2056},
                               Shape{2, 1101}, Shape{1, 1},   Shape{70, 33}};
  std::vector<Check> checks;
  for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
    for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16, DType::kFp8})
      for (const Shape& shape : kShapes) {
        const Pass pass{static_cast<PassKind>(kind), shape.rows, shape.columns, dtype};
        if (dtype == DType::kFp8 && shape.columns != 24) continue;  // its own rounding is coarse
        checks.push_back({describe(Kernel(pass)), [pass] { return check(pass); }});
      }
  return checks;
}

std::vector<Check> attention_checks() {
  using A = Attention;
  constexpr auto kForward = Direction::kForward;
  constexpr auto kBackward = Direction::kBackward;
  std::vector<Check> checks;
  for (const Direction direction : {kForward, kBackward})
    for (const A& a : {
             A{1, 1, 1, 64, 64, 64, false, direction, DType::kBf16},
             A{1, 2, 1, 128, 128, 128, true, direction, DType::kBf16},
             A{2, 4, 2, 100, 100, 64, true, direction, DType::kFp16},
             A{1, 1, 1, 40, 150, 128, true, direction, DType::kBf16},
             A{1, 1, 1, 150, 40, 64, true, direction, DType::kFp16},  // some queries see nothing
             A{1, 2, 2, 33, 70, 80, false, direction, DType::kFp16},
             A{1, 1, 1, 200, 200, 40, true, direction, DType::kBf16},
         })
      checks.push_back({describe(Kernel(a)), [a] { return check(a); }});
  return checks;
}

}  // namespace foreshard::replay::gpu
