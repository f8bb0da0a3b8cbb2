// Stochastic gradient descent with momentum.
//
// Source: PyTorch, torch.optim.SGD (fused); NVIDIA/Megatron-LM, --optimizer sgd, --sgd-momentum.
#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

std::vector<Moment> sgd_moments(const Optimizer&, bool) {
  return {{.dtype = DType::kFp32, .bytes = size_of(DType::kFp32)}};
}

std::vector<UpdateStep> sgd_update(const Update& update) {
  return {UpdateKernel{
      .name = "sgd",
      .kernel = Pass{
          .kind = PassKind::kOptimizer, .rows = update.elements(), .dtype = update.precision}}};
}

}  // namespace

OptimizerRule sgd() {
  return {.name = "sgd",
          .doc = "Gradient descent with momentum: one moment of each parameter.",
          .moments = sgd_moments,
          .steps = sgd_update};
}

}  // namespace foreshard::optimizers
