#include "strategies/program/lower/lower.h"

#include <fmt/format.h>
#include <set>
#include <utility>

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::lower {
namespace {

plan::Block planned(std::string name, const LoweredBlock& block) {
  return {.name = std::move(name), .groups = block.parameters};
}

}  // namespace

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

plan::Parts parts_of(const Model& model, const Strategy& strategy, const LoweredModel& blocks) {
  plan::Parts parts{
      .name = fmt::format("{}, tensor {} x pipeline {} x data {}{}", model.name,
                          strategy.tensor_parallel, strategy.pipeline_parallel,
                          strategy.data_parallel, strategy.mode == Mode::kTrain ? "" : ", forward"),
      .mesh = blocks.mesh,
      .boundaries = {"layer_out"}};
  parts.blocks.push_back(planned("embedding", blocks.embedding));
  const std::vector<LayerKind> kinds = model.layer_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i)
    parts.blocks.push_back(planned(foreshard::name_of(kinds[i]), blocks.layers[i]));
  parts.blocks.push_back(planned("head", blocks.head));
  const auto last_block = static_cast<std::int32_t>(parts.blocks.size()) - 1;
  parts.units.push_back({.name = "embedding", .block = 0});
  for (std::int32_t layer = 0; layer < model.layers; ++layer)
    parts.units.push_back({.name = fmt::format("layer {}", layer),
                           .block = 1 + static_cast<std::int32_t>(model.kind_index(layer)),
                           .layer = layer});
  parts.units.push_back({.name = "head", .block = last_block});
  std::int32_t next = 1;
  for (const std::int64_t layers : layers_of_stages(strategy, model.layers)) {
    parts.pieces.push_back({next, static_cast<std::int32_t>(layers)});
    next += static_cast<std::int32_t>(layers);
  }
  parts.pieces.front() = {0, parts.pieces.front().count + 1};
  ++parts.pieces.back().count;
  if (model.tied_embeddings)
    parts.tie = plan::Tie{.first_unit = 0,
                          .last_unit = static_cast<std::int32_t>(parts.units.size()) - 1,
                          .over = copy_axes(blocks.mesh),
                          .elements = blocks.head.largest_parameter};
  return parts;
}

PlannedBlocks planned_blocks(const LoweredModel& blocks, const Strategy& strategy) {
  std::set<Axis> split_over;
  for (std::size_t axis = 0; axis < blocks.mesh.size(); ++axis)
    if (const std::string& name = blocks.mesh[axis].name;
        name == "tensor" || name == "pipeline" || name == "expert")
      split_over.insert(static_cast<Axis>(axis));
  return {.blocks = blocks.all(),
          .boundaries = {{{.shape = blocks.boundary_shape,
                           .dtype = strategy.precision,
                           .lies = blocks.boundary,
                           .sent = blocks.boundary_sent}}},
          .split_over = std::move(split_over)};
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
  program::Program program =
      program_of(plan, strategy, planned_blocks(blocks, strategy), options.launch_time);
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage)
    program.roles[stage].memory =
        resident_memory(strategy, model, blocks, static_cast<std::int64_t>(stage));
  const bool trains = strategy.mode == Mode::kTrain;
  const auto samples = static_cast<double>(strategy.global_batch);
  program.totals = {
      .samples = samples,
      .tokens = samples * static_cast<double>(model.sequence),
      .model_flops = trains ? model_flops(model, samples) : forward_flops(model, samples),
      .peak_dtype = std::string(name_of(strategy.quantization == Quantization::kNone
                                            ? strategy.precision
                                            : dtype_of(strategy.quantization)))};
  return program;
}

}  // namespace foreshard::lower
