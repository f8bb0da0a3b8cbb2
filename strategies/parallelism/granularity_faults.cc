#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {

void granularity_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const auto& taken = strategy.granularity;
  if (taken.empty()) return;
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"granularity", std::move(message), std::move(help)});
  };
  if (strategy.pipeline_parallel == 1)
    return fault("there is one stage, whose passes are micro-batches",
                 "give another micro_batch, or pipeline_parallel");
  if (static_cast<std::int64_t>(taken.size()) != strategy.pipeline_parallel)
    return fault(fmt::format("{} entries for {} stages", taken.size(), strategy.pipeline_parallel),
                 fmt::format("granularity: [{}]",
                             fmt::join(std::vector<int>(
                                           static_cast<std::size_t>(strategy.pipeline_parallel), 1),
                                       ", ")));
  if (strategy.schedule != "1f1b")
    return fault(
        fmt::format("schedule '{}' has an order of single micro-batches alone", strategy.schedule),
        "set schedule: 1f1b, or leave granularity out");
  if (strategy.virtual_stages > 1)
    return fault("stages of several chunks take single micro-batches", "set virtual_stages: 1");
  for (const std::int64_t one : taken)
    if (one < 1 || strategy.micro_batches() % one != 0)
      return fault(fmt::format("{} micro-batches cannot be taken {} at a time",
                               strategy.micro_batches(), one),
                   "give divisors of the micro-batches of a step");
  for (std::size_t s = 1; s < taken.size(); ++s)
    if (std::max(taken[s - 1], taken[s]) % std::min(taken[s - 1], taken[s]) != 0)
      return fault(fmt::format("stages {} and {} take {} and {} micro-batches at a time, of which "
                               "neither is a multiple of the other",
                               s - 1, s, taken[s - 1], taken[s]),
                   "give powers of two");
}

}  // namespace foreshard
