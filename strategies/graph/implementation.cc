#include "strategies/graph/implementation.h"

#include <span>

namespace foreshard {
namespace {

// One kernel in the sequence of an eager operator.
struct Step {
  PassKind kind;
  bool fp32 = false;      // computes in fp32; else in the operator's dtype
  std::int64_t wide = 1;  // columns, as a multiple of the operator's
  bool one_row = false;   // runs over one row only
};

// x.float(); pow(2); mean; x times rsqrt of the row's mean; to(dtype); times weight.
constexpr Step kNormForward[]{{PassKind::kCast},         {PassKind::kUnary, true},
                              {PassKind::kReduce, true}, {PassKind::kUnary, true},
                              {PassKind::kCast},         {PassKind::kUnary}};
// Back through the weight (its gradient: product and sum over rows), the cast, the scaling by one
// number per row (its gradient: again product and sum) and the square; the two gradients of x are
// summed.
constexpr Step kNormBackward[]{
    {PassKind::kUnary},        {PassKind::kBinary},       {PassKind::kReduce},
    {PassKind::kCast},         {PassKind::kUnary, true},  {PassKind::kBinary, true},
    {PassKind::kReduce, true}, {PassKind::kExpand, true}, {PassKind::kUnary, true},
    {PassKind::kBinary, true}, {PassKind::kBinary, true}, {PassKind::kCast}};
// x.float(); complex product with the angles; to(dtype). The backward pass has the same kernels.
constexpr Step kRope[]{{PassKind::kCast}, {PassKind::kUnary, true}, {PassKind::kCast}};
// silu(gate); times up.
constexpr Step kSwigluForward[]{{PassKind::kUnary}, {PassKind::kBinary}};
// Gradients of silu(gate) and of up; gradient of gate; concatenation of both.
constexpr Step kSwigluBackward[]{
    {PassKind::kBinary}, {PassKind::kBinary}, {PassKind::kBinary}, {PassKind::kUnary, false, 2}};
// logits.float(); maximum; minus the maximum; exp; sum; divided by the sum.
constexpr Step kCrossEntropyForward[]{{PassKind::kCast},         {PassKind::kReduce, true},
                                      {PassKind::kUnary, true},  {PassKind::kUnary, true},
                                      {PassKind::kReduce, true}, {PassKind::kUnary, true}};
// Softmax with the incoming gradient; to(dtype).
constexpr Step kCrossEntropyBackward[]{{PassKind::kUnary, true}, {PassKind::kCast}};

constexpr Step kOfOneRow{PassKind::kUnary, false, 1, true};
// Choice: top-k; zeros, and the scores scattered into them; integer zeros, and ones scattered into
// them, as the map of chosen experts; sums of the map. Loss: softmax, top-k, map (4 kernels), the
// sums of both, their product, its sum, its factor, and two kernels to log it. Counts: cast to
// long; sums by rank; once all ranks have them, the counts of the rank's own experts, and their
// sums by rank, by part and by expert; three copies to the host.
constexpr Step kRouting[]{{PassKind::kTopK},
                          {PassKind::kZero},
                          {PassKind::kUnary},
                          {PassKind::kZero},
                          {PassKind::kUnary},
                          {PassKind::kUnary},
                          {PassKind::kUnary},
                          {PassKind::kReduce},
                          {PassKind::kSoftmaxForward, true},
                          {PassKind::kTopK, true},
                          {PassKind::kZero},
                          {PassKind::kUnary},
                          {PassKind::kUnary},
                          {PassKind::kUnary},
                          {PassKind::kReduce},
                          {PassKind::kReduce, true},
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow,
                          kOfOneRow};
// Choice: gradient of the chosen scores, gathered; zeros, and the gathered gradients scattered into
// them. Loss: gradients of its scale (2 kernels), of the product, of the sums and of the softmax;
// sum of both gradients of the scores.
constexpr Step kRoutingBackward[]{{PassKind::kUnary},
                                  {PassKind::kZero},
                                  {PassKind::kUnary},
                                  kOfOneRow,
                                  kOfOneRow,
                                  kOfOneRow,
                                  {PassKind::kExpand, true},
                                  {PassKind::kSoftmaxBackward, true},
                                  {PassKind::kBinary}};

std::span<const Step> eager_steps(PassKind kind) {
  switch (kind) {
    case PassKind::kRmsNormForward:
      return kNormForward;
    case PassKind::kRmsNormBackward:
      return kNormBackward;
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return kRope;
    case PassKind::kSwigluForward:
      return kSwigluForward;
    case PassKind::kSwigluBackward:
      return kSwigluBackward;
    case PassKind::kCrossEntropyForward:
      return kCrossEntropyForward;
    case PassKind::kCrossEntropyBackward:
      return kCrossEntropyBackward;
    case PassKind::kTopK:
      return kRouting;
    case PassKind::kZero:  // the only kernel of the gradient of a choice in one kernel
      return kRoutingBackward;
    default:
      return {};
  }
}

// Forward: maximum, then sum of exponentials. Backward: softmax, minus one at the target, times
// the incoming gradient.
constexpr Step kRecomputedLoss[]{{PassKind::kReduce}, {PassKind::kReduce}};
constexpr Step kRecomputedLossBackward[]{{PassKind::kUnary}};

// logits.float(); log_softmax. Of the target's logarithm: zeros, and one number a token; softmax
// with the incoming gradient; to(dtype).
constexpr Step kLogSoftmaxLoss[]{{PassKind::kCast}, {PassKind::kSoftmaxForward, true}};
constexpr Step kLogSoftmaxLossBackward[]{
    {PassKind::kZero, true}, {PassKind::kSoftmaxBackward, true}, {PassKind::kCast}};

std::span<const Step> log_softmax_steps(PassKind kind) {
  if (kind == PassKind::kCrossEntropyForward) return kLogSoftmaxLoss;
  if (kind == PassKind::kCrossEntropyBackward) return kLogSoftmaxLossBackward;
  return {};
}

std::span<const Step> recomputed_steps(PassKind kind) {
  if (kind == PassKind::kCrossEntropyForward) return kRecomputedLoss;
  if (kind == PassKind::kCrossEntropyBackward) return kRecomputedLossBackward;
  return {};
}

constexpr Step kRmsForwardFp32[]{{PassKind::kCast}, {PassKind::kRmsNormForward, true}};
constexpr Step kRmsBackwardFp32[]{{PassKind::kCast},
                                  {PassKind::kRmsNormForward, true},
                                  {PassKind::kRmsNormBackward, true},
                                  {PassKind::kCast}};
constexpr Step kLayerForwardFp32[]{{PassKind::kCast}, {PassKind::kLayerNormForward, true}};
constexpr Step kLayerBackwardFp32[]{{PassKind::kCast},
                                    {PassKind::kLayerNormForward, true},
                                    {PassKind::kLayerNormBackward, true},
                                    {PassKind::kCast}};

std::span<const Step> recomputed_fp32_steps(PassKind kind) {
  switch (kind) {
    case PassKind::kRmsNormForward:
      return kRmsForwardFp32;
    case PassKind::kRmsNormBackward:
      return kRmsBackwardFp32;
    case PassKind::kLayerNormForward:
      return kLayerForwardFp32;
    case PassKind::kLayerNormBackward:
      return kLayerBackwardFp32;
    default:
      return {};
  }
}

constexpr Step kRmsForwardAutocast[]{{PassKind::kRmsNormForward, true}, {PassKind::kCast}};
constexpr Step kRmsBackwardAutocast[]{{PassKind::kCast}, {PassKind::kRmsNormBackward, true}};
constexpr Step kLayerForwardAutocast[]{{PassKind::kLayerNormForward, true}, {PassKind::kCast}};
constexpr Step kLayerBackwardAutocast[]{{PassKind::kCast}, {PassKind::kLayerNormBackward, true}};

std::span<const Step> autocast_steps(PassKind kind) {
  switch (kind) {
    case PassKind::kRmsNormForward:
      return kRmsForwardAutocast;
    case PassKind::kRmsNormBackward:
      return kRmsBackwardAutocast;
    case PassKind::kLayerNormForward:
      return kLayerForwardAutocast;
    case PassKind::kLayerNormBackward:
      return kLayerBackwardAutocast;
    default:
      return {};
  }
}

std::span<const Step> steps_of(PassKind kind, Implementation how) {
  switch (how) {
    case Implementation::kFused:
      return {};
    case Implementation::kRecomputedFp32:
      return recomputed_fp32_steps(kind);
    case Implementation::kRecomputed:
      return recomputed_steps(kind);
    case Implementation::kEager:
      return eager_steps(kind);
    case Implementation::kAutocast:
      return autocast_steps(kind);
    case Implementation::kLogSoftmax:
      return log_softmax_steps(kind);
  }
  return {};
}

}  // namespace

std::vector<Kernel> kernels_of(const Pass& pass, Implementation how) {
  const auto steps = steps_of(pass.kind, how);
  if (steps.empty()) return {pass};
  std::vector<Kernel> kernels;
  for (const Step& step : steps) {
    if (step.kind == PassKind::kCast && size_of(pass.dtype) == size_of(DType::kFp32)) continue;
    kernels.emplace_back(Pass{.kind = step.kind,
                              .rows = step.one_row ? 1 : pass.rows,
                              .columns = step.wide * pass.columns,
                              .dtype = step.fp32 ? DType::kFp32 : pass.dtype});
  }
  return kernels;
}

}  // namespace foreshard
