#include "validate/replay/gpu/passes.h"

#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {

cudaError_t launch_pass(const Pass& given, std::span<void* const> operands, cudaStream_t stream) {
  const Pass pass = in_floating_point(given);
  if (pass.rows == 0) return cudaSuccess;
  switch (pass.kind) {
    case PassKind::kLayerNormForward:
    case PassKind::kRmsNormForward:
    case PassKind::kSoftmaxForward:
    case PassKind::kSoftmaxBackward:
    case PassKind::kCrossEntropyForward:
    case PassKind::kReduce:
    case PassKind::kStatistics:
    case PassKind::kTopK:
      return internal::launch_rows(pass, operands, stream);
    case PassKind::kLayerNormBackward:
    case PassKind::kRmsNormBackward:
    case PassKind::kBiasGradient:
    case PassKind::kTranspose:
    case PassKind::kGradientNorm:
      return internal::launch_columns(pass, operands, stream);
    case PassKind::kDropoutForward:
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddForward:
    case PassKind::kBiasDropoutAddBackward:
    case PassKind::kEmbeddingBackward:
    case PassKind::kCrossEntropyBackward:
    case PassKind::kGradientAccumulate:
    case PassKind::kAdam:
    case PassKind::kOptimizer:
    case PassKind::kCast:
    case PassKind::kExpand:
      return internal::launch_update(pass, operands, stream);
    case PassKind::kGeluForward:
    case PassKind::kGeluBackward:
    case PassKind::kSwigluForward:
    case PassKind::kSwigluBackward:
    case PassKind::kResidualAdd:
    case PassKind::kBiasAdd:
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
    case PassKind::kEmbeddingForward:
    case PassKind::kTokenPermute:
    case PassKind::kZero:
    case PassKind::kUnary:
    case PassKind::kBinary:
    case PassKind::kTernary:
      return internal::launch_map(pass, operands, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace foreshard::replay::gpu
