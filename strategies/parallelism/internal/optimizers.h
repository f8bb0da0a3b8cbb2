/// \file
/// The optimizers behind optimizer_rules(), one file each, and the code that they share.
#pragma once

#include "strategies/parallelism/optimizer.h"

namespace foreshard::optimizers {

OptimizerRule adam();
OptimizerRule adam_8bit();
OptimizerRule lamb();
OptimizerRule muon();
OptimizerRule sgd();

/// Adam's kernels over `count` elements. `moments`: bytes of both moments per element.
std::vector<UpdateStep> adam_steps(const Update& update, std::int64_t count, std::int64_t moments);

}  // namespace foreshard::optimizers
