#include "validate/replay/gpu/operands.h"

#include <cmath>

#include "base/check.h"

namespace foreshard::replay::gpu {
namespace {

std::size_t sized(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(static_cast<double>(count) * size_of(dtype).in_base());
}

std::vector<Operand> operands_of_kernel(const Gemm& g) {
  // fp8 products leave as bf16, those of int8 as int32.
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

std::vector<Operand> operands_of_kernel(const Pass& given) {
  const Pass p = in_floating_point(given);
  const std::int64_t n = p.rows * p.columns;
  const auto in = [&](std::int64_t count) { return Operand{sized(count, p.dtype), Access::kRead}; };
  const auto out = [&](std::int64_t count) {
    return Operand{sized(count, p.dtype), Access::kWrite};
  };
  const auto fp32 = [](std::int64_t count, Access access) {
    return Operand{sized(count, DType::kFp32), access};
  };
  const auto bytes = [&](Access access) { return Operand{static_cast<std::size_t>(n), access}; };
  // An RMS norm has a gamma only.
  const bool rms = p.kind == PassKind::kRmsNormForward || p.kind == PassKind::kRmsNormBackward;
  const std::int64_t parameters = (rms ? 1 : 2) * p.columns;
  constexpr auto kRead = Access::kRead;
  constexpr auto kWrite = Access::kWrite;
  constexpr auto kUpdate = Access::kUpdate;
  switch (p.kind) {
    case PassKind::kLayerNormForward:
    case PassKind::kRmsNormForward:
      return {in(n), out(n), fp32(2 * p.rows, kWrite), in(parameters)};
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward:
      return {
          in(n), in(n), out(n), fp32(2 * p.rows, kRead), in(parameters), fp32(parameters, kUpdate)};
    case PassKind::kGeluForward:
    case PassKind::kUnary:
    case PassKind::kSoftmaxForward:
    case PassKind::kTranspose:
    case PassKind::kTokenPermute:
    case PassKind::kEmbeddingForward:
      return {in(n), out(n)};
    case PassKind::kGeluBackward:
    case PassKind::kSoftmaxBackward:
    case PassKind::kResidualAdd:
    case PassKind::kBinary:
      return {in(n), in(n), out(n)};
    case PassKind::kSwigluForward:
      return {in(2 * n), out(n)};
    case PassKind::kSwigluBackward:
      return {in(n), in(2 * n), out(2 * n)};
    case PassKind::kDropoutForward:
      return {in(n), out(n), bytes(kWrite)};
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return {in(n), bytes(kRead), out(n)};
    case PassKind::kBiasDropoutAddForward:
      return {in(n), in(n), in(p.columns), out(n), bytes(kWrite)};
    case PassKind::kBiasAdd:
      return {in(n), in(p.columns), out(n)};
    case PassKind::kBiasGradient:
      return {in(n), fp32(p.columns, kUpdate)};
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return {in(n), fp32(p.rows * rope_head(p.columns), kRead), out(n)};
    case PassKind::kEmbeddingBackward:
      return {in(n), Operand{sized(n, p.dtype), kUpdate}};
    case PassKind::kCrossEntropyForward:
      return {in(n), fp32(n, kWrite), fp32(p.rows, kWrite)};
    case PassKind::kCrossEntropyBackward:
      return {fp32(n, kRead), out(n)};
    case PassKind::kGradientAccumulate:
      return {in(n), fp32(n, kUpdate)};
    case PassKind::kGradientNorm:
      return {fp32(n, kRead), fp32(1, kUpdate)};
    case PassKind::kAdam:
      return {fp32(n, kRead), fp32(n, kUpdate), fp32(n, kUpdate), fp32(n, kUpdate), out(n)};
    case PassKind::kOptimizer:
      return {fp32(n, kRead), fp32(n, kUpdate), fp32(n, kUpdate), out(n)};
    case PassKind::kCast:
      return {in(n), fp32(n, kWrite)};
    case PassKind::kZero:
      return {out(n)};
    case PassKind::kTernary:
      return {in(n), in(n), in(n), out(n)};
    case PassKind::kReduce:
      return {in(n), fp32(p.rows, kWrite)};
    case PassKind::kStatistics:
      return {in(n), fp32(2 * p.rows, kWrite)};
    case PassKind::kTopK:
      return {in(n), fp32(std::int64_t{2} * kTopK * p.rows, kWrite)};
    case PassKind::kExpand:
      return {fp32(p.rows, kRead), out(n)};
  }
  FORESHARD_CHECK(false);
}

}  // namespace

std::int64_t rope_head(std::int64_t columns) {
  if (columns % 128 == 0) return 128;
  if (columns % 64 == 0) return 64;
  return columns / 2 * 2;
}

Pass in_floating_point(Pass pass) {
  switch (pass.dtype) {
    case DType::kInt8:
      pass.dtype = DType::kFp8;
      break;
    case DType::kInt64:
      pass.columns *= 2;
      [[fallthrough]];
    case DType::kInt32:
    case DType::kTf32:
      pass.dtype = DType::kFp32;
      break;
    case DType::kFp32:
    case DType::kFp16:
    case DType::kBf16:
    case DType::kFp8:
      break;
  }
  return pass;
}

std::vector<Operand> operands_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return operands_of_kernel(k); }, kernel);
}

}  // namespace foreshard::replay::gpu
