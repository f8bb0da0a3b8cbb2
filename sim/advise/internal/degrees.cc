// Ideas about the degrees of parallelism, with the same number of devices (ideas.h).
#include <array>
#include <cstdint>
#include <vector>

#include "sim/advise/internal/ideas.h"

namespace foreshard::advise {
namespace {

using Degree = std::int64_t Strategy::*;

// By how much ranks move from a degree at once: 2 and 4, or the least factor that divides it.
std::vector<std::int64_t> factors_of(std::int64_t degree) {
  if (degree % 4 == 0) return {2, 4};
  if (degree % 2 == 0) return {2};
  for (std::int64_t factor = 3; factor * factor <= degree; factor += 2)
    if (degree % factor == 0) return {factor};
  return degree > 1 ? std::vector{degree} : std::vector<std::int64_t>{};
}

void move_ranks(Proposals& proposals, Degree from, Degree to) {
  for (const std::int64_t factor : factors_of(proposals.start().strategy().*from))
    proposals.strategy([&](Strategy& strategy) {
      strategy.*from /= factor;
      strategy.*to *= factor;
    });
}

void trade(Proposals& proposals, Degree degree, std::initializer_list<Degree> others) {
  for (const Degree other : others) {
    move_ranks(proposals, degree, other);
    move_ranks(proposals, other, degree);
  }
}

}  // namespace

void propose_tensor(Proposals& proposals) {
  trade(proposals, &Strategy::tensor_parallel,
        {&Strategy::data_parallel, &Strategy::pipeline_parallel, &Strategy::context_parallel});
}

void propose_pipeline(Proposals& proposals) {
  trade(proposals, &Strategy::pipeline_parallel,
        {&Strategy::data_parallel, &Strategy::context_parallel});
}

void propose_context(Proposals& proposals) {
  trade(proposals, &Strategy::context_parallel, {&Strategy::data_parallel});
  if (proposals.start().strategy().context_parallel == 1) return;
  for (const ContextExchange exchange :
       {ContextExchange::kAllGather, ContextExchange::kOverlappedAllGather, ContextExchange::kRing,
        ContextExchange::kAllToAll})
    proposals.strategy([&](Strategy& strategy) {
      strategy.context_exchange = exchange;
      strategy.context_heads = 1;
    });
}

void propose_experts(Proposals& proposals) {
  const Strategy& now = proposals.start().strategy();
  if (proposals.start().model().experts == 0) return;
  for (const std::int64_t factor : {2, 4}) {
    proposals.strategy([&](Strategy& strategy) { strategy.expert_parallel *= factor; });
    if (now.expert_parallel % factor == 0)
      proposals.strategy([&](Strategy& strategy) { strategy.expert_parallel /= factor; });
  }
  if (now.tensor_parallel > 1)
    proposals.strategy([&](Strategy& strategy) {
      strategy.expert_tensor_parallel = expert_tensor_ways(now) == 1 ? 0 : 1;
    });
}

// The most replicas that the devices have room for and the batch divides over.
void propose_idle_devices(Proposals& proposals) {
  const Start& start = proposals.start();
  const Strategy& now = start.strategy();
  const std::int64_t replica = now.devices() / now.data_parallel;
  std::int64_t most = start.study().pool.size() / replica;
  while (most > now.data_parallel && now.global_batch % most != 0) --most;
  if (most > now.data_parallel)
    proposals.strategy([&](Strategy& strategy) { strategy.data_parallel = most; });
}

}  // namespace foreshard::advise
