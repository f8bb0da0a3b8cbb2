#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {
namespace {

// Fractions of a byte (of fp4) are dropped.
std::size_t bytes_of_elements(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(static_cast<double>(count) * size_of(dtype).in_base());
}

std::vector<Operand> operands_of_kernel(const Gemm& g) {
  // Products of fp8 give bf16, products of int8 give int32.
  DType out = g.dtype;
  if (out == DType::kFp8) out = DType::kBf16;
  if (out == DType::kInt8) out = DType::kInt32;
  if (g.accumulate) out = DType::kFp32;
  return {{bytes_of_elements(g.batch * g.m * g.k, g.dtype), Access::kRead},
          {bytes_of_elements(g.batch * g.k * g.n, g.dtype), Access::kRead},
          {bytes_of_elements(g.batch * g.m * g.n, out),
           g.accumulate ? Access::kUpdate : Access::kWrite}};
}

std::vector<Operand> operands_of_kernel(const Attention& a) {
  const std::size_t query =
      bytes_of_elements(a.batch * a.query_heads * a.query_length * a.head_dim, a.dtype);
  const std::size_t key =
      bytes_of_elements(a.batch * a.kv_heads * a.key_length * a.head_dim, a.dtype);
  // One fp32 number for each query of each head.
  const std::size_t row_statistics =
      bytes_of_elements(a.batch * a.query_heads * a.query_length, DType::kFp32);
  if (a.direction == Direction::kForward)
    return {
        {query, Access::kRead},            // q
        {key, Access::kRead},              // k
        {key, Access::kRead},              // v
        {query, Access::kWrite},           // o
        {row_statistics, Access::kWrite},  // logarithms of the row sums
    };
  const std::size_t query_gradient_fp32 =
      bytes_of_elements(a.batch * a.query_heads * a.query_length * a.head_dim, DType::kFp32);
  return {
      {query, Access::kRead},                 // q
      {key, Access::kRead},                   // k
      {key, Access::kRead},                   // v
      {query, Access::kRead},                 // o
      {query, Access::kRead},                 // do
      {row_statistics, Access::kRead},        // logarithms of the row sums
      {row_statistics, Access::kWrite},       // row sums of do o
      {query_gradient_fp32, Access::kWrite},  // dq, as it is added up
      {query, Access::kWrite},                // dq
      {key, Access::kWrite},                  // dk
      {key, Access::kWrite},                  // dv
  };
}

// A memory-bound kernel (program/ir/kernel.h).
std::vector<Operand> operands_of_kernel(const Pass& pass) {
  std::vector<Operand> operands;
  for (const PassArray& array : arrays_of(pass)) operands.push_back({array.bytes(), array.access});
  return operands;
}

}  // namespace

std::vector<Operand> operands_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return operands_of_kernel(k); }, kernel);
}

}  // namespace foreshard::replay::gpu
