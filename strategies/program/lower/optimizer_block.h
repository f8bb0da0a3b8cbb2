/// \file
/// The end of a training step: the parameters are updated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// The steps of the strategy's optimizer on a rank that holds these groups of plan::by_shards().
std::vector<UpdateStep> update_steps(const Strategy& strategy, const std::vector<MeshAxis>& mesh,
                                     const std::vector<plan::ParameterGroup>& groups);

/// Parameters of one device that a step updates.
struct UpdatedShare {
  std::int64_t count = 0;
  std::int64_t left = 0;       ///< Parameters with gradients not yet on the host, if it updates.
  std::int64_t quantized = 0;  ///< Weights to cast for the products of the next step.
};

/// A pass over the gradients of one rank.
struct GradientPass {
  std::string_view name;
  Pass pass;
};
/// The passes over `count` gradients before their update on the device, in order: conversion from
/// 16 bits to fp32, division by the scale of the loss (fp16), the sum of their squares, the factor
/// that clips them.
/// Source: NVIDIA/Megatron-LM v2.5, megatron/optimizer/optimizer.py and clip_grads.py;
/// deepspeedai/DeepSpeed v0.6.7, runtime/fp16/fused_optimizer.py (unscale_and_clip_grads).
/// Not modelled: that a step that needs no clipping leaves it out.
std::vector<GradientPass> gradient_passes(const Strategy& strategy, std::int64_t count);

/// The update of the parameters of one device, on the device or on its host (host_blocks.h). Where
/// the framework clips gradients, their norm comes first: each device sums the squares of its
/// gradients; the ranks along the mesh axes `spread`, which hold different gradients, add up their
/// sums; and the host reads the result. Quantized weights are copied for the products of the next
/// step, once for all its micro-batches. Exchanges and kernels of the optimizer run one after
/// another. After the norm, the host's work once a step (Framework::step_launches) is added to the
/// launch of the first of them.
program::Block optimizer_block(std::string name, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh, const std::vector<Axis>& spread,
                               const std::vector<UpdateStep>& update, const UpdatedShare& updated);

}  // namespace foreshard::lower
