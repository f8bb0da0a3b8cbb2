/// \file
/// Faults of a strategy for a transformer (faults_in), by what they are about.
#pragma once

#include <vector>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// Parts that are recomputed: those that layers have, where recomputation goes by parts.
void recompute_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults);

/// Of a load that is given: shares of all experts, of each layer that has some, of which none are
/// dropped. \pre the model has experts
void expert_load_faults(const Strategy& strategy, const Model& model,
                        std::vector<StrategyFault>& faults);

/// Tensor-parallel ranks share columns of A, and of B.
void adapter_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults);

}  // namespace foreshard
