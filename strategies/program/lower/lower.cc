#include "strategies/program/lower/lower.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/resident.h"

namespace foreshard::lower {
namespace {

// A step in which ranks of one stage do different things, joined from one Program for each kind of
// rank.
//
//     programs 0, 1 with roles "stage 0", "stage 1"; ranks 0 to 3 of 4 follow 0, 0, 1, 1
//     -> roles "stage 0, 6 micro-batches" (rank 0), "stage 0, 2 micro-batches" (rank 2), ...

struct ProgramPerRank {
  // At least one Program. All have the same mesh, streams and stages (roles), and the same number
  // of operations between ranks for each tag.
  std::vector<program::Program> programs{};
  std::vector<std::string> names{};            // Per program: a suffix that tells its roles apart.
  std::vector<std::size_t> program_of_rank{};  // rank -> the program that it follows.
};

using program::Block;
using program::BlockId;
using program::Program;
using program::Role;

// The blocks of several Programs; equal blocks are held once.
class Blocks {
 public:
  // \param name  tells it apart from a different block of the same name.
  BlockId id_of(Block block, const std::string& name) {
    auto found = known_.find(block.name);
    if (found != known_.end() && all_[found->second.index()] != block) {
      block.name += ", " + name;
      found = known_.find(block.name);
    }
    if (found != known_.end()) return found->second;
    const BlockId id{static_cast<std::int64_t>(all_.size())};
    known_.emplace(block.name, id);
    all_.push_back(std::move(block));
    return id;
  }
  std::vector<Block> take() { return std::move(all_); }

 private:
  std::vector<Block> all_;
  std::map<std::string, BlockId> known_;
};

// One Program in which each rank makes the calls of its own program. Everything else is taken from
// the first program; the caller has to set `totals`.
Program joined(ProgramPerRank step) {
  Blocks blocks;
  std::vector<std::vector<BlockId>> ids;
  for (std::size_t p = 0; p < step.programs.size(); ++p) {
    ids.emplace_back();
    for (Block& block : step.programs[p].blocks)
      ids[p].push_back(blocks.id_of(std::move(block), step.names[p]));
  }
  std::vector<Role> roles;
  for (std::size_t stage = 0; stage < step.programs.front().roles.size(); ++stage) {
    for (std::size_t p = 0; p < step.programs.size(); ++p) {
      Role role = std::move(step.programs[p].roles[stage]);
      role.name += ", " + step.names[p];
      std::erase_if(role.ranks, [&](std::int32_t rank) {
        return step.program_of_rank[static_cast<std::size_t>(rank)] != p;
      });
      for (program::Call& call : role.calls) call.block = ids[p][call.block.index()];
      if (!role.ranks.empty()) roles.push_back(std::move(role));
    }
  }
  Program all = std::move(step.programs.front());
  all.blocks = blocks.take();
  all.roles = std::move(roles);
  return all;
}

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
