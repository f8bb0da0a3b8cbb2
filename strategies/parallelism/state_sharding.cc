#include "strategies/parallelism/state_sharding.h"

#include <algorithm>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

// The most ranks that hold copies of any parameter of a transformer, where `ranks` ranks hold
// copies of all parameters but the experts. Tensor-parallel ranks may hold copies of experts, too.
static std::int64_t most_copies(const Strategy& strategy, std::int64_t ranks) {
  return std::max(ranks, strategy.tensor_parallel * ranks / expert_ranks(strategy));
}

StateSharding state_sharding(const Strategy& strategy, std::int64_t copies) {
  using Gather = StateSharding::Gather;
  using Reduce = StateSharding::Reduce;
  const bool trains = strategy.mode == Mode::kTrain;
  const bool shared = most_copies(strategy, strategy.shards()) > 1;
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
  return state_sharding(strategy, most_copies(strategy, strategy.copies()));
}

bool holds_fp32(const Strategy& strategy) {
  const Shards& shards = strategy.framework->shards;
  return shards.gathered_fp32 || (strategy.zero_stage == 3 && shards.fp32);
}

bool leaves_experts_whole(const Strategy& strategy) {
  return strategy.zero_stage == 3 && strategy.expert_parallel > 1 &&
         !strategy.framework->shards.experts;
}

}  // namespace foreshard
