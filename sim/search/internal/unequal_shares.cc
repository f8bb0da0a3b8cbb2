#include "sim/search/internal/unequal_shares.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/search/internal/listing.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/shares.h"

namespace foreshard::search {
namespace {

constexpr std::size_t kMostLookedAt = 128;
constexpr std::size_t kMostLookedAtOfKind = 8;
// Limits for strategies with and without a pipeline each: estimates are better without one.
constexpr std::size_t kMostDivided = 6;
constexpr std::size_t kMostDividedOfKind = 3;
constexpr std::size_t kMostDivisions = 2;

// How a strategy divides the devices.
using DeviceDivision =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::vector<std::string>>;
DeviceDivision division_of(const Strategy& one) {
  return {one.tensor_parallel, one.pipeline_parallel, one.data_parallel, one.context_parallel,
          one.rank_order};
}

// A strategy with its expected step: a lower limit for any shares, or the step with `strategies`.
struct Expected {
  Seconds step;
  const Candidate* base = nullptr;
  std::vector<Strategy> strategies = {};
};

// The first ones by expected step: at most `most` with a pipeline and `most` without, and at most
// `of_kind` of each division of the devices.
std::vector<Expected> first_of(std::vector<Expected> all, std::size_t most, std::size_t of_kind) {
  std::ranges::stable_sort(all, {}, &Expected::step);
  std::map<DeviceDivision, std::size_t> counts;
  std::map<bool, std::size_t> taken;  // key: whether there is a pipeline
  std::vector<Expected> first;
  for (Expected& one : all) {
    std::size_t& alike = taken[one.base->strategy.pipeline_parallel > 1];
    if (alike == most || counts[division_of(one.base->strategy)]++ >= of_kind) continue;
    ++alike;
    first.push_back(std::move(one));
  }
  return first;
}

// The step if ranks took micro-batches exactly in proportion to their speeds.
Seconds least_with_shares(const Candidate& one, const std::vector<FlopsPerSecond>& rates) {
  const auto sum = std::accumulate(rates.begin(), rates.end(), FlopsPerSecond{});
  const auto ranks = static_cast<double>(rates.size());
  const Strategy equal = with_equal_shares(one.strategy, one.strategy.micro_batches());
  const double filling =
      static_cast<double>(equal.pipeline_parallel - 1) / static_cast<double>(equal.virtual_stages);
  const auto micro_batches = static_cast<double>(equal.micro_batches());
  const double shorter = (micro_batches * (ranks * std::ranges::min(rates) / sum) + filling) /
                         (micro_batches + filling);
  return shorter * one.estimate.step;
}

// The strategy with the divisions that end soonest, and its expected step.
Expected divided(const Candidate& base, const Model& model,
                 const std::vector<FlopsPerSecond>& rates, std::int64_t devices) {
  Expected found{
      .step = {},
      .base = &base,
      .strategies = with_batch_shares(base.strategy, model, rates, devices, kMostDivisions)};
  auto& strategies = found.strategies;
  if (auto soonest = with_soonest_shares(base.strategy, model, rates, devices)) {
    constexpr double kRounding = 1e-9;
    if (strategies.empty() ||
        end_of_shares(*soonest, rates) < (1 - kRounding) * end_of_shares(strategies.front(), rates))
      strategies.insert(strategies.begin(), *std::move(soonest));
  }
  if (strategies.empty()) return found;
  const Strategy equal = with_equal_shares(base.strategy, base.strategy.micro_batches());
  found.step =
      (end_of_shares(strategies.front(), rates) / end_of_shares(equal, rates)) * base.estimate.step;
  return found;
}

}  // namespace

bool has_several_rates(const study::LoadedStudy& study, const ClusterView& cluster,
                       const Place& place) {
  constexpr double kAlike = 0.99;
  const auto rates = rates_of(study, cluster, place);
  return std::ranges::min(rates) < kAlike * std::ranges::max(rates);
}

void simulate_unequal_shares(const study::LoadedStudy& study, const ClusterView& cluster,
                             const Place& place, const SearchOptions& options,
                             const Deadline& deadline, const std::vector<Candidate>& bases,
                             SearchResult& result) {
  const auto rates = rates_of(study, cluster, place);
  std::vector<Expected> all;
  for (const Candidate& one : bases)
    if (one.strategy.data_parallel > 1)
      all.push_back({least_with_shares(one, rates_of_data_ranks(one.strategy, rates)), &one});
  all = first_of(std::move(all), kMostLookedAt, kMostLookedAtOfKind);
  for (Expected& one : all)
    one = divided(*one.base, study.model, rates_of_data_ranks(one.base->strategy, rates),
                  place.pool.size());
  std::erase_if(all, [](const Expected& one) { return one.strategies.empty(); });
  for (const Expected& one : first_of(std::move(all), kMostDivided, kMostDividedOfKind)) {
    if (deadline.is_over_for_estimates()) {
      result.partial = true;
      break;
    }
    for (const Strategy& strategy : one.strategies) {
      const Candidate candidate{strategy, one.base->estimate, &place, one.base->order};
      const auto is_same = [&](const Simulated& known) {
        return known.use == place.use && key_of(known.strategy) == key_of(strategy);
      };
      ++result.considered;
      if (std::ranges::any_of(result.simulated, is_same)) continue;
      auto found = simulated(study, cluster, options, candidate);
      if (!found) {
        if (result.unroutable++ == 0) result.no_route = found.error().message;
      } else if (!found->fits) {
        ++result.too_large;
      } else {
        Simulated& added = result.simulated.emplace_back(*std::move(found));
        added.estimate = {
            .step = added.step, .bound = added.step, .peak = added.peak, .memory = added.capacity};
      }
    }
  }
}

}  // namespace foreshard::search
