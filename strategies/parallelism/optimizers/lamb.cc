// The optimizer LAMB, a row of optimizer_rules(): Adam, but each tensor's step is scaled by the
// tensor's norm over the norm of its direction, which is what Adam would add to it. One kernel
// computes moments and directions; two more compute the norms, of the weights and of the
// directions, which are summed over all ranks that hold parts of a tensor; the last kernel changes
// the weights. Lowering and the search take these steps from the rule. Sizes are elements on one
// rank; without tensors, or where each lies on one rank, no norms are exchanged.
//
// LAMB also divides gradients by their global norm. It is the norm that clipping needs, and is
// computed there (gradient_passes in optimizer_block.cc): a framework that does not clip is
// predicted without it.
//
// Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
// ICLR 2020, algorithm 2; NVIDIA/apex, csrc/multi_tensor_lamb.cu (two stages, with the norms of all
// tensors before each) and apex/contrib/optimizers/distributed_fused_lamb.py (shards whose norms
// are added up).
// Not modelled: that apex writes directions over the gradients in memory.
#include <set>

#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

std::vector<Moment> lamb_moments(const Optimizer&, bool /*is_matrix*/) {
  const Moment first{.dtype = DType::kFp32, .bytes = size_of(DType::kFp32)};
  Moment second = first;
  second.is_second = true;
  return {first, second};
}

// All axes whose ranks hold parts of these tensors.
std::vector<Axis> axes_of_parts(const UpdatedParameters& updated) {
  std::set<Axis> axes(updated.cut.begin(), updated.cut.end());
  for (const MatrixGroup& group : updated.matrices)
    axes.insert(group.split.begin(), group.split.end());
  return {axes.begin(), axes.end()};
}

std::vector<UpdateStep> lamb_update(const Update& update) {
  const std::int64_t count = update.elements();
  std::vector<UpdateStep> steps;
  const auto pass = [&](std::string_view name, PassKind kind, DType dtype) {
    steps.emplace_back(
        UpdateKernel{.name = name, .kernel = Pass{.kind = kind, .rows = count, .dtype = dtype}});
  };
  pass("lamb_update", PassKind::kLambUpdate, DType::kFp32);
  pass("lamb_norm", PassKind::kGradientNorm, DType::kFp32);
  pass("lamb_norm", PassKind::kGradientNorm, DType::kFp32);
  for (const UpdatedParameters& updated : update.updated) {
    const std::vector<Axis> axes = axes_of_parts(updated);
    constexpr std::int64_t kNorms = 2;  // per tensor: that of the weights and of the direction
    if (ways(axes, update.mesh) > 1 && updated.tensors > 0)
      steps.emplace_back(UpdateExchange{
          .name = "lamb_norms", .sums = true, .elements = kNorms * updated.tensors, .axes = axes});
  }
  pass("lamb_apply", PassKind::kLambApply, update.precision);
  return steps;
}

}  // namespace

OptimizerRule lamb() {
  return {.name = "lamb",
          .doc = "LAMB: two moments, and a step in proportion to the norm of each tensor.",
          .whole_tensors = true,
          .moments = lamb_moments,
          .steps = lamb_update};
}

}  // namespace foreshard::optimizers
