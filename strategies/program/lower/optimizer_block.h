/// \file
/// What ends a training step: the parameters are updated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// What the strategy's optimizer does on a rank that holds these groups of plan::by_shards().
std::vector<UpdateStep> update_steps(const Strategy& strategy, const std::vector<MeshAxis>& mesh,
                                     const std::vector<plan::ParameterGroup>& groups);
/// The communication of one of them, as a series of tasks; the first waits for `after`.
/// \return the index of the last task added, or nothing if no rank has a part alone.
std::optional<std::int32_t> append_exchange(program::Block& block, const UpdateExchange& exchange,
                                            const std::vector<MeshAxis>& mesh,
                                            std::vector<std::int32_t> after);

/// Parameters of one device that a step updates.
struct UpdatedShare {
  std::int64_t count = 0;
  std::int64_t left = 0;       ///< Those whose gradients are not on the host, if the step is there.
  std::int64_t quantized = 0;  ///< Weights.
};

/// A pass over the gradients of one rank.
struct GradientPass {
  std::string_view name;
  Pass pass;
};
/// What `count` gradients go through on the way to their update on the device, in order: from 16
/// bits to fp32, out of the scale of the loss (fp16), the sum of their squares, the factor that
/// clips them.
/// Source: NVIDIA/Megatron-LM v2.5, megatron/optimizer/optimizer.py and clip_grads.py;
/// deepspeedai/DeepSpeed v0.6.7, runtime/fp16/fused_optimizer.py (unscale_and_clip_grads). Not
/// modelled: that clipping is left out where a step needs none.
std::vector<GradientPass> gradient_passes(const Strategy& strategy, std::int64_t count);

/// The update of the parameters of one device, or on its host (host_blocks.h). Where the framework
/// clips gradients, their norm comes first: each device sums the squares of its gradients, the
/// ranks along the mesh axes `spread`, which hold different gradients, add up their sums, and the
/// host reads the result. Of quantized weights copies are made for the products of the next step,
/// once for all its micro-batches. Exchanges and kernels of the optimizer run one after another.
/// What the host does once a step (Framework::step_launches) is in front of the first of them.
program::Block optimizer_block(std::string name, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh, const std::vector<Axis>& spread,
                               const std::vector<UpdateStep>& update, const UpdatedShare& updated);

}  // namespace foreshard::lower
