#include "strategies/parallelism/state_sharding.h"

namespace foreshard {

StateSharding state_sharding(const Strategy& strategy, std::int64_t copies) {
  using Gather = StateSharding::Gather;
  using Reduce = StateSharding::Reduce;
  const bool trains = strategy.mode == Mode::kTrain;
  const bool shared = strategy.shards() > 1;
  StateSharding result{.cuts_parameters = shared && strategy.zero_stage == 3,
                       .cuts_gradients = shared && strategy.zero_stage >= 2,
                       .cuts_optimizer = shared && strategy.zero_stage >= 1};
  const Framework& framework = *strategy.framework;
  if (result.cuts_parameters) {
    result.gather = Gather::kBeforeUse;
  } else if (result.cuts_optimizer) {
    result.gather = framework.overlap_parameter_gather ? Gather::kStartOfStep : Gather::kEndOfStep;
  }
  const bool beside_backward = framework.gradient_reduction == GradientReduction::kOverlapped;
  if (trains && copies > 1)
    result.reduce = strategy.zero_stage >= 2 ? Reduce::kEveryMicroBatch
                    : beside_backward        ? Reduce::kLastMicroBatch
                                             : Reduce::kEndOfStep;
  return result;
}

StateSharding state_sharding(const Strategy& strategy) {
  return state_sharding(strategy, strategy.copies());
}

}  // namespace foreshard
