// The candidates of one level of a search (candidates.h), for search.cc and race.cc.
#include "sim/search/internal/candidates.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/search/device_subset.h"
#include "sim/search/family.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/internal/subset_ranking.h"
#include "sim/search/search.h"
#include "sim/search/shares.h"
#include "sim/study/run.h"
#include "sim/study/study.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/state_sharding.h"
#include "topology/cluster_view.h"

namespace foreshard::search {
namespace {

bool same_devices(const study::Pool& a, const study::Pool& b, std::int64_t ranks) {
  return ranks <= a.size() && ranks <= b.size() &&
         std::equal(a.devices.begin(), a.devices.begin() + ranks, b.devices.begin());
}

// Whether an earlier place puts the strategy's ranks on the same devices.
bool is_known(const Strategy& strategy, const std::vector<DeviceSubset>& places,
              const ListedKeys& tried) {
  const study::Pool& own = places[tried.size()].pool;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (same_devices(places[i].pool, own, strategy.devices()) &&
        tried[i].contains(key_of(strategy)))
      return true;
  return false;
}

}  // namespace

std::string key_of(const Strategy& strategy) {
  return knobs_of(strategy).dump();
}

void forget_known(Enumeration& listed, const std::vector<DeviceSubset>& places,
                  const ListedKeys& tried) {
  std::erase_if(listed.candidates,
                [&](const Strategy& one) { return is_known(one, places, tried); });
}

Enumeration listed(const study::LoadedStudy& study, const ClusterView& cluster,
                   const DeviceSubset& place, const SearchSpace& space,
                   const std::function<bool()>& stop) {
  return enumerate(space, study.strategy, study.model, place.pool.size(), parts_of(place, cluster),
                   stop);
}

namespace {

// Chooses the strategies that get unequal shares of the batch, on places whose devices have
// several speeds.

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
struct ExpectedStrategy {
  Seconds step;
  const Candidate* base = nullptr;
  std::vector<Strategy> strategies = {};
};

// The first ones by expected step: at most `most` with a pipeline and `most` without, and at most
// `of_kind` of each division of the devices.
std::vector<ExpectedStrategy> first_of(std::vector<ExpectedStrategy> all, std::size_t most,
                                       std::size_t of_kind) {
  std::ranges::stable_sort(all, {}, &ExpectedStrategy::step);
  std::map<DeviceDivision, std::size_t> counts;
  std::map<bool, std::size_t> taken;  // key: whether there is a pipeline
  std::vector<ExpectedStrategy> first;
  for (ExpectedStrategy& one : all) {
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
ExpectedStrategy divided(const Candidate& base, const Model& model,
                         const std::vector<FlopsPerSecond>& rates, std::int64_t devices) {
  ExpectedStrategy found{
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

// Whether devices of a place differ by more than a hundredth in how fast they train the model.
bool has_several_rates(const study::LoadedStudy& study, const ClusterView& cluster,
                       const DeviceSubset& place) {
  constexpr double kAlike = 0.99;
  const auto rates = rates_of(study, cluster, place);
  return std::ranges::min(rates) < kAlike * std::ranges::max(rates);
}

// Simulates the best strategies of such a place with unequal shares of the batch (shares.h), and
// adds them to `result.simulated`. Each kind of strategies (those that divide the devices alike)
// has a few. The best are those with the least estimate with equal shares, times the factor by
// which the division shortens the slowest rank.
// \param bases  estimated strategies of the place, whose own shares do not matter.
void simulate_unequal_shares(const study::LoadedStudy& study, const ClusterView& cluster,
                             const DeviceSubset& place, const SearchOptions& options,
                             const Deadline& deadline, const std::vector<Candidate>& bases,
                             SearchResult& result) {
  const auto rates = rates_of(study, cluster, place);
  std::vector<ExpectedStrategy> all;
  for (const Candidate& one : bases)
    if (one.strategy.data_parallel > 1)
      all.push_back({least_with_shares(one, rates_of_data_ranks(one.strategy, rates)), &one});
  all = first_of(std::move(all), kMostLookedAt, kMostLookedAtOfKind);
  for (ExpectedStrategy& one : all)
    one = divided(*one.base, study.model, rates_of_data_ranks(one.base->strategy, rates),
                  place.pool.size());
  std::erase_if(all, [](const ExpectedStrategy& one) { return one.strategies.empty(); });
  for (const ExpectedStrategy& one : first_of(std::move(all), kMostDivided, kMostDividedOfKind)) {
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

// From this level on, strategies stand for families.
constexpr std::int64_t kFamilies = 2;

// The fastest candidates with that recomputation.
std::vector<Strategy> best_of(Recompute how, const std::vector<Candidate>& candidates) {
  constexpr std::size_t kMost = 24;
  std::vector<const Candidate*> found;
  for (const Candidate& one : candidates)
    if (one.strategy.recompute == how) found.push_back(&one);
  std::ranges::stable_sort(found, {}, [](const Candidate* one) { return one->estimate.step; });
  if (found.size() > kMost) found.resize(kMost);
  std::vector<Strategy> strategies;
  strategies.reserve(found.size());
  for (const Candidate* one : found) strategies.push_back(one->strategy);
  return strategies;
}

// Whether the search may choose the recomputation, so that families have more than one member.
bool varies_recomputation(const study::LoadedStudy& study, const SearchSpace& space) {
  return space.recompute.empty() && !space.offload.value_or(false) &&
         study.strategy.offload_activation_layers == 0;
}

// The context for ranking one place.
struct SubsetSearch {
  const study::LoadedStudy& study;
  const ClusterView& cluster;
  const DeviceSubset& place;
  const std::shared_ptr<SharedPlanForms>& forms;
  const SearchOptions& options;
  const Deadline& deadline;
};

double margin_of(const SubsetSearch& work) {
  return margin_of(work.study, work.options);
}

// The listed strategies of a place that may fit, and variants of the best of them: with the least
// recomputation, and with the least offloading.
Result<std::vector<Candidate>> plain(const SubsetSearch& work, const std::vector<Strategy>& listed,
                                     SearchResult& result) {
  const SearchSpace& space = work.options.space;
  SubsetRanking ranking(work.study, work.place, work.forms, listed, margin_of(work),
                        is_uneven(space), work.deadline);
  ranking.offer_only(space);
  if (varies_recomputation(work.study, space)) ranking.cut_the_fast_alone();
  FORESHARD_TRY(ranking.run(work.options.threads));
  std::vector<Candidate> own = ranking.candidates(result);
  // Where only some layers recompute, each kind of layer counts twice.
  const std::int64_t kinds = kinds_of_units(work.study.model, work.study.strategy);
  if (space.level >= kFamilies && 2 * kinds <= static_cast<std::int64_t>(kBlocks) + 2) {
    Ranking fewest(work.study, work.cluster, work.place, work.forms, margin_of(work));
    fewest.offer_only(space);
    for (const Strategy& full : best_of(Recompute::kFull, own)) {
      if (work.deadline.is_over_for_estimates()) {
        result.partial = true;
        break;
      }
      fewest.add_least_recomputation(full);
    }
    add_counts(fewest.counts(), result);
    std::ranges::move(fewest.candidates(), std::back_inserter(own));
  }
  if (!work.study.strategy.offloads() && space.offload.value_or(false)) {
    Ranking offloaded(work.study, work.cluster, work.place, work.forms, margin_of(work));
    offloaded.offer_only(space);
    offloaded.add_least_offloads(listed, work.deadline);
    add_counts(offloaded.counts(), result);
    std::ranges::move(offloaded.candidates(), std::back_inserter(own));
  }
  return own;
}

// The members of a place's families that may win, and candidates of the level below even if they
// cannot win: they may need less memory or money. All others are counted in `unlisted`.
Result<std::vector<Candidate>> families(const SubsetSearch& work,
                                        const std::vector<Strategy>& bases,
                                        const std::vector<Candidate>& before, Unlisted& unlisted,
                                        SearchResult& result) {
  constexpr std::int64_t kLeastKept = 1024;
  const SearchOptions& options = work.options;
  const std::int64_t most =
      std::max(kLeastKept, options.simulate + options.certify + options.front);
  const auto choices =
      recompute_choices(work.study.model, work.study.strategy, options.space.any_framework);
  SubsetRanking ranking(work.study, work.place, work.forms, bases, margin_of(work),
                        is_uneven(options.space), work.deadline);
  ranking.offer_only(options.space);
  ranking.seek_families(choices, best_step(result, options), static_cast<std::size_t>(most));
  FORESHARD_TRY(ranking.run(options.threads));
  std::vector<Candidate> own = ranking.candidates(result);
  Unlisted others = ranking.unlisted();
  std::set<std::string> kept;
  for (const Candidate& one : own) kept.insert(key_of(one.strategy));
  for (const Candidate& one : before) {
    if (one.place != &work.place) continue;
    const bool is_far = others.limit && one.estimate.bound >= *others.limit;
    if ((!is_far && !result.partial) || kept.contains(key_of(one.strategy))) continue;
    if (is_far && others.far > 0) --others.far;
    own.push_back(one);
  }
  unlisted.add(others);
  return own;
}

// The strategies, with equal shares, for which unequal shares may pay, on a place with devices of
// several speeds.
Result<std::vector<Candidate>> bases_of_shares(const SubsetSearch& work) {
  std::vector<Strategy> bases =
      listed(work.study, work.cluster, work.place, work.options.space, [&] {
        return work.deadline.is_over_for_estimates();
      }).candidates;
  std::erase_if(bases, [](const Strategy& one) {
    return one.data_parallel == 1 || state_sharding(one).cuts_gradients || one.expert_parallel > 1;
  });
  SearchResult counts;  // dropped: the counts of families include them
  return plain(work, bases, counts);
}

bool has_shares(const Strategy& one) {
  return !one.batch_shares.empty();
}

// The candidates of a place among the strategies found at the level of the options.
Result<std::vector<Candidate>> of_place(const SubsetSearch& work, std::vector<Strategy> found,
                                        const std::vector<Candidate>& before, Unlisted& unlisted,
                                        SearchResult& result) {
  const SearchSpace& space = work.options.space;
  const bool is_unequal = space.uneven && space.unequal_shares &&
                          has_several_rates(work.study, work.cluster, work.place);
  const auto divide = [&](const std::vector<Candidate>& bases) {
    simulate_unequal_shares(work.study, work.cluster, work.place, work.options, work.deadline,
                            bases, result);
  };
  if (space.level < kFamilies || !varies_recomputation(work.study, space)) {
    FORESHARD_ASSIGN(auto own, plain(work, found, result));
    if (!is_unequal) return own;
    divide(own);
    // Almost equal shares do not suit ranks of several speeds.
    std::erase_if(own, [](const Candidate& one) { return has_shares(one.strategy); });
    return own;
  }
  if (is_unequal) std::erase_if(found, has_shares);
  FORESHARD_ASSIGN(auto own, families(work, found, before, unlisted, result));
  if (!is_unequal) return own;
  if (space.level == kEverything) {
    divide(own);
    return own;
  }
  FORESHARD_ASSIGN(const auto bases, bases_of_shares(work));
  divide(bases);
  return own;
}

}  // namespace

Result<Ranked> ranked(const study::LoadedStudy& study, const ClusterView& cluster,
                      const std::vector<DeviceSubset>& places, const SearchOptions& options,
                      const std::shared_ptr<SharedPlanForms>& forms,
                      const std::vector<Candidate>& before, const Deadline& deadline,
                      SearchResult& result) {
  SearchSpace space = options.space;
  if (space.level >= kFamilies && varies_recomputation(study, space))
    space.recompute = {Recompute::kNone};
  Ranked all;
  ListedKeys tried;
  for (const DeviceSubset& place : places) {
    if (!tried.empty() && deadline.is_over_for_estimates()) {
      result.whole_space = false;
      result.partial = true;
      break;
    }
    auto found = listed(study, cluster, place, space,
                        [&] { return space.level > 0 && deadline.is_over_for_estimates(); });
    if (!found.is_whole) {
      result.whole_space = false;
      result.partial = true;
    }
    if (tried.empty()) {
      result.misfits = std::move(found.misfits);
      result.considered = found.considered;
    } else {
      forget_known(found, places, tried);
      result.considered += std::ssize(found.candidates);
    }
    result.most_devices = std::max(result.most_devices, found.most_devices);
    auto& known = tried.emplace_back();
    for (const Strategy& one : found.candidates)
      if (places.size() > 1) known.insert(key_of(one));
    const SubsetSearch work{.study = study,
                            .cluster = cluster,
                            .place = place,
                            .forms = forms,
                            .options = options,
                            .deadline = deadline};
    FORESHARD_ASSIGN(auto own,
                     of_place(work, std::move(found.candidates), before, all.unlisted, result));
    std::ranges::move(own, std::back_inserter(all.candidates));
  }
  std::ranges::stable_sort(all.candidates, {},
                           [](const Candidate& candidate) { return candidate.estimate.step; });
  return all;
}

std::int64_t kinds_of_units(const Model& model, const Strategy& strategy) {
  Strategy whole = strategy;
  whole.pipeline_parallel = 1;
  whole.virtual_stages = 1;
  whole.layers_per_stage.clear();
  whole.recompute_layers = 0;
  return std::ssize(layers_of(model, whole).variants) + model.multi_token_prediction + 2;
}

bool can_estimate(const Model& model, const Strategy& strategy) {
  return kinds_of_units(model, strategy) <= static_cast<std::int64_t>(kBlocks);
}

double margin_of(const study::LoadedStudy& study, const SearchOptions& options) {
  return options.keep_margin ? study::memory_margin_of(study).part : 0;
}

bool may_be_first(const Simulated& one, const SearchOptions& options) {
  return one.fits && !(one.tight && options.keep_margin);
}

std::optional<Seconds> best_step(const SearchResult& result, const SearchOptions& options) {
  std::optional<Seconds> best;
  for (const Simulated& one : result.simulated)
    if (may_be_first(one, options) && (!best || one.step < *best)) best = one.step;
  return best;
}

}  // namespace foreshard::search
