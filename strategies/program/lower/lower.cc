// Makes the Program of a transformer's step: lowered blocks (block.h), the parts that the planners
// take, the step plan, the calls (calls.h), and the memory of each stage. What simulates a
// transformer runs all of it (sim/study/run.cc); the search takes the parts alone
// (sim/search/internal/). Sizes are elements or bytes on one rank. Where ranks take unequal numbers
// of micro-batches, each number gives a Program, and these are joined.
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
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using program::MemoryKind;

// A step in which ranks of one stage do different things: a Program for each kind of rank, and
// which rank follows which. joined() makes one Program of them.
//
//     programs 0, 1 with roles "stage 0", "stage 1"; ranks 0 to 3 of 4 follow 0, 0, 1, 1
//     -> roles "stage 0, 6 micro-batches" (rank 0), "stage 0, 2 micro-batches" (rank 2), ...
struct ProgramPerRank {
  // At least one Program. All have the same mesh, streams and stages (roles), and for each tag the
  // same number of communications.
  std::vector<program::Program> programs{};
  std::vector<std::string> names{};            // Per program: a suffix that tells its roles apart.
  std::vector<std::size_t> program_of_rank{};  // rank -> the program that it follows.
};

using program::Block;
using program::BlockId;
using program::Program;
using program::Role;

// The blocks of several Programs; equal blocks are held once.
class BlockPool {
 public:
  // \param program_name  appended to the block's name if a different block has that name already.
  BlockId id_of(Block block, const std::string& program_name) {
    auto found = known_.find(block.name);
    if (found != known_.end() && all_[found->second.index()] != block) {
      block.name += ", " + program_name;
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
// the first program; the caller has to set `totals`, because each program counts the samples of all
// ranks as if they took its number of micro-batches.
Program joined(ProgramPerRank step) {
  BlockPool blocks;
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
          .splits = block.split.has_value(),
          .host_waits = host_waits_in(block.forward)};
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

// Calls `visit` with the place of each distinct block of a stage in LoweredModel::all(), and how
// often the stage has it.
template <class Visit>
void visit_blocks(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                  std::int64_t stage, Visit visit) {
  const auto layers_of_pieces = variants_of_stages(model, strategy);
  std::vector<std::int64_t> layers(blocks.layers.size());
  bool has_head = false;
  for_each_piece(strategy, stage, [&](std::int64_t, std::int64_t piece) {
    for (std::size_t variant = 0; variant < layers.size(); ++variant)
      layers[variant] += layers_of_pieces[static_cast<std::size_t>(piece)][variant];
    has_head = has_head || piece == strategy.stages() - 1;
  });
  std::size_t block = 0;
  if (stage == 0) visit(block, 1);
  for (const std::int64_t times : layers)
    if (++block; times > 0) visit(block, times);
  for (std::size_t behind = 0; has_head && behind <= blocks.predictions.size(); ++behind)
    visit(++block, 1);
}

// The gradient tensors that autograd expects although products add up gradients themselves
// (Framework::keeps_gradient_placeholders). Parameters of one shape share one.
Bytes placeholder_bytes(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                        std::int64_t stage) {
  if (!strategy.framework->keeps_gradient_placeholders) return {};
  std::map<std::vector<std::int64_t>, Bytes> shapes;
  const auto all = blocks.all();
  visit_blocks(strategy, model, blocks, stage, [&](std::size_t block, std::int64_t) {
    shapes.insert(all[block]->placeholders.begin(), all[block]->placeholders.end());
  });
  Bytes sum;
  for (const auto& [shape, bytes] : shapes) sum += bytes;
  return sum;
}

// Memory in which gradients come to lie that activations and the work of the loss had before: all
// of both is gone when the last gradient is there. Each unit of a backward pass makes gradients and
// frees activations, so that their sum is largest at one end of the pass.
// Not modelled: several micro-batches, of which the first finds no gradients; pipelines.
Bytes room_for_gradients(const Strategy& strategy, const Model& model, const LoweredModel& blocks) {
  if (!strategy.framework->gradients_in_backward || strategy.mode != Mode::kTrain ||
      strategy.pipeline_parallel > 1 || strategy.micro_batches() > 1 || strategy.offloads())
    return {};
  Bytes room;
  Bytes last;  // work of a layer's backward pass
  const auto all = blocks.all();
  visit_blocks(strategy, model, blocks, 0, [&](std::size_t at, std::int64_t times) {
    const LoweredBlock& block = *all[at];
    room += static_cast<double>(times) * block.saved;
    if (&block != &blocks.head && &block != &blocks.embedding)
      last = std::max(last, block.transient_backward);
  });
  return std::max(0_B, room + blocks.head.transient_backward - last);
}

// The embedding's table, which units behind the layers read too.
plan::TiedWeights table_of(const Model& model, const LoweredModel& blocks) {
  return {.over = copy_axes(blocks.mesh),
          .elements = blocks.head.largest_parameter,
          .is_frozen = model.freezes_embedding()};
}

// The residual stream of a micro-batch on one rank, in its layout between two blocks.
Bytes boundary_bytes(const Strategy& strategy, const LoweredModel& blocks) {
  double count = 1;
  for (const auto extent : local_shape(blocks.boundary_shape, blocks.boundary, blocks.mesh))
    count *= static_cast<double>(extent);
  return size_of(strategy.precision) * count;
}

}  // namespace

ElementBytes element_bytes(const Strategy& strategy) {
  const Bytes in_precision = size_of(strategy.precision);
  const Bytes state = optimizer_bytes(strategy.optimizer, strategy.precision, false);
  const Bytes matrix = optimizer_bytes(strategy.optimizer, strategy.precision, true);
  const Bytes in_fp32 = size_of(DType::kFp32);
  if (!holds_fp32(strategy) || in_precision == in_fp32) return {in_precision, state, matrix};
  // The fp32 shards are the master copy, which the optimizer's state then does without.
  return {in_fp32, state - in_fp32, matrix - in_fp32};
}

plan::PlannedModel parts_of(const Model& model, const Strategy& strategy,
                            const LoweredModel& blocks) {
  plan::PlannedModel parts{
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
  // Like the embedding and the head, the prediction modules are no layers (Unit::is_layer).
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
    (parts.tie = table_of(model, blocks))->others = {next, readers};
  return parts;
}

PlannedBlocks planned_blocks(const LoweredModel& blocks, const Strategy& strategy) {
  return {.blocks = blocks.all(),
          .boundaries = {{{.shape = blocks.boundary_shape,
                           .dtype = strategy.precision,
                           .lies = blocks.boundary,
                           .sent = blocks.boundary_sent}}},
          .split_over = split_over(blocks.mesh)};
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
                 "and the global_batch that results if all ranks take the share of one"};
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

std::vector<plan::ParameterGroup> groups_of_stage(const Strategy& strategy, const Model& model,
                                                  const LoweredModel& blocks, std::int64_t stage) {
  std::vector<plan::ParameterGroup> groups;
  visit_blocks(strategy, model, blocks, stage, [&](std::size_t block, std::int64_t times) {
    for (plan::ParameterGroup group : own_groups(strategy, model, blocks, block)) {
      group.elements *= times;
      group.quantized *= times;
      group.frozen *= times;
      group.tensors *= times;
      for (MatrixGroup& one : group.matrices) one.count *= times;
      groups.push_back(std::move(group));
    }
  });
  return groups;
}

std::vector<plan::ParameterGroup> own_groups(const Strategy& strategy, const Model& model,
                                             const LoweredModel& blocks, std::size_t block) {
  const auto all = blocks.all();
  const std::vector<plan::ParameterGroup>& groups = all[block]->parameters;
  const auto readers = static_cast<std::size_t>(model.tables_behind());
  const std::size_t first = all.size() - blocks.predictions.size() - 1;
  const bool reads = block >= first && block < first + readers;
  if (!reads || (last_stage(strategy) != 0 && block == first)) return plan::by_axes(groups);
  return plan::without_tie(groups, table_of(model, blocks));
}

std::set<Axis> split_over(const std::vector<MeshAxis>& mesh) {
  const std::vector<Axis> axes = split_axes(mesh);
  return {axes.begin(), axes.end()};
}

std::vector<program::StaticMemory> resident_memory(const Strategy& strategy, const Model& model,
                                                   const LoweredModel& blocks, std::int64_t stage) {
  Bytes buffers;
  if (strategy.mode == Mode::kTrain) {
    buffers = placeholder_bytes(strategy, model, blocks, stage);
    const bool sends_gradients = stage > 0 || strategy.virtual_stages > 1;
    if (sends_gradients && strategy.micro_batches() > 1)
      buffers += boundary_bytes(strategy, blocks);
  }
  const auto groups = groups_of_stage(strategy, model, blocks, stage);
  auto memory = resident_memory(
      strategy, state_sharding(strategy),
      {.mesh = blocks.mesh, .groups = plan::by_shards(groups, blocks.mesh), .buffers = buffers});
  const Bytes room = room_for_gradients(strategy, model, blocks);
  for (program::StaticMemory& one : memory)
    if (one.kind == MemoryKind::kGradients) one.bytes = std::max(0_B, one.bytes - room);
  return memory;
}

std::vector<program::StaticMemory> resident_memory(const Strategy& strategy,
                                                   const StateSharding& sharding,
                                                   const HeldParts& held) {
  const Framework& framework = *strategy.framework;
  const ElementBytes bytes = element_bytes(strategy);
  const bool in_precision = bytes.parameter == size_of(strategy.precision);  // else fp32 shards
  const bool steps_on_cpu = strategy.offload_optimizer == OptimizerOffload::kCpu;
  Bytes parameters = held.whole.value_or(0_B);
  double gradients = 0;
  double states = 0;
  double matrices = 0;  // the part of `states` in weights of layers (ElementBytes::matrix)
  for (const plan::ParameterGroup& group : held.groups) {
    const double share = 1 / static_cast<double>(ways(group.over, held.mesh));
    const auto part = [&](std::int64_t count, bool cut) {
      if (cut && held.pads_shards) return static_cast<double>(shard_of(count, group, held.mesh));
      return static_cast<double>(count) * (cut ? share : 1.0);
    };
    // Where shards are fp32, parameters that one rank holds alone are fp32 as well.
    if (!sharding.cuts_parameters || (group.over.empty() && (in_precision || held.whole))) {
      if (!held.whole)
        parameters += in_precision ? whole_parameters(strategy, group.elements, group.quantized)
                                   : bytes.parameter * static_cast<double>(group.elements);
    } else if (!strategy.offload_parameters) {
      parameters += bytes.parameter *
                    part(in_precision ? gathered_elements(strategy, group.elements, group.quantized)
                                      : group.elements,
                         true);
    }
    // Shards of gradients leave for the CPU after their reduction; whole ones stay until the step.
    if (!steps_on_cpu || !sharding.cuts_gradients || group.over.empty())
      gradients += part(group.trained(), sharding.cuts_gradients);
    if (strategy.offload_optimizer != OptimizerOffload::kNone) continue;
    states += part(group.trained(), sharding.cuts_optimizer);
    for (const MatrixGroup& one : group.matrices)
      matrices += part(elements_of(one, held.mesh), sharding.cuts_optimizer);
  }
  std::vector<program::StaticMemory> memory{{MemoryKind::kParameters, parameters}};
  if (strategy.mode == Mode::kTrain) {
    memory.push_back(
        {MemoryKind::kGradients, size_of(framework.gradients_of(strategy.precision)) * gradients});
    memory.push_back({MemoryKind::kOptimizer,
                      bytes.optimizer * states + (bytes.matrix - bytes.optimizer) * matrices});
    if (held.row_states > 0_B) memory.push_back({MemoryKind::kOptimizer, held.row_states});
  }
  const Bytes buffers = framework.workspace + held.buffers;
  if (buffers > 0_B) memory.push_back({MemoryKind::kBuffers, buffers});
  return memory;
}

}  // namespace foreshard::lower
