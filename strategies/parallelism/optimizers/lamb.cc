// LAMB: Adam whose step in each tensor is scaled by the ratio of two norms, the tensor's over the
// direction's. One kernel computes moments and directions; one kernel each reads the norms of
// weights and of directions, which are summed over all ranks that hold parts of a tensor; then
// comes the step. LAMB divides gradients by their global norm, the same one that clipping needs;
// frameworks that do not clip do without it.
//
// Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
// ICLR 2020, algorithm 2; NVIDIA/apex, csrc/multi_tensor_lamb.cu (two stages, with the norms of all
// tensors before each) and apex/contrib/optimizers/distributed_fused_lamb.py (shards whose norms
// are added up).
// Not modelled: directions that overwrite their gradients in memory.
#include <set>

#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

std::vector<Moment> lamb_moments(const Optimizer&, bool) {
  const Moment first{.dtype = DType::kFp32, .bytes = size_of(DType::kFp32)};
  Moment second = first;
  second.is_second = true;
  return {first, second};
}

// All axes whose ranks hold parts of these tensors.
std::vector<Axis> axes_of_parts(const UpdatedParameters& of) {
  std::set<Axis> axes(of.cut.begin(), of.cut.end());
  for (const MatrixGroup& one : of.matrices) axes.insert(one.split.begin(), one.split.end());
  return {axes.begin(), axes.end()};
}

std::vector<UpdateStep> lamb_update(const Update& update) {
  const std::int64_t count = update.elements();
  std::vector<UpdateStep> steps;
  const auto pass = [&](std::string_view name, PassKind kind, DType dtype) {
    steps.emplace_back(UpdateKernel{.name = name, .kernel = Pass{kind, count, 1, dtype}});
  };
  pass("lamb_update", PassKind::kLambUpdate, DType::kFp32);
  pass("lamb_norm", PassKind::kGradientNorm, DType::kFp32);
  pass("lamb_norm", PassKind::kGradientNorm, DType::kFp32);
  for (const UpdatedParameters& of : update.updated) {
    const std::vector<Axis> axes = axes_of_parts(of);
    if (ways(axes, update.mesh) > 1 && of.tensors > 0)
      steps.emplace_back(UpdateExchange{
          .name = "lamb_norms", .sums = true, .elements = 2 * of.tensors, .axes = axes});
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
