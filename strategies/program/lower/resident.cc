#include "strategies/program/lower/resident.h"

#include <algorithm>
#include <map>

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using program::MemoryKind;

// Calls `visit` with each distinct block of a stage and how often the stage has it.
template <class Visit>
void visit_blocks(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                  std::int64_t stage, Visit visit) {
  const auto split = variants_of_stages(model, strategy);
  std::vector<std::int64_t> layers(blocks.layers.size());
  bool has_head = false;
  for_each_piece(strategy, stage, [&](std::int64_t, std::int64_t piece) {
    for (std::size_t variant = 0; variant < layers.size(); ++variant)
      layers[variant] += split[static_cast<std::size_t>(piece)][variant];
    has_head = has_head || piece == strategy.stages() - 1;
  });
  if (stage == 0) visit(blocks.embedding, 1);
  for (std::size_t variant = 0; variant < layers.size(); ++variant)
    if (layers[variant] > 0) visit(blocks.layers[variant], layers[variant]);
  if (!has_head) return;
  for (const LoweredBlock& prediction : blocks.predictions) visit(prediction, 1);
  visit(blocks.head, 1);
}

Bytes placeholder_bytes(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                        std::int64_t stage) {
  if (!strategy.framework->keeps_gradient_placeholders) return {};
  std::map<std::vector<std::int64_t>, Bytes> shapes;
  visit_blocks(strategy, model, blocks, stage, [&](const LoweredBlock& block, std::int64_t) {
    shapes.insert(block.placeholders.begin(), block.placeholders.end());
  });
  Bytes sum;
  for (const auto& [shape, bytes] : shapes) sum += bytes;
  return sum;
}

// The residual stream of a micro-batch on one rank, in its layout between two blocks.
Bytes boundary_bytes(const Strategy& strategy, const LoweredModel& blocks) {
  double count = 1;
  for (const auto extent : local_shape(blocks.boundary_shape, blocks.boundary, blocks.mesh))
    count *= static_cast<double>(extent);
  return size_of(strategy.precision) * count;
}

}  // namespace

std::vector<plan::ParameterGroup> groups_of_stage(const Strategy& strategy, const Model& model,
                                                  const LoweredModel& blocks, std::int64_t stage) {
  std::vector<plan::ParameterGroup> groups;
  visit_blocks(strategy, model, blocks, stage, [&](const LoweredBlock& block, std::int64_t times) {
    for (plan::ParameterGroup group : block.parameters) {
      group.elements *= times;
      group.quantized *= times;
      group.frozen *= times;
      group.tensors *= times;
      for (Matrices& one : group.matrices) one.count *= times;
      groups.push_back(std::move(group));
    }
  });
  // A stage has the embedding's table once.
  const std::int64_t last = last_stage(strategy);
  const std::int64_t more = stage != last ? 0 : model.tables_behind() - (last == 0 ? 0 : 1);
  if (more > 0) {
    const std::int64_t again = -more * blocks.head.largest_parameter;
    const bool counts = rule_of(strategy.optimizer).whole_tensors && !model.freezes_embedding();
    groups.push_back({.over = copy_axes(blocks.mesh),
                      .elements = again,
                      .frozen = model.freezes_embedding() ? again : 0,
                      .tensors = counts ? -more : 0});
  }
  return groups;
}

bool reads_copy_of_table(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                         const LoweredBlock& block) {
  const bool is_head = &block == &blocks.head;
  const bool is_prediction = std::ranges::any_of(
      blocks.predictions, [&](const LoweredBlock& one) { return &one == &block; });
  if (!is_prediction && !(is_head && model.ties_head())) return false;
  const LoweredBlock& first = blocks.predictions.empty() ? blocks.head : blocks.predictions.front();
  return last_stage(strategy) == 0 || &block != &first;
}

std::vector<program::StaticMemory> resident_memory(const Strategy& strategy, const Model& model,
                                                   const LoweredModel& blocks, std::int64_t stage) {
  const StateSharding sharding = state_sharding(strategy);
  const Framework& framework = *strategy.framework;
  const ElementBytes bytes = element_bytes(strategy);
  // False: parameters are fp32 shards, which serve as the optimizer's master copy at the same time.
  const bool plain = bytes.parameter == size_of(strategy.precision);
  // Shards of gradients go to the CPU as soon as they are made.
  const bool on_cpu = strategy.offload_optimizer == OptimizerOffload::kCpu;
  Bytes parameters;
  double gradients = 0;
  double states = 0;
  double matrices = 0;  // the part of `states` in weights of layers
  for (const auto& group :
       plan::by_shards(groups_of_stage(strategy, model, blocks, stage), blocks.mesh)) {
    const double share = 1 / static_cast<double>(ways(group.over, blocks.mesh));
    const auto count = static_cast<double>(group.trained());
    const auto shards = static_cast<double>(
        plain ? gathered_elements(strategy, group.elements, group.quantized) : group.elements);
    // Parameters that only one rank holds are kept like shards where shards have another type.
    const bool is_cut = sharding.cuts_parameters && (!group.over.empty() || !plain);
    if (!is_cut)
      parameters += whole_parameters(strategy, group.elements, group.quantized);
    else if (!strategy.offload_parameters)
      parameters += bytes.parameter * (shards * share);
    // Gradients that are cut leave for the CPU after their reduction; others stay until the step.
    if (!on_cpu || !sharding.cuts_gradients || group.over.empty())
      gradients += count * (sharding.cuts_gradients ? share : 1.0);
    if (strategy.offload_optimizer != OptimizerOffload::kNone) continue;
    states += count * (sharding.cuts_optimizer ? share : 1.0);
    for (const Matrices& one : group.matrices)
      matrices += static_cast<double>(elements_of(one, blocks.mesh)) *
                  (sharding.cuts_optimizer ? share : 1.0);
  }
  std::vector<program::StaticMemory> memory{{MemoryKind::kParameters, parameters}};
  Bytes buffers = framework.workspace;
  if (strategy.mode == Mode::kTrain) {
    memory.push_back(
        {MemoryKind::kGradients, size_of(framework.gradients_of(strategy.precision)) * gradients});
    memory.push_back({MemoryKind::kOptimizer,
                      bytes.optimizer * states + (bytes.matrix - bytes.optimizer) * matrices});
    buffers += placeholder_bytes(strategy, model, blocks, stage);
    const bool sends_gradients = stage > 0 || strategy.virtual_stages > 1;
    if (sends_gradients && strategy.micro_batches() > 1)
      buffers += boundary_bytes(strategy, blocks);
  }
  if (buffers > 0_B) memory.push_back({MemoryKind::kBuffers, buffers});
  return memory;
}

}  // namespace foreshard::lower
