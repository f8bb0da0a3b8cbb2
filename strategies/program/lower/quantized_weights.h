/// \file
/// Weights that products read quantized: what a rank holds and gathers of them, and when it casts
/// them: after the optimizer, or after ZeRO 3 has gathered them for a pass.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// Bytes of `count` parameters in the form that products read, `quantized` of them in the format of
/// the strategy's recipe.
Bytes whole_parameters(const Strategy& strategy, std::int64_t count, std::int64_t quantized);
/// What data-parallel ranks gather of these parameters, in elements of the strategy's precision.
std::int64_t gathered_elements(const Strategy& strategy, std::int64_t count,
                               std::int64_t quantized);

/// How many weights of a group of plan::by_shards() a rank casts when the step ends: all quantized
/// weights that it holds, frozen ones too. Where weights are held in quantized form only, it casts
/// its shard of the weights that the step has changed. Not modelled: the copy along the other
/// dimension, which the rank then makes of what it gathered. Source: NVIDIA/TransformerEngine,
/// transformer_engine/pytorch/module/base.py (get_weight_workspace: with the first micro-batch of a
/// step, whether the weight is trained or not).
std::int64_t cast_at_step_end(const Strategy& strategy, const plan::ParameterGroup& group,
                              const std::vector<MeshAxis>& mesh);
/// How many weights a rank casts whenever they are gathered for a pass (ZeRO 3).
std::int64_t cast_at_gather(const Strategy& strategy, std::int64_t quantized, std::int64_t shard);
/// Appends the kernels that make the copies of `count` weights that products read, by the
/// strategy's recipe, on the stream `where`; `optimizer`: booked under the optimizer.
void append_weight_casts(program::Block& block, const Strategy& strategy, std::int64_t count,
                         StreamIndex where, bool optimizer);

}  // namespace foreshard::lower
