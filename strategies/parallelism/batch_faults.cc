#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>

#include "base/grouped.h"
#include "base/text.h"

#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {
namespace {

// Why ranks would have to meet in each micro-batch, so that they cannot take unequal numbers; empty
// if they need not.
std::string_view meeting_of(const Strategy& strategy) {
  if (expert_data_ranks(strategy) > 1)
    return "data-parallel ranks exchange the tokens of each micro-batch with their experts";
  const StateSharding states = state_sharding(strategy);
  if (states.cuts_parameters || states.reduce == StateSharding::Reduce::kEveryMicroBatch)
    return "ranks that share gradients or parameters (ZeRO 2 and 3) meet in each micro-batch";
  if (strategy.shard_replicas > 1) return "ranks of several sets of shards are not modelled";
  return {};
}

}  // namespace

void batch_share_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const auto& shares = strategy.batch_shares;
  const auto groups = static_cast<std::int64_t>(shares.size());
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"batch_shares", std::move(message), std::move(help)});
  };
  if (strategy.data_parallel % groups != 0)
    return fault(fmt::format("{} data-parallel ranks do not divide into {} equal groups",
                             strategy.data_parallel, groups),
                 fmt::format("give an entry for each of {} ranks, or for groups of equally many",
                             strategy.data_parallel));
  if (std::ranges::any_of(shares, [](std::int64_t one) { return one < 1; }))
    return fault("each rank takes at least one micro-batch", "give numbers from 1 on");
  if (std::ranges::all_of(shares, [&](std::int64_t one) { return one == shares.front(); }))
    return fault("all ranks take as many, as they do without this key", "leave it out");
  if (const auto meeting = meeting_of(strategy); !meeting.empty())
    return fault(fmt::format("{}, so they cannot take unequal numbers", meeting),
                 "leave it out, or let data-parallel ranks share no more than the optimizer's "
                 "state");
  const std::int64_t ranks = strategy.data_parallel / groups;
  const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const std::int64_t batch = ranks * strategy.micro_batch * sum;
  if (batch != strategy.global_batch)
    return fault(
        fmt::format("{} {} of each group x micro_batch {} x [{}] = {} sequences, and "
                    "global_batch is {}",
                    grouped(ranks), plural(ranks, "rank"), strategy.micro_batch,
                    fmt::join(shares, ", "), grouped(batch), grouped(strategy.global_batch)),
        fmt::format("global_batch: {}", batch));
  for (const std::int64_t share : std::set(shares.begin(), shares.end()))
    if (const auto table = table_of(with_equal_shares(strategy, share)); !table)
      return fault(
          fmt::format("of the ranks that take {} micro-batches: {}", share, table.error().message),
          "give other numbers, or schedule: 1f1b");
}

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
