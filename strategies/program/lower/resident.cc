#include "strategies/program/lower/resident.h"

#include <map>

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using program::MemoryKind;

// The blocks of a stage, with how often it has them.
template <class Visit>
void visit_blocks(const Strategy& strategy, const Model& model, const LoweredModel& blocks,
                  std::int64_t stage, Visit visit) {
  const auto split = layers_of_stages(strategy, model.layers);
  std::int64_t layers = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    layers += split[static_cast<std::size_t>(chunk * strategy.pipeline_parallel + stage)];
  if (stage == 0) visit(blocks.embedding, 1);
  if (layers > 0) visit(blocks.layer, layers);
  if (stage == strategy.pipeline_parallel - 1) visit(blocks.head, 1);
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

// The residual stream of a micro-batch on one rank, as it lies between two blocks.
Bytes boundary_bytes(const Strategy& strategy, const LoweredModel& blocks) {
  double count = 1;
  for (const auto extent : local_shape(blocks.boundary_shape, blocks.boundary, blocks.mesh))
    count *= static_cast<double>(extent);
  return size_of(strategy.precision) * count;
}

}  // namespace

std::int64_t elements_of_stage(const Strategy& strategy, const Model& model,
                               const LoweredModel& blocks, std::int64_t stage) {
  std::int64_t sum = 0;
  visit_blocks(strategy, model, blocks, stage, [&](const LoweredBlock& block, std::int64_t times) {
    sum += times * block.elements();
  });
  // One stage alone has a tied output projection once.
  if (model.tied_embeddings && strategy.stages() == 1) sum -= blocks.head.largest_parameter;
  return sum;
}

std::int64_t quantized_of_stage(const Strategy& strategy, const Model& model,
                                const LoweredModel& blocks, std::int64_t stage) {
  std::int64_t sum = 0;
  visit_blocks(strategy, model, blocks, stage, [&](const LoweredBlock& block, std::int64_t times) {
    sum += times * block.quantized;
  });
  return sum;
}

std::vector<program::StaticMemory> resident_memory(const Strategy& strategy, const Model& model,
                                                   const LoweredModel& blocks, std::int64_t stage) {
  const StateSharding sharding = state_sharding(strategy);
  const auto part = [&](bool cut) { return cut ? 1 / static_cast<double>(sharding.shards) : 1.0; };
  const Framework& framework = *strategy.framework;
  const ElementBytes bytes = element_bytes(strategy);
  const std::int64_t elements = elements_of_stage(strategy, model, blocks, stage);
  const std::int64_t quantized = quantized_of_stage(strategy, model, blocks, stage);
  const auto count = static_cast<double>(elements);
  // Of shards there are no copies; in fp32 they are those of the optimizer.
  const bool plain = bytes.parameter == size_of(strategy.precision);
  const double shards =
      plain ? static_cast<double>(gathered_elements(strategy, elements, quantized)) : count;
  std::vector<program::StaticMemory> memory{
      {MemoryKind::kParameters, sharding.cuts_parameters
                                    ? bytes.parameter * (shards * part(true))
                                    : whole_parameters(strategy, elements, quantized)}};
  Bytes buffers = framework.workspace;
  if (strategy.mode == Mode::kTrain) {
    memory.push_back({MemoryKind::kGradients, size_of(framework.gradients_of(strategy.precision)) *
                                                  (count * part(sharding.cuts_gradients))});
    memory.push_back(
        {MemoryKind::kOptimizer, bytes.optimizer * (count * part(sharding.cuts_optimizer))});
    buffers += placeholder_bytes(strategy, model, blocks, stage);
    const bool sends_gradients = stage > 0 || strategy.virtual_stages > 1;
    if (sends_gradients && strategy.micro_batches() > 1)
      buffers += boundary_bytes(strategy, blocks);
  }
  if (buffers > 0_B) memory.push_back({MemoryKind::kBuffers, buffers});
  return memory;
}

}  // namespace foreshard::lower
