/// \file
/// The optimizers behind optimizer_rules(), one file each, and what they share.
#pragma once

#include "strategies/parallelism/optimizer.h"

namespace foreshard::optimizers {

OptimizerRule adam();
OptimizerRule adam_8bit();
OptimizerRule lamb();
OptimizerRule muon();
OptimizerRule sgd();

/// Adam's kernels over `count` elements whose moments have so many bytes together.
std::vector<UpdateStep> adam_steps(const Update& update, std::int64_t count, std::int64_t moments);

}  // namespace foreshard::optimizers
