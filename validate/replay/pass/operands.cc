#include "validate/replay/pass/operands.h"

#include "base/check.h"

namespace foreshard::replay {

std::size_t PassArray::bytes() const {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(dtype).in_base());
}

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
    case DType::kFp4:
      pass.columns = (pass.columns + 1) / 2;
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

// Arrays of Adam with p.state_bytes of state per element: as many 4-byte arrays as possible, then
// 1-byte arrays.
static std::vector<PassArray> adam_arrays(const Pass& p, const PassArray& gradient,
                                          const PassArray& copy) {
  std::vector<PassArray> arrays{gradient};
  for (int i = 0; i < p.state_bytes / 4; ++i)
    arrays.push_back({copy.count, DType::kFp32, Access::kUpdate});
  for (int i = 0; i < p.state_bytes % 4; ++i)
    arrays.push_back({copy.count, DType::kInt8, Access::kUpdate});
  arrays.push_back(copy);
  return arrays;
}

std::vector<PassArray> arrays_of(const Pass& given) {
  const Pass p = in_floating_point(given);
  const std::int64_t n = p.rows * p.columns;
  const auto in = [&](std::int64_t count) { return PassArray{count, p.dtype, Access::kRead}; };
  const auto out = [&](std::int64_t count) { return PassArray{count, p.dtype, Access::kWrite}; };
  const auto fp32 = [](std::int64_t count, Access access) {
    return PassArray{count, DType::kFp32, access};
  };
  const auto fp8 = [](std::int64_t count) { return PassArray{count, DType::kFp8, Access::kWrite}; };
  const auto bytes = [&](Access access) { return PassArray{n, DType::kInt8, access}; };
  // An RMS norm has gamma but no beta.
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
    case PassKind::kLongSoftmaxForward:
    case PassKind::kTranspose:
    case PassKind::kTokenPermute:
    case PassKind::kEmbeddingForward:
      return {in(n), out(n)};
    case PassKind::kGeluBackward:
    case PassKind::kSoftmaxBackward:
    case PassKind::kLongSoftmaxBackward:
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
      return {in(n), PassArray{n, p.dtype, kUpdate}};
    case PassKind::kCrossEntropyForward:
      return {in(n), fp32(n, kWrite), fp32(p.rows, kWrite)};
    case PassKind::kCrossEntropyBackward:
      return {fp32(n, kRead), out(n)};
    case PassKind::kGradientAccumulate:
      return {in(n), fp32(n, kUpdate)};
    case PassKind::kGradientNorm:
      return {fp32(n, kRead), fp32(1, kUpdate)};
    case PassKind::kAdam:
      if (p.state_bytes > 0) return adam_arrays(p, fp32(n, kRead), out(n));
      return {fp32(n, kRead), fp32(n, kUpdate), fp32(n, kUpdate), fp32(n, kUpdate), out(n)};
    case PassKind::kOptimizer:
      return {fp32(n, kRead), fp32(n, kUpdate), fp32(n, kUpdate), out(n)};
    case PassKind::kLambUpdate:
      return {fp32(n, kRead), fp32(n, kRead), fp32(n, kUpdate), fp32(n, kUpdate), fp32(n, kWrite)};
    case PassKind::kLambApply:
      return {fp32(n, kUpdate), fp32(n, kRead), out(n)};
    case PassKind::kCast:
      return {in(n), fp32(n, kWrite)};
    case PassKind::kQuantize:
      return {in(n), fp8(n)};
    case PassKind::kQuantizeFp4:  // two in a byte
      return {in(n), PassArray{n / 2, DType::kInt8, kWrite}};
    case PassKind::kQuantizeFp4Twice:
      return {in(n), PassArray{n / 2, DType::kInt8, kWrite},
              PassArray{n / 2, DType::kInt8, kWrite}};
    case PassKind::kDequantizeNf4:
      return {PassArray{n / 2, DType::kInt8, kRead}, out(n)};
    case PassKind::kQuantizeTwice:
    case PassKind::kQuantizeTranspose:
      return {in(n), fp8(n), fp8(n)};
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

}  // namespace foreshard::replay
