#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {
namespace {

std::size_t sized(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(static_cast<double>(count) * size_of(dtype).in_base());
}

std::vector<Operand> operands_of_kernel(const Gemm& g) {
  // Products of fp8 give bf16, products of int8 give int32.
  DType out = g.dtype;
  if (out == DType::kFp8) out = DType::kBf16;
  if (out == DType::kInt8) out = DType::kInt32;
  if (g.accumulate) out = DType::kFp32;
  return {{sized(g.batch * g.m * g.k, g.dtype), Access::kRead},
          {sized(g.batch * g.k * g.n, g.dtype), Access::kRead},
          {sized(g.batch * g.m * g.n, out), g.accumulate ? Access::kUpdate : Access::kWrite}};
}

std::vector<Operand> operands_of_kernel(const Attention& a) {
  const std::size_t query = sized(a.batch * a.query_heads * a.query_length * a.head_dim, a.dtype);
  const std::size_t key = sized(a.batch * a.kv_heads * a.key_length * a.head_dim, a.dtype);
  const std::size_t row = sized(a.batch * a.query_heads * a.query_length, DType::kFp32);
  if (a.direction == Direction::kForward)
    return {{query, Access::kRead},
            {key, Access::kRead},
            {key, Access::kRead},
            {query, Access::kWrite},
            {row, Access::kWrite}};
  const std::size_t sums =
      sized(a.batch * a.query_heads * a.query_length * a.head_dim, DType::kFp32);
  return {{query, Access::kRead}, {key, Access::kRead},   {key, Access::kRead},
          {query, Access::kRead}, {query, Access::kRead}, {row, Access::kRead},
          {row, Access::kWrite},  {sums, Access::kWrite}, {query, Access::kWrite},
          {key, Access::kWrite},  {key, Access::kWrite}};
}

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
