// Adam and AdamW: both have the same states and the same traffic.
//
// Its moments may have fewer bits than fp32, and so may the master copy; arithmetic is in fp32.
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 3.3.3 (moments in
// bf16, master weights and gradients in fp32); NVIDIA/Megatron-LM, megatron/core/optimizer/
// optimizer_config.py (use_precision_aware_optimizer: exp_avg_dtype, exp_avg_sq_dtype,
// main_params_dtype, store_param_remainders); NVIDIA/TransformerEngine,
// transformer_engine/pytorch/optimizers/fused_adam.py (moments in fp8 and fp16 have a scale for
// each tensor, of four bytes: not counted). Not modelled: gradients that the kernel reads in fewer
// bits than fp32.
#include "strategies/parallelism/framework.h"
#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

constexpr std::int64_t kFp32States = 12;  // bytes per element that PassKind::kAdam already counts

std::int64_t whole_bytes(DType dtype) {
  return static_cast<std::int64_t>(size_of(dtype).in_base());
}

std::vector<Moment> adam_moments(const Optimizer& optimizer, bool) {
  return {{.dtype = optimizer.first_moment, .bytes = size_of(optimizer.first_moment)},
          {.is_second = true,
           .dtype = optimizer.second_moment,
           .bytes = size_of(optimizer.second_moment)}};
}

// Adam as a loop of kernels:
//
//     exp_avg *= beta1; exp_avg += (1 - beta1) g; exp_avg_sq *= beta2; exp_avg_sq += ... g g;
//     root = sqrt(exp_avg_sq); root /= correction; root += eps; p -= rate exp_avg / root
//
// These move 80 bytes per element, and the fused kernel 28 (mosaicml/composer,
// composer/optim/decoupled_weight_decay.py: adamw).
// Not modelled: one launch of each kernel per parameter tensor.
std::vector<UpdateStep> loop(const Update& update, std::int64_t count) {
  std::vector<UpdateStep> steps;
  const auto add = [&](PassKind kind, DType dtype) {
    steps.emplace_back(UpdateKernel{.name = "adam", .kernel = Pass{kind, count, 1, dtype}});
  };
  const Optimizer& of = update.optimizer;
  for (const DType moment : {of.first_moment, of.second_moment}) {
    add(PassKind::kUnary, moment);
    add(PassKind::kBinary, moment);
  }
  for (int i = 0; i < 3; ++i) add(PassKind::kUnary, of.second_moment);
  add(PassKind::kTernary, of.master);
  return steps;
}

std::vector<UpdateStep> adam_update(const Update& update) {
  const Optimizer& of = update.optimizer;
  return adam_steps(update, update.elements(),
                    whole_bytes(of.first_moment) + whole_bytes(of.second_moment));
}

}  // namespace

std::vector<UpdateStep> adam_steps(const Update& update, std::int64_t count, std::int64_t moments) {
  if (update.kernels == OptimizerKernels::kLoop) return loop(update, count);
  // Bytes per element that are both read and written. Remainders: 2 bytes, and the parameter's 2
  // bytes are read too (it is written as the working copy), which counts as 3. A 16-bit parameter
  // that is updated in place is written only once, which the kernel already counts as the working
  // copy: it counts as 1.
  const bool is_updated_itself =
      size_of(update.precision) == 2_B && !has_master(update.optimizer, update.precision);
  const std::int64_t master = update.optimizer.remainders ? 3
                                                          : whole_bytes(update.optimizer.master) -
                                                                (is_updated_itself ? 1 : 0);
  const std::int64_t states = master + moments;
  return {UpdateKernel{.name = "adam",
                       .kernel = Pass{.kind = PassKind::kAdam,
                                      .rows = count,
                                      .dtype = update.precision,
                                      .state_bytes = static_cast<std::int32_t>(
                                          states == kFp32States ? 0 : states)}}};
}

OptimizerRule adam() {
  return {.name = "adam",
          .doc = "Adam, or AdamW: two moments of each parameter.",
          .chooses_moments = true,
          .chooses_master = true,
          .moments = adam_moments,
          .steps = adam_update};
}

}  // namespace foreshard::optimizers
