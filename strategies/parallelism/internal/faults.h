/// \file
/// Faults of a strategy for a transformer (faults_in), by subject. Each function adds the faults
/// that it finds; its comment states the rules that it checks.
#pragma once

#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// "use one of 1, 2, 4": the numbers of tensor-parallel ranks that this model can be split over.
std::string tensor_sizes(const Strategy& strategy, const Model& model);

/// Context parallelism: every rank has as many tokens and as much attention work as any other.
void context_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Attention: features that only fused kernels have, or have only on whole sequences.
void attention_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults);

/// Encoders: both streams of a model with an encoder are on one stage; encoder sequences are whole
/// or gathered.
void encoder_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Recomputation: the recomputed parts exist in the layers, and recomputation is selective.
void recompute_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults);

/// CUDA graphs: each part is captured once, and exists in the layers.
void capture_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Experts: they divide evenly over their ranks (the data-parallel ranks and, where each expert is
/// whole, before them the tensor-parallel ranks). A given load has the shares of all experts of
/// each layer with experts, and no tokens are dropped. Exchanges overlap passes only where the
/// schedule pairs them.
void expert_faults(const Strategy& strategy, const Model& model,
                   std::vector<StrategyFault>& faults);

/// Offloading: the offloaded state exists, and is not needed on the device.
void offload_faults(const Strategy& strategy, std::int64_t layers,
                    std::vector<StrategyFault>& faults);

/// Adapters: tensor-parallel ranks divide the columns of A, and of B.
void adapter_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

/// Optimizer: its states suit the parameters' precision and the framework, and there is something
/// to update.
void optimizer_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

/// Granularity of a graph's stages: one entry per stage; each divides the step's micro-batches and
/// fits its neighbour's entry; the schedule's order is known for it.
void granularity_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

/// Unequal batch_shares: they cover all data-parallel ranks and the whole batch, the schedule can
/// run each, and ranks meet only at the end of the step. \pre batch_shares is not empty
void batch_share_faults(const Strategy& strategy, std::vector<StrategyFault>& faults);

}  // namespace foreshard
