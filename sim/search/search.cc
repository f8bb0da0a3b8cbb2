#include "sim/search/search.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "sim/search/cuts.h"
#include "sim/search/internal/peaks.h"
#include "sim/search/internal/race.h"
#include "sim/search/output.h"
#include "sim/search/place.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/parallelism/layers.h"
#include "strategies/program/lower/exchanges.h"

namespace foreshard::search {
namespace {

// The estimate of memory is this near to the simulation: what is farther from fitting does not fit.
// tests/sim/study/search_test.cc holds it to that.
constexpr double kMemoryError = 0.025;

Seconds launch_time_of(const ClusterView& cluster) {
  Seconds launch_time;
  for (std::int32_t node = 0; node < cluster.node_count(); ++node)
    launch_time = std::max(launch_time, cluster.host(node).launch_time);
  return launch_time;
}

bool same_devices(const study::Pool& a, const study::Pool& b, std::int64_t ranks) {
  return ranks <= a.size() && ranks <= b.size() &&
         std::equal(a.devices.begin(), a.devices.begin() + ranks, b.devices.begin());
}

// Adds strategies of a place that may fit; counts the others. What is kept as the nearest to
// fitting could run but for its memory.
class Ranking {
 public:
  Ranking(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
          std::vector<Candidate>& candidates, SearchResult& result)
      : model_(study.model),
        place_(place),
        cost_(cluster, study.communication, lower::routing_of(study.model)),
        estimator_(study.model, cluster, place.pool.devices, cost_, launch_time_of(cluster)),
        cutter_(study.model, estimator_),
        candidates_(candidates),
        result_(result) {}

  // A strategy that recomputes whole layers and fits, with as few of them as still fit; nothing
  // where it must be all, or where the plan would have too many kinds of layers.
  void add_least_recomputation(const Strategy& full) {
    const auto cut = layers_of_stages(full, model_.layers);
    std::int64_t most = *std::ranges::max_element(cut);  // which fits
    std::int64_t least = 0;                              // which does not
    Strategy one = full;
    while (least + 1 < most) {
      one.recompute_layers = (least + most) / 2;
      const auto memory = estimator_.memory(one);
      if (!memory) return;
      (memory->peak <= memory->memory ? most : least) = one.recompute_layers;
    }
    if (most == *std::ranges::max_element(cut)) return;
    one.recompute_layers = most;
    ++result_.considered;
    add_one(one);
  }

  // With other cuts of the pipeline, if `uneven`.
  void add(const Strategy& strategy, std::int64_t order, bool uneven) {
    order_ = order;
    if (!uneven) return add_one(strategy);
    const std::vector<Strategy> cuts = cutter_.with_cuts(strategy, place_.pool.size());
    result_.considered += std::ssize(cuts) - 1;
    for (const Strategy& one : cuts) add_one(one);
  }

 private:
  void add_one(const Strategy& strategy) {
    const auto memory = estimator_.memory(strategy);
    if (!memory) {
      ++result_.misfits["sharding"];
      return;
    }
    const bool too_large = memory->peak * (1 - kMemoryError) > memory->memory;
    if (too_large && !is_nearer(*memory, result_.nearest)) {
      ++result_.too_large;
      return;
    }
    const auto estimate = estimator_.estimate(strategy);
    if (!estimate) {
      if (result_.unroutable++ == 0) result_.no_route = estimate.error().message;
    } else if (too_large) {
      ++result_.too_large;
      result_.nearest = {strategy, *memory};
    } else {
      candidates_.push_back({strategy, *estimate, &place_, order_});
    }
  }

  const Model& model_;
  const Place& place_;
  std::int64_t order_ = 0;  // of the strategy that is added
  sim::SimulatedCost cost_;
  Estimator estimator_;
  Cutter cutter_;
  std::vector<Candidate>& candidates_;
  SearchResult& result_;
};

// What tells strategies of one search apart on the devices of a place.
using Tried = std::vector<std::set<std::string>>;
std::string key_of(const Strategy& strategy) {
  return knobs_of(strategy).dump();
}

// Whether an earlier place puts the strategy's ranks on the same devices.
bool is_known(const Strategy& strategy, const std::vector<Place>& places, const Tried& tried) {
  const study::Pool& own = places[tried.size()].pool;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (same_devices(places[i].pool, own, strategy.devices()) &&
        tried[i].contains(key_of(strategy)))
      return true;
  return false;
}

// A step that visits each of `count` once, and after a few of them has been everywhere: what time
// allows of a space is a sample of all of it. 0 where there is none.
std::int64_t stride_through(std::int64_t count) {
  constexpr double kGolden = 0.6180339887;  // its multiples are spread evenly
  auto stride = static_cast<std::int64_t>(static_cast<double>(count) * kGolden);
  while (std::gcd(stride, count) > 1) ++stride;
  return stride;
}

// Of a place's candidates that recompute like that, the best estimates.
std::vector<Strategy> best_of(Recompute how, const std::vector<Candidate>& candidates,
                              const Place& place) {
  constexpr std::size_t kMost = 24;
  std::vector<const Candidate*> found;
  for (const Candidate& one : candidates)
    if (one.place == &place && one.strategy.recompute == how) found.push_back(&one);
  std::ranges::stable_sort(found, {}, [](const Candidate* one) { return one->estimate.step; });
  if (found.size() > kMost) found.resize(kMost);
  std::vector<Strategy> strategies;
  for (const Candidate* one : found) strategies.push_back(one->strategy);
  return strategies;
}

// Kinds of units that a plan tells apart, where stages are cut anywhere.
std::int64_t blocks_of(const Model& model, const Strategy& strategy) {
  Strategy whole = strategy;
  whole.pipeline_parallel = 1;
  whole.virtual_stages = 1;
  whole.layers_per_stage.clear();
  whole.recompute_layers = 0;
  return std::ssize(layers_of(model, whole).variants) + model.multi_token_prediction + 2;
}

// Those of all places that may fit, by estimate.
std::vector<Candidate> ranked(const study::LoadedStudy& study, const ClusterView& cluster,
                              const std::vector<Place>& places, const SearchSpace& space,
                              const Deadline& deadline, SearchResult& result) {
  std::vector<Candidate> candidates;
  Tried tried;
  for (const Place& place : places) {
    auto found =
        enumerate(space, study.strategy, study.model, place.pool.size(), parts_of(place, cluster));
    if (tried.empty()) {
      result.misfits = std::move(found.misfits);
      result.considered = found.considered;
    } else {
      std::erase_if(found.candidates,
                    [&](const Strategy& one) { return is_known(one, places, tried); });
      result.considered += std::ssize(found.candidates);
    }
    auto& known = tried.emplace_back();
    if (places.size() > 1)
      for (const Strategy& one : found.candidates) known.insert(key_of(one));
    const std::size_t before = candidates.size();
    result.most_devices = std::max(result.most_devices, found.most_devices);
    Ranking ranking(study, cluster, place, candidates, result);
    const std::int64_t count = std::ssize(found.candidates);
    const std::int64_t stride = stride_through(count);
    for (std::int64_t i = 0; i < count; ++i) {
      if (deadline.is_over_for_estimates()) {
        result.not_reached += count - i;
        result.partial = true;
        break;
      }
      const std::int64_t next = i * stride % count;
      ranking.add(found.candidates[static_cast<std::size_t>(next)], next, is_uneven(space));
    }
    const auto own = candidates.begin() + static_cast<std::ptrdiff_t>(before);
    std::stable_sort(own, candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.order < b.order; });
    // Where some layers are recomputed, each kind of layer is two.
    const std::int64_t kinds = blocks_of(study.model, study.strategy);
    if (space.level < 2 || 2 * kinds > static_cast<std::int64_t>(kBlocks) + 2) continue;
    for (const Strategy& full : best_of(Recompute::kFull, candidates, place))
      if (!deadline.is_over_for_estimates()) ranking.add_least_recomputation(full);
  }
  std::ranges::stable_sort(candidates, {},
                           [](const Candidate& candidate) { return candidate.estimate.step; });
  return candidates;
}

}  // namespace

double SearchResult::gap() const {
  if (certified || simulated.empty() || !best_bound) return 0;
  return 1 - *best_bound / simulated.front().step;
}

std::int64_t SearchResult::overlapping() const {
  if (simulated.empty() || !simulated.front().fits) return 0;
  return std::count_if(simulated.begin() + 1, simulated.end(), [&](const Simulated& one) {
    return one.fits && one.low <= simulated.front().high;
  });
}

std::optional<double> SearchResult::first_beats_second() const {
  if (simulated.size() < 2 || !simulated[1].fits) return std::nullopt;
  constexpr double kTenth = 1.2816;  // standard deviations to the 10th or 90th percentile
  double variance = 0;
  for (const Simulated& one : {simulated[0], simulated[1]}) {
    const double sigma = std::log(one.high / one.low) / (2 * kTenth);
    variance += sigma * sigma;
  }
  const double ahead = std::log(simulated[1].step / simulated[0].step);
  if (!(variance > 0)) return ahead > 0 ? 1 : 0.5;
  return 0.5 * std::erfc(-ahead / std::sqrt(2 * variance));
}

// The first ones that fit, ranked again with other numbers.
static Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                        const SearchResult& result) {
  std::vector<Contender> contenders;
  for (const Simulated& one : result.simulated)
    if (one.fits && std::ssize(contenders) < kContenders)
      contenders.push_back({one.strategy, one.devices, one.step});
  return robustness_of(study, cluster, contenders);
}

// By what a search over it alone finds, beside the result of the whole one.
static Result<WhyNot> why_not(const study::LoadedStudy& study, const SearchOptions& options,
                              const SearchResult& whole) {
  using Cause = WhyNot::Cause;
  SearchOptions alone{.space = {}, .simulate = 1, .certify = 0, .front = 0, .stop = options.stop};
  FORESHARD_ASSIGN(alone.space, narrowed(options.space, options.why_not));
  WhyNot why{.asked = options.why_not, .in_space = false, .cause = Cause::kNothing, .message = {}};
  const auto space = enumerate(options.space, study.strategy, study.model, study.pool.size());
  why.in_space = std::ranges::any_of(
      space.candidates, [&](const Strategy& one) { return is_within(one, alone.space); });
  const auto found = run_search(study, alone);
  if (!found) {
    why.cause = Cause::kSizes;
    why.message = found.error().message;
    return why;
  }
  if (found->simulated.empty() || !found->simulated.front().fits) {
    why.cause = found->nearest ? Cause::kMemory : Cause::kRoute;
    why.message = found->nearest ? missing_text(*found->nearest) : found->no_route;
    return why;
  }
  const Simulated& best = found->simulated.front();
  if (whole.simulated.empty() || !whole.simulated.front().fits) {
    why.message = fmt::format("{} fits: {}", in_words(best.strategy), format(best.step));
    return why;
  }
  const Simulated& first = whole.simulated.front();
  const bool was_simulated = std::ranges::any_of(whole.simulated, [&](const Simulated& one) {
    return knobs_of(one.strategy) == knobs_of(best.strategy);
  });
  why.cause = best.step <= first.step             ? Cause::kNothing
              : !why.in_space                     ? Cause::kSpace
              : was_simulated                     ? Cause::kSimulation
              : best.estimate.bound >= first.step ? Cause::kBound
                                                  : Cause::kEstimate;
  why.message = fmt::format(
      "the best of them, {}, takes {} (estimate {}, no less than {}): {}", in_words(best.strategy),
      format(best.step), format(best.estimate.step), format(best.estimate.bound),
      best.step <= first.step ? "as fast as the first" : difference_text(first, best));
  return why;
}

Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options) {
  const Deadline deadline(options);
  if (study.strategy.mode != Mode::kTrain)
    return study.loader.error_at("strategy.mode", "a search compares steps of training",
                                 "leave out mode, or simulate strategies of mode: forward singly");
  if (study.graph)
    return study.loader.error_at("graph", "a search needs a model, not a general graph",
                                 "give 'model', or simulate strategies singly");
  if (blocks_of(study.model, study.strategy) > static_cast<std::int64_t>(kBlocks))
    return study.loader.error_at("model",
                                 "a search does not know models with so many kinds of layers",
                                 "simulate strategies singly");
  if (study.strategy.offloads())
    return study.loader.error_at(study.strategy.offload_activation_layers > 0
                                     ? "strategy.offload_activation_layers"
                                     : "strategy.offload_optimizer",
                                 "a search offloads nothing to the host",
                                 "leave out offload_activation_layers, offload_optimizer and "
                                 "offload_parameters, or simulate strategies one by one");
  if (!options.why_not.empty()) FORESHARD_TRY(narrowed(options.space, options.why_not));
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  SearchResult result;
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  FORESHARD_ASSIGN(const auto places, places_of(study, cluster));
  const auto candidates = ranked(study, cluster, places, options.space, deadline, result);
  if (result.most_devices == 0) return Error{Error::Code::kInvalidInput, nothing_suits(result)};
  race(study, cluster, options, candidates, deadline, result);
  if (!result.partial) {
    FORESHARD_ASSIGN(result.robustness, robustness_of(study, cluster, result));
  }
  if (!options.why_not.empty()) {
    FORESHARD_ASSIGN(result.why_not, why_not(study, options, result));
  }
  return result;
}

}  // namespace foreshard::search
