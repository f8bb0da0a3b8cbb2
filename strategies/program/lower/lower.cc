#include "strategies/program/lower/lower.h"

#include <fmt/format.h>

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/lower/calls.h"
#include "strategies/program/lower/era.h"

namespace foreshard::lower {

Bytes optimizer_bytes(DType precision) {
  return precision == DType::kFp32 || precision == DType::kTf32 ? 8_B : 12_B;
}

ElementBytes element_bytes(const Strategy& strategy) {
  const Bytes plain = size_of(strategy.precision);
  const Bytes state = optimizer_bytes(strategy.precision);
  const Bytes own = size_of(DType::kFp32);
  const bool shards = state_sharding(strategy).cuts_parameters && strategy.framework->shards.fp32;
  if (!shards || plain == own) return {plain, state};
  return {own, state - own};
}

std::vector<Pass> optimizer_kernels(OptimizerKernels how, std::int64_t count, DType precision) {
  if (how == OptimizerKernels::kFused)
    return {{.kind = PassKind::kAdam, .rows = count, .dtype = precision}};
  std::vector<Pass> kernels;
  for (const PassKind kind :
       {PassKind::kUnary, PassKind::kBinary, PassKind::kUnary, PassKind::kBinary, PassKind::kUnary,
        PassKind::kUnary, PassKind::kUnary, PassKind::kTernary})
    kernels.push_back({.kind = kind, .rows = count, .dtype = DType::kFp32});
  return kernels;
}

void append_optimizer(program::Block& step, OptimizerKernels how, std::int64_t count,
                      DType precision) {
  for (const Pass& pass : optimizer_kernels(how, count, precision))
    step.tasks.push_back({.name = "adam",
                          .body = Kernel{pass},
                          .stream = stream(kComputeStream),
                          .optimizer = true});
}

Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LowerOptions& options) {
  FORESHARD_ASSIGN(const auto blocks, lower_blocks(model, strategy));
  return lower(model, strategy, blocks, options);
}

Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy) {
  FORESHARD_ASSIGN(const auto blocks, lower_blocks(model, strategy));
  return plan_of(model, strategy, blocks);
}

Result<plan::StepPlan> plan_of(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks) {
  return plan::make_plan(parts_of(model, strategy, blocks), strategy);
}

Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks, const LowerOptions& options) {
  FORESHARD_ASSIGN(const auto plan, plan_of(model, strategy, blocks));
  program::Program program;
  program.name = plan.parts.name;
  program.mesh = blocks.mesh;
  program.streams = streams();
  program.launch_time = options.launch_time + strategy.framework->host_time;
  append_roles(program, plan, model, strategy, blocks);
  const Axis pipeline = axis_of(program.mesh, "pipeline");
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const auto stage = program::coordinate_of(program, rank, pipeline);
    program.roles[static_cast<std::size_t>(stage)].ranks.push_back(rank);
  }
  if (strategy.framework->blocking_launches) block_launches(program);
  const bool trains = strategy.mode == Mode::kTrain;
  const auto samples = static_cast<double>(strategy.global_batch);
  program.totals = {
      .samples = samples,
      .tokens = samples * static_cast<double>(model.sequence),
      .model_flops = trains ? model_flops(model, samples) : forward_flops(model, samples),
      .peak_dtype = std::string(name_of(strategy.precision))};
  return program;
}

}  // namespace foreshard::lower
