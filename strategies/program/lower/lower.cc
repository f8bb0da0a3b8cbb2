#include "strategies/program/lower/lower.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/lower/program_per_rank.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::lower {
namespace {

plan::Block planned(std::string name, const LoweredBlock& block) {
  return {.name = std::move(name),
          .groups = block.parameters,
          .has_backward = !only_block(block.backward).tasks.empty(),
          .splits = block.split.has_value()};
}

program::Totals totals_of(const Model& model, const Strategy& strategy) {
  const bool trains = strategy.mode == Mode::kTrain;
  const auto sequences = static_cast<double>(strategy.global_batch);
  const std::optional<Samples>& samples = model.samples;
  const double useful = samples ? samples->useful_share(model.sequence) : 1;
  const double tokens = sequences * static_cast<double>(model.sequence) * useful;
  return {.samples = samples && samples->are_packed() ? tokens / samples->mean_length() : sequences,
          .tokens = tokens,
          .model_flops = trains ? model_flops(model, sequences) : forward_flops(model, sequences),
          .peak_dtype = std::string(name_of(strategy.quantization == Quantization::kNone
                                                ? strategy.precision
                                                : dtype_of(strategy.quantization)))};
}

// For ranks that take unequal numbers of micro-batches: lowers the Program of all ranks for each of
// these numbers, and joins them.
Result<program::Program> lower_shares(const Model& model, const Strategy& strategy,
                                      const LoweredModel& blocks, const LowerOptions& options) {
  std::vector<std::int64_t> shares;
  ProgramPerRank step;
  for (const std::int64_t share : strategy.batch_shares) {
    if (std::ranges::find(shares, share) != shares.end()) continue;
    shares.push_back(share);
    FORESHARD_ASSIGN(auto program,
                     lower(model, with_equal_shares(strategy, share), blocks, options));
    step.programs.push_back(std::move(program));
    step.names.push_back(fmt::format("{} {}", share, plural(share, "micro-batch")));
  }
  const program::Program& any = step.programs.front();
  const Axis data = axis_of(any.mesh, "data");
  for (std::int32_t rank = 0; rank < any.ranks(); ++rank) {
    const auto share = strategy.batch_share_of(program::coordinate_of(any, rank, data));
    step.program_of_rank.push_back(
        static_cast<std::size_t>(std::ranges::find(shares, share) - shares.begin()));
  }
  program::Program program = joined(std::move(step));
  program.totals = totals_of(model, strategy);
  return program;
}

}  // namespace

ElementBytes element_bytes(const Strategy& strategy) {
  const Bytes plain = size_of(strategy.precision);
  const Bytes state = optimizer_bytes(strategy.optimizer, strategy.precision, false);
  const Bytes matrix = optimizer_bytes(strategy.optimizer, strategy.precision, true);
  const Bytes own = size_of(DType::kFp32);
  const bool shards = state_sharding(strategy).cuts_parameters && strategy.framework->shards.fp32;
  if (!shards || plain == own) return {plain, state, matrix};
  return {own, state - own, matrix - own};
}

plan::Parts parts_of(const Model& model, const Strategy& strategy, const LoweredModel& blocks) {
  plan::Parts parts{
      .name = fmt::format("{}, tensor {} x pipeline {} x data {}{}", model.name,
                          strategy.tensor_parallel, strategy.pipeline_parallel,
                          strategy.data_parallel, strategy.mode == Mode::kTrain ? "" : ", forward"),
      .mesh = blocks.mesh,
      .boundaries = {"layer_out"}};
  parts.blocks.push_back(planned("embedding", blocks.embedding));
  const Layers layers = layers_of(model, strategy);
  for (std::size_t i = 0; i < layers.variants.size(); ++i)
    parts.blocks.push_back(planned(name_of(layers.variants[i], model, strategy), blocks.layers[i]));
  const auto first_prediction = static_cast<std::int32_t>(parts.blocks.size());
  for (std::size_t i = 0; i < blocks.predictions.size(); ++i)
    parts.blocks.push_back(
        planned(blocks.predictions.size() > 1 ? fmt::format("prediction {}", i + 1) : "prediction",
                blocks.predictions[i]));
  parts.blocks.push_back(planned("head", blocks.head));
  const auto last_block = static_cast<std::int32_t>(parts.blocks.size()) - 1;
  parts.units.push_back({.name = "embedding", .block = 0});
  for (std::int32_t layer = 0; layer < model.layers; ++layer)
    parts.units.push_back({.name = fmt::format("layer {}", layer),
                           .block = 1 + layers.of_layer[static_cast<std::size_t>(layer)],
                           .layer = layer,
                           .is_layer = true});
  // The prediction modules do not count as layers, as the first unit (the embedding) does not
  // either: the gradients of the table that they share are one buffer.
  for (std::int32_t i = first_prediction; i < last_block; ++i)
    parts.units.push_back({.name = parts.blocks[static_cast<std::size_t>(i)].name, .block = i});
  parts.units.push_back({.name = "head", .block = last_block});
  std::int32_t next = 1;
  for (const std::int64_t count : layers_of_stages(strategy, model.layers)) {
    parts.pieces.push_back({next, static_cast<std::int32_t>(count)});
    next += static_cast<std::int32_t>(count);
  }
  parts.pieces.front() = {0, parts.pieces.front().count + 1};
  parts.pieces.back().count += last_block - first_prediction + 1;
  if (const auto readers = static_cast<std::int32_t>(model.tables_behind()); readers > 0)
    parts.tie = plan::Tie{.first_unit = 0,
                          .others = {next, readers},
                          .over = copy_axes(blocks.mesh),
                          .elements = blocks.head.largest_parameter,
                          .is_frozen = model.freezes_embedding()};
  return parts;
}

PlannedBlocks planned_blocks(const LoweredModel& blocks, const Strategy& strategy) {
  const std::vector<Axis> split_over = split_axes(blocks.mesh);
  return {.blocks = blocks.all(),
          .boundaries = {{{.shape = blocks.boundary_shape,
                           .dtype = strategy.precision,
                           .lies = blocks.boundary,
                           .sent = blocks.boundary_sent}}},
          .split_over = {split_over.begin(), split_over.end()}};
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
  if (!strategy.batch_shares.empty())
    return Error{Error::Code::kInvalidInput,
                 "ranks of unequal batch_shares follow plans of their own; set batch_shares: [] "
                 "and the global_batch that one of them would make of all ranks"};
  return plan::make_plan(parts_of(model, strategy, blocks), strategy);
}

Result<program::Program> lower(const Model& model, const Strategy& strategy,
                               const LoweredModel& blocks, const LowerOptions& options) {
  if (!strategy.batch_shares.empty()) return lower_shares(model, strategy, blocks, options);
  FORESHARD_ASSIGN(const auto plan, plan_of(model, strategy, blocks));
  program::Program program =
      program_of(plan, strategy, planned_blocks(blocks, strategy), options.launch_time);
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage)
    program.roles[stage].memory =
        resident_memory(strategy, model, blocks, static_cast<std::int64_t>(stage));
  program.totals = totals_of(model, strategy);
  return program;
}

}  // namespace foreshard::lower
