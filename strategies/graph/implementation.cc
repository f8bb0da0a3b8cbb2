#include "strategies/graph/implementation.h"

#include <span>

namespace foreshard {
namespace {

// One kernel of a sequence.
struct Step {
  PassKind kind;
  bool fp32 = false;      // in fp32; else in the operator's dtype
  std::int64_t wide = 1;  // columns, in those of the operator
  bool one_row = false;   // of one row alone
};

// x.float(); pow(2); mean; times rsqrt of each row's; to(dtype); times weight.
constexpr Step kNormForward[]{{PassKind::kCast},         {PassKind::kUnary, true},
                              {PassKind::kReduce, true}, {PassKind::kUnary, true},
                              {PassKind::kCast},         {PassKind::kUnary}};
// Through the weight (its gradient: product and sum over rows), the cast, the scaling by the row's
// number (whose gradient is again product and sum), the square; the two gradients of x summed.
constexpr Step kNormBackward[]{
    {PassKind::kUnary},        {PassKind::kBinary},       {PassKind::kReduce},
    {PassKind::kCast},         {PassKind::kUnary, true},  {PassKind::kBinary, true},
    {PassKind::kReduce, true}, {PassKind::kExpand, true}, {PassKind::kUnary, true},
    {PassKind::kBinary, true}, {PassKind::kBinary, true}, {PassKind::kCast}};
// x.float(); complex product with the angles; to(dtype). The backward pass alike.
constexpr Step kRope[]{{PassKind::kCast}, {PassKind::kUnary, true}, {PassKind::kCast}};
// silu(gate); times up.
constexpr Step kSwigluForward[]{{PassKind::kUnary}, {PassKind::kBinary}};
// Of silu and of up; of gate; both put side by side.
constexpr Step kSwigluBackward[]{
    {PassKind::kBinary}, {PassKind::kBinary}, {PassKind::kBinary}, {PassKind::kUnary, false, 2}};
// logits.float(); maximum; minus it; exp; sum; divided by it.
constexpr Step kCrossEntropyForward[]{{PassKind::kCast},         {PassKind::kReduce, true},
                                      {PassKind::kUnary, true},  {PassKind::kUnary, true},
                                      {PassKind::kReduce, true}, {PassKind::kUnary, true}};
// Softmax times the incoming gradient; to(dtype).
constexpr Step kCrossEntropyBackward[]{{PassKind::kUnary, true}, {PassKind::kCast}};

constexpr Step kOfOneRow{PassKind::kUnary, false, 1, true};
// The choice; zeros, and scores put there; zeros as whole numbers, ones put there, as a map; its
// sums. The loss: softmax, choice, map (4), the sums of both, their product, its sum, its factor,
// and two to log it. The counts as long numbers; sums by rank; after all ranks have them: those of
// the own experts, and their sums by rank, by part and by expert; three copies to the host.
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
// Of the scores, picked; zeros, and what was picked put there. Of the loss: its scale (2), of the
// product, of the sums, of the softmax; both gradients of the scores summed.
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
    case PassKind::kZero:  // all that is left of a choice's gradient where it is one kernel
      return kRoutingBackward;
    default:
      return {};
  }
}

// Maximum, then sum of exponentials; softmax less one at the target, times the incoming gradient.
constexpr Step kRecomputedLoss[]{{PassKind::kReduce}, {PassKind::kReduce}};
constexpr Step kRecomputedLossBackward[]{{PassKind::kUnary}};

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
