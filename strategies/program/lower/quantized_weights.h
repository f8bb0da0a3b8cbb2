/// \file
/// Weights that products read quantized: what a rank holds and gathers of them, and when it casts
/// them. Casts follow the optimizer, or the gathers of ZeRO 3 for a pass.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// Parameters of `count` elements as products read them, `quantized` of them by the strategy's
/// recipe.
Bytes whole_parameters(const Strategy& strategy, std::int64_t count, std::int64_t quantized);
/// What data-parallel ranks gather of them, in elements of the strategy's precision.
std::int64_t gathered_elements(const Strategy& strategy, std::int64_t count,
                               std::int64_t quantized);

/// How many weights of a group of plan::by_shards() a rank casts when the step ends: all quantized
/// ones that it holds, frozen ones too; of weights that are held quantized alone, its shard of
/// those that the step has changed. Not modelled: the copy along the other dimension, which such a
/// rank makes of what it gathered. Source: NVIDIA/TransformerEngine,
/// transformer_engine/pytorch/module/base.py (get_weight_workspace: with the first micro-batch of a
/// step, whether the weight is trained or not).
std::int64_t cast_at_step_end(const Strategy& strategy, const plan::ParameterGroup& group,
                              const std::vector<MeshAxis>& mesh);
/// The same whenever they are gathered for a pass (ZeRO 3).
std::int64_t cast_at_gather(const Strategy& strategy, std::int64_t quantized, std::int64_t shard);
/// What makes the copies of `count` weights that products read, by the strategy's recipe.
std::vector<Pass> weight_casts(const Strategy& strategy, std::int64_t count);
/// Appends them as tasks on that stream; `optimizer`: as a part of the optimizer's step.
void append_weight_casts(program::Block& block, const Strategy& strategy, std::int64_t count,
                         StreamIndex where, bool optimizer);

}  // namespace foreshard::lower
