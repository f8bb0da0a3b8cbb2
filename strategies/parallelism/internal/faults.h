/// \file
/// Faults of a strategy for a transformer (faults_in), by what they are about.
#pragma once

#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// "use one of 1, 2, 4": the numbers of tensor-parallel ranks that this model can be split over.
std::string tensor_sizes(const Strategy& strategy, const Model& model);

/// Every rank has as many tokens, and of attention as much work, as any other.
void context_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// What fused kernels alone do, and what they do on whole sequences alone.
void attention_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults);

/// Both streams of a model with an encoder on one stage, sequences of encoders whole or gathered.
void encoder_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Parts that are recomputed: those that layers have, where recomputation goes by parts.
void recompute_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults);

/// What CUDA graphs launch: each part once, and what layers have.
void capture_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Experts divide evenly over their ranks: data-parallel ones and, where each is whole, before them
/// the tensor-parallel ones. A load that is given has shares of all experts, of each layer that has
/// some, of which none are dropped. Exchanges run beside passes where the schedule pairs these.
void expert_faults(const Strategy& strategy, const Model& model,
                   std::vector<StrategyFault>& faults);

/// What is offloaded is there, and is not needed where it is offloaded.
void offload_faults(const Strategy& strategy, std::int64_t layers,
                    std::vector<StrategyFault>& faults);

/// Tensor-parallel ranks share columns of A, and of B.
void adapter_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// What the optimizer keeps beside parameters of that precision, in that framework; something to
/// update.
void optimizer_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

/// Passes of a graph's stages that take several micro-batches: as many as there are stages, each a
/// part of the step and of its neighbour, of a schedule whose order is known for them.
void granularity_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

/// Unequal batch_shares: of all data-parallel ranks, of the whole batch, by a schedule that does
/// each; between ranks that meet at the end of the step alone. \pre there are some
void batch_share_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

}  // namespace foreshard
