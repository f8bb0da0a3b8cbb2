#include "strategies/program/lower/quantized_weights.h"

#include <cmath>
#include <numeric>

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

// Whether ranks hold quantized copies between steps: what autocast gathers in fp32 is quantized
// anew.
bool keeps_quantized(const Strategy& strategy) {
  return strategy.quantized_parameters && !strategy.framework->shards.gathered_fp32;
}

// Without a recipe, "quantized" weights are weights that are held in 4 bits.
bool are_in_4_bits(const Strategy& strategy) {
  return strategy.quantization == Quantization::kNone;
}

}  // namespace

Bytes whole_parameters(const Strategy& strategy, std::int64_t count, std::int64_t quantized) {
  if (strategy.framework->shards.gathered_fp32)
    return size_of(DType::kFp32) * static_cast<double>(count);
  if (are_in_4_bits(strategy))
    return size_of(strategy.precision) * static_cast<double>(count - quantized) +
           nf4_bytes() * static_cast<double>(quantized);
  const std::int64_t plain = strategy.quantized_parameters ? count - quantized : count;
  return size_of(strategy.precision) * static_cast<double>(plain) +
         weight_copies(strategy.quantization, strategy.one_copy_in_fp8) *
             static_cast<double>(quantized);
}

std::int64_t gathered_elements(const Strategy& strategy, std::int64_t count,
                               std::int64_t quantized) {
  if (strategy.framework->shards.gathered_fp32)
    return std::llround(static_cast<double>(count) *
                        (size_of(DType::kFp32) / size_of(strategy.precision)));
  if (!strategy.quantized_parameters && !are_in_4_bits(strategy)) return count;
  const Bytes each = are_in_4_bits(strategy) ? nf4_bytes() : gathered_copies(strategy.quantization);
  const double share = each / size_of(strategy.precision);
  return count - quantized + std::llround(share * static_cast<double>(quantized));
}

std::int64_t cast_at_step_end(const Strategy& strategy, const plan::ParameterGroup& group,
                              const std::vector<MeshAxis>& mesh) {
  const StateSharding states = state_sharding(strategy);
  if (!keeps_quantized(strategy)) return states.cuts_parameters ? 0 : group.quantized;
  if (states.cuts_parameters && holds_fp32(strategy)) return 0;
  std::int64_t changed = 0;
  for (const plan::ParameterGroup& trained : plan::trained_alone({group}))
    changed += trained.quantized;
  return states.cuts_optimizer ? plan::shard_of(changed, group, mesh) : changed;
}

std::int64_t cast_at_gather(const Strategy& strategy, std::int64_t quantized, std::int64_t shard) {
  const StateSharding states = state_sharding(strategy);
  if (!states.cuts_parameters) return 0;
  if (!keeps_quantized(strategy)) return quantized;
  return holds_fp32(strategy) ? shard : 0;
}

void append_weight_casts(program::Block& block, const Strategy& strategy, std::int64_t count,
                         StreamIndex where, bool optimizer) {
  if (strategy.quantization == Quantization::kNone || count == 0) return;
  // Weights lie in one flat buffer: rows of any length do.
  const std::int64_t columns = std::gcd(count, std::int64_t{1024});
  for (const Pass& pass : quantize_kernels(recipe_of_weights(strategy.quantization),
                                           count / columns, columns, strategy.precision))
    block.tasks.push_back({.name = "quantize weights",
                           .body = Kernel{pass},
                           .stream = stream(where),
                           .optimizer = optimizer});
}

}  // namespace foreshard::lower
