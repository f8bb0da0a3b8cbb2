#include "strategies/parallelism/expert_groups.h"

#include <algorithm>
#include <fmt/format.h>

namespace foreshard {

std::int64_t expert_tensor_ways(const Strategy& strategy) {
  return strategy.expert_tensor_parallel == 0 ? strategy.tensor_parallel
                                              : strategy.expert_tensor_parallel;
}

std::int64_t expert_ranks(const Strategy& strategy) {
  return strategy.expert_parallel * expert_tensor_ways(strategy);
}

std::int64_t expert_data_ranks(const Strategy& strategy) {
  return std::max<std::int64_t>(
      1, expert_ranks(strategy) / (strategy.tensor_parallel * strategy.context_parallel));
}

std::string words_of_experts(const Strategy& strategy) {
  const std::int64_t ways = expert_tensor_ways(strategy);
  if (ways == strategy.tensor_parallel) return {};
  return ways == 1 ? " (each whole)" : fmt::format(" (each split {} ways)", ways);
}

}  // namespace foreshard
