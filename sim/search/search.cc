#include "sim/search/search.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/search/family.h"
#include "sim/search/internal/listing.h"
#include "sim/search/internal/on_hosts.h"
#include "sim/search/internal/peaks.h"
#include "sim/search/internal/place_ranking.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/shared_forms.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/output.h"
#include "sim/search/place.h"
#include "sim/search/robustness.h"
#include "sim/search/shares.h"
#include "sim/search/why_not.h"
#include "sim/study/run.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/reserve.h"

namespace foreshard::search {
namespace {

// Of the candidates that recompute like that, the best estimates.
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

// Kinds of units that a plan tells apart, where stages are cut anywhere.
std::int64_t blocks_of(const Model& model, const Strategy& strategy) {
  Strategy whole = strategy;
  whole.pipeline_parallel = 1;
  whole.virtual_stages = 1;
  whole.layers_per_stage.clear();
  whole.recompute_layers = 0;
  return std::ssize(layers_of(model, whole).variants) + model.multi_token_prediction + 2;
}

// The strategies listed for a place that may fit, and what is made of the best of them.
Result<std::vector<Candidate>> ranked_of(const study::LoadedStudy& study,
                                         const ClusterView& cluster, const Place& place,
                                         const std::shared_ptr<SharedForms>& forms,
                                         const std::vector<Strategy>& listed,
                                         const SearchSpace& space, std::int64_t threads,
                                         const Deadline& deadline, SearchResult& result,
                                         bool cuts_slow = true) {
  PlaceRanking ranking(study, place, forms, listed, is_uneven(space), deadline);
  if (!cuts_slow) ranking.cut_the_fast_alone();
  FORESHARD_TRY(ranking.run(threads));
  std::vector<Candidate> own = ranking.candidates(result);
  // Where some layers are recomputed, each kind of layer is two.
  const std::int64_t kinds = blocks_of(study.model, study.strategy);
  if (space.level >= 2 && 2 * kinds <= static_cast<std::int64_t>(kBlocks) + 2) {
    Ranking fewest(study, cluster, place, forms);
    for (const Strategy& full : best_of(Recompute::kFull, own)) {
      if (deadline.is_over_for_estimates()) {
        result.partial = true;
        break;
      }
      fewest.add_least_recomputation(full);
    }
    add_counts(fewest.counts(), result);
    std::ranges::move(fewest.candidates(), std::back_inserter(own));
  }
  if (!study.strategy.offloads() && space.offload.value_or(false)) {
    Ranking offloaded(study, cluster, place, forms);
    offloaded.add_least_offloads(listed, deadline);
    add_counts(offloaded.counts(), result);
    std::ranges::move(offloaded.candidates(), std::back_inserter(own));
  }
  return own;
}

// The level of the strategies that a search of everything begins with.
constexpr std::int64_t kFirst = 1;

// Whether strategies stand for families: everything that can be recomputed is tried.
bool has_families(const study::LoadedStudy& study, const SearchSpace& space) {
  return space.level == kEverything && space.recompute.empty() && !space.offload.value_or(false) &&
         study.strategy.offload_activation_layers == 0;
}

// All families of a place. The strategies of a lower level come first: their best tells which
// families cannot win, and those of them that cannot are listed too, for less memory or money.
// What is not listed is counted in `unlisted`.
Result<std::vector<Candidate>> families_of(const study::LoadedStudy& study,
                                           const ClusterView& cluster, const Place& place,
                                           const std::shared_ptr<SharedForms>& forms,
                                           const std::vector<Strategy>& bases,
                                           const std::vector<Strategy>& few,
                                           const SearchOptions& options, const Deadline& deadline,
                                           Unlisted& unlisted, SearchResult& result) {
  SearchSpace below = options.space;
  below.level = kFirst;
  SearchResult counted;  // again, among the families
  FORESHARD_ASSIGN(auto known, ranked_of(study, cluster, place, forms, few, below, options.threads,
                                         deadline, counted, /*cuts_slow=*/false));
  std::optional<Seconds> best;
  for (const Candidate& one : known)
    if (one.estimate.peak <= one.estimate.memory && (!best || one.estimate.step < *best))
      best = one.estimate.step;
  constexpr std::int64_t kLeastKept = 1024;
  const std::int64_t most =
      std::max(kLeastKept, options.simulate + options.certify + options.front);
  const auto ways = ways_to_recompute(study.model, study.strategy);
  PlaceRanking ranking(study, place, forms, bases, is_uneven(options.space), deadline);
  ranking.seek_families(ways, best, static_cast<std::size_t>(most));
  FORESHARD_TRY(ranking.run(options.threads));
  std::vector<Candidate> own = ranking.candidates(result);
  Unlisted others = ranking.unlisted();
  std::set<std::string> kept;
  for (const Candidate& one : own) kept.insert(key_of(one.strategy));
  for (Candidate& one : known) {
    const bool is_far = others.limit && one.estimate.bound >= *others.limit;
    if ((!is_far && !result.partial) || kept.contains(key_of(one.strategy))) continue;
    if (is_far && others.far > 0) --others.far;
    own.push_back(std::move(one));
  }
  unlisted.add(others);
  return own;
}

// The latest end of data-parallel ranks of those rates, in micro-batches of the slowest.
double end_of(const Strategy& strategy, const std::vector<FlopsPerSecond>& rates) {
  const FlopsPerSecond slowest = std::ranges::min(rates);
  double end = 0;
  for (std::size_t rank = 0; rank < rates.size(); ++rank) {
    const std::int64_t share = strategy.batch_shares.empty()
                                   ? strategy.micro_batches()
                                   : strategy.batch_share_of(static_cast<std::int64_t>(rank));
    end = std::max(end, static_cast<double>(share) * (slowest / rates[rank]));
  }
  return end;
}

// Of those on a place with devices of several speeds the best, with unequal shares of the batch.
// They have no estimate: each is simulated, and is its own bound.
void add_shares(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
                const SearchOptions& options, const Deadline& deadline, std::vector<Candidate>& own,
                SearchResult& result) {
  constexpr std::size_t kMostLookedAt = 256;
  constexpr std::size_t kMostDivided = 6;
  constexpr std::size_t kMostDivisions = 2;
  const auto rates = rates_of(place, cluster, study.strategy.precision);
  if (std::ranges::min(rates) == std::ranges::max(rates)) return;
  // A step of one stage follows the end of its slowest rank; stages may be cut by rates themselves.
  const auto may_take = [&](const Candidate& one) {
    if (one.strategy.pipeline_parallel > 1) return one.estimate.step;
    const auto of_ranks = rates_of_data_ranks(one.strategy, rates);
    const auto sum = std::accumulate(of_ranks.begin(), of_ranks.end(), FlopsPerSecond{});
    const auto ranks = static_cast<double>(of_ranks.size());
    return (ranks * std::ranges::min(of_ranks) / sum) * one.estimate.step;
  };
  std::vector<std::pair<Seconds, const Candidate*>> equal;
  for (const Candidate& one : own)
    if (one.strategy.data_parallel > 1) equal.emplace_back(may_take(one), &one);
  std::ranges::stable_sort(equal, {}, &std::pair<Seconds, const Candidate*>::first);
  if (equal.size() > kMostLookedAt) equal.resize(kMostLookedAt);
  struct Divided {
    Seconds step;
    const Candidate* base;
    std::vector<Strategy> strategies;
  };
  std::vector<Divided> all;
  for (const auto& [least, base] : equal) {
    const auto of_ranks = rates_of_data_ranks(base->strategy, rates);
    auto strategies =
        with_batch_shares(base->strategy, study.model, of_ranks, place.pool.size(), kMostDivisions);
    if (strategies.empty()) continue;
    const double end = base->strategy.pipeline_parallel > 1 ? 1
                                                            : end_of(strategies.front(), of_ranks) /
                                                                  end_of(base->strategy, of_ranks);
    all.push_back({end * base->estimate.step, base, std::move(strategies)});
  }
  std::ranges::stable_sort(all, {}, &Divided::step);
  if (all.size() > kMostDivided) all.resize(kMostDivided);
  std::vector<Candidate> unequal;
  for (const auto& [step, base, strategies] : all) {
    if (deadline.is_over_for_estimates()) {
      result.partial = true;
      break;
    }
    for (const Strategy& one : strategies) {
      ++result.considered;
      Candidate candidate{one, base->estimate, base->place, base->order};
      const auto found = simulated(study, cluster, options, candidate);
      if (!found) {
        if (result.unroutable++ == 0) result.no_route = found.error().message;
      } else if (!found->fits) {
        ++result.too_large;
      } else {
        candidate.estimate = {.step = found->step,
                              .bound = found->step,
                              .peak = found->peak,
                              .memory = found->capacity};
        unequal.push_back(std::move(candidate));
      }
    }
  }
  std::ranges::move(unequal, std::back_inserter(own));
}

struct Ranked {
  std::vector<Candidate> candidates{};  // by estimate
  Unlisted unlisted{};
};

// Those of all places that may fit.
Result<Ranked> ranked(const study::LoadedStudy& study, const ClusterView& cluster,
                      const std::vector<Place>& places, const SearchOptions& options,
                      const Deadline& deadline, SearchResult& result) {
  const bool families = has_families(study, options.space);
  SearchSpace space = options.space;
  if (families) space.recompute = {Recompute::kNone};
  const auto forms = std::make_shared<SharedForms>();
  const auto stop = [&] { return deadline.is_over_for_listing(); };
  Ranked all;
  Tried tried;
  for (const Place& place : places) {
    if (!tried.empty() && deadline.is_over_for_estimates()) {
      result.whole_space = false;
      result.partial = true;
      break;
    }
    auto found = listed(study, cluster, place, space, stop);
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
    std::vector<Candidate> own;
    Enumeration few;
    if (families) {
      SearchSpace below = options.space;
      below.level = kFirst;
      few = listed(study, cluster, place, below, stop);
      forget_known(few, places, tried);
      FORESHARD_ASSIGN(own, families_of(study, cluster, place, forms, found.candidates,
                                        few.candidates, options, deadline, all.unlisted, result));
    } else {
      FORESHARD_ASSIGN(own, ranked_of(study, cluster, place, forms, found.candidates, space,
                                      options.threads, deadline, result));
    }
    if (is_uneven(options.space)) add_shares(study, cluster, place, options, deadline, own, result);
    auto& known = tried.emplace_back();
    for (const Enumeration* of : {&found, &few})
      for (const Strategy& one : of->candidates)
        if (places.size() > 1) known.insert(key_of(one));
    std::ranges::move(own, std::back_inserter(all.candidates));
  }
  std::ranges::stable_sort(all.candidates, {},
                           [](const Candidate& candidate) { return candidate.estimate.step; });
  return all;
}

}  // namespace

double SearchResult::gap() const {
  if (certified || simulated.empty() || !best_bound) return 0;
  return std::max(0.0, 1 - *best_bound / simulated.front().step);
}

std::int64_t SearchResult::overlapping() const {
  if (!has_answer()) return 0;
  return std::count_if(simulated.begin() + 1, simulated.end(), [&](const Simulated& one) {
    return one.fits && one.low <= simulated.front().high;
  });
}

std::optional<double> SearchResult::first_beats_second() const {
  if (simulated.size() < 2 || !simulated[1].fits) return std::nullopt;
  double variance = 0;
  for (const Simulated& one : {simulated[0], simulated[1]}) {
    const double sigma = std::log(one.high / one.low) / (2 * kDeviationsToTenth);
    variance += sigma * sigma;
  }
  const double ahead = std::log(simulated[1].step / simulated[0].step);
  if (!(variance > 0)) return ahead > 0 ? 1 : 0.5;
  return 0.5 * std::erfc(-ahead / std::sqrt(2 * variance));
}

// The first ones that fit, ranked again with other numbers.
static Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                        const SearchResult& result, std::int64_t threads) {
  std::vector<Contender> contenders;
  for (const Simulated& one : result.simulated)
    if (one.fits && std::ssize(contenders) < kContenders)
      contenders.push_back({one.strategy, one.devices, one.step});
  return robustness_of(study, cluster, contenders, threads);
}

// Whether the space of the search holds such a strategy: as it was listed, or with a cut that was
// tried.
static bool is_in_space(const study::LoadedStudy& study, const ClusterView& cluster,
                        const std::vector<Place>& places, const SearchOptions& options,
                        const std::vector<Candidate>& candidates, const SearchSpace& asked) {
  const auto is_asked = [&](const Strategy& one) { return is_within(one, asked, study.model); };
  if (std::ranges::any_of(candidates, is_asked, &Candidate::strategy)) return true;
  return std::ranges::any_of(places, [&](const Place& place) {
    const auto parts = parts_of(place, cluster);
    return std::ranges::any_of(
        enumerate(options.space, study.strategy, study.model, place.pool.size(), parts).candidates,
        is_asked);
  });
}

// Their sizes, with the layers of each stage said, however they came about.
static nlohmann::ordered_json knobs_with_layers(Strategy strategy, const Model& model) {
  strategy.layers_per_stage = layers_of_stages(strategy, model.layers);
  return knobs_of(strategy);
}

// What a strategy takes beside the first of a search.
static std::string beside(const Simulated& first, const Simulated& other) {
  if (other.step > first.step) return difference_text(first, other);
  return other.step < first.step
             ? fmt::format("{} faster than the first", format(first.step - other.step))
             : "as fast as the first";
}

// By what a search over it alone finds, beside the result of the whole one.
static Result<WhyNot> found_alone(const study::LoadedStudy& study, const SearchOptions& options,
                                  const Deadline& deadline, const SearchResult& whole) {
  using Cause = WhyNot::Cause;
  WhyNot why{.asked = options.why_not, .cause = Cause::kTime, .message = {}};
  why.message = "it was not looked into: the time was over";
  if (!whole.whole_space || deadline.is_over()) return why;
  SearchOptions alone{.space = {},
                      .simulate = 4,
                      .certify = 0,
                      .front = 0,
                      .time_limit = deadline.left(),
                      .stop = options.stop};
  FORESHARD_ASSIGN(alone.space, narrowed(options.space, options.why_not));
  if (!alone.space.offload && !whole.needs_hosts()) alone.space.offload = false;
  const auto found = run_search(study, alone);
  if (!found) {
    why.cause = Cause::kSizes;
    why.message = found.error().message;
    if (study.model.heads > 0)
      why.message +=
          fmt::format("; tensor ranks share {} heads, stages {} layers, and all ranks {} devices",
                      study.model.heads, study.model.layers, study.pool.size());
    return why;
  }
  if (!found->has_answer() && found->partial) return why;
  if (!found->has_answer()) {
    why.cause = found->nearest ? Cause::kMemory : Cause::kRoute;
    why.message = found->nearest ? missing_text(*found->nearest) : found->no_route;
    if (found->nearest)
      why.remedy =
          fmt::format("it would take devices with {}, or more of them",
                      format(found->nearest->estimate.peak + reserve_of(found->nearest->strategy)));
    return why;
  }
  // What the whole search simulated of them counts as well.
  const Simulated* shortest = &found->simulated.front();
  for (const Simulated& one : whole.simulated)
    if (one.fits && one.step < shortest->step && is_within(one.strategy, alone.space, study.model))
      shortest = &one;
  const Simulated& best = *shortest;
  if (!is_within(best.strategy, alone.space, study.model)) {
    why.cause = Cause::kSizes;
    why.message = fmt::format("there is none: this model on these devices makes of it {}",
                              in_words(best.strategy));
    return why;
  }
  if (!whole.has_answer()) {
    why.cause = Cause::kNothing;
    why.message = fmt::format("{} fits: {}", in_words(best.strategy), format(best.step));
    return why;
  }
  const Simulated& first = whole.simulated.front();
  const auto knobs = knobs_with_layers(best.strategy, study.model);
  const bool was_simulated = std::ranges::any_of(whole.simulated, [&](const Simulated& one) {
    return knobs_with_layers(one.strategy, study.model) == knobs;
  });
  why.cause = best.step <= first.step             ? Cause::kNothing
              : was_simulated                     ? Cause::kSimulation
              : best.estimate.bound >= first.step ? Cause::kBound
                                                  : Cause::kEstimate;
  why.message = fmt::format(
      "the best that was found of them, {}, takes {} (estimate {}, no less than {}): {}",
      in_words(best.strategy), format(best.step), format(best.estimate.step),
      format(best.estimate.bound), beside(first, best));
  if (best.step > first.step) why.remedy = remedy_text(first, best);
  return why;
}

// With what is known of the whole search.
static Result<WhyNot> placed_in(const study::LoadedStudy& study, const ClusterView& cluster,
                                const std::vector<Place>& places, const SearchOptions& options,
                                const Deadline& deadline, const std::vector<Candidate>& candidates,
                                const SearchResult& whole) {
  FORESHARD_ASSIGN(WhyNot why, found_alone(study, options, deadline, whole));
  if (why.cause == WhyNot::Cause::kTime) return why;
  FORESHARD_ASSIGN(const auto asked, narrowed(options.space, options.why_not));
  why.in_space = is_in_space(study, cluster, places, options, candidates, asked);
  const bool lost = why.cause == WhyNot::Cause::kBound || why.cause == WhyNot::Cause::kEstimate;
  if (lost && !why.in_space) why.cause = WhyNot::Cause::kSpace;
  return why;
}

Result<WhyNot> why_not(const study::LoadedStudy& study, const SearchOptions& options,
                       const SearchResult& whole) {
  const Deadline deadline(options);
  FORESHARD_ASSIGN(const SearchSpace asked, narrowed(options.space, options.why_not));
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  FORESHARD_ASSIGN(const auto places, places_of(study, cluster));
  Ranked found;
  if (!asked.layers_per_stage.empty()) {  // whether such a cut was tried
    SearchOptions cuts = options;
    cuts.space = asked;
    cuts.space.layers_per_stage = options.space.layers_per_stage;
    SearchResult counts;
    FORESHARD_ASSIGN(found, ranked(study, cluster, places, cuts, deadline, counts));
  }
  SearchResult known = whole;
  known.whole_space = true;  // the time that was over is another search's
  return placed_in(study, cluster, places, options, deadline, found.candidates, known);
}

Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options) {
  const Deadline deadline(options);
  std::vector<Place> places;
  Simulations simulations(study, options, deadline);
  FORESHARD_TRY(simulations.welcome(places));
  if (study.strategy.mode != Mode::kTrain)
    return study.loader.error_at("strategy.mode", "a search compares steps of training",
                                 "leave out mode, or simulate strategies of mode: forward singly");
  if (!study.strategy.batch_shares.empty())
    return study.loader.error_at("strategy.batch_shares", "a search divides the batch itself",
                                 "leave it out, or simulate strategies singly");
  if (study.graph)
    return study.loader.error_at("graph", "a search needs a model, not a general graph",
                                 "give 'model', or simulate strategies singly");
  if (blocks_of(study.model, study.strategy) > static_cast<std::int64_t>(kBlocks))
    return study.loader.error_at("model",
                                 "a search does not know models with so many kinds of layers",
                                 "simulate strategies singly");
  if (!options.why_not.empty()) FORESHARD_TRY(narrowed(options.space, options.why_not));
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  SearchResult result;
  result.space = options.space;
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  FORESHARD_ASSIGN(places, places_of(study, cluster));
  FORESHARD_ASSIGN(const auto found, ranked(study, cluster, places, options, deadline, result));
  const std::vector<Candidate>& candidates = found.candidates;
  if (result.most_devices == 0) return Error{Error::Code::kInvalidInput, nothing_suits(result)};
  const auto left =
      race(study, cluster, options, candidates, found.unlisted, deadline, simulations, result);
  if (!result.partial && !options.space.offload && !study.strategy.offloads()) {
    Unlisted others = found.unlisted;
    others.add({.near = left});
    race_on_hosts(study, cluster, places, options, others, deadline, simulations, result);
  }
  if (!result.partial) {
    FORESHARD_ASSIGN(result.robustness, robustness_of(study, cluster, result, options.threads));
  }
  if (!options.why_not.empty()) {
    FORESHARD_ASSIGN(result.why_not,
                     placed_in(study, cluster, places, options, deadline, candidates, result));
  }
  return result;
}

Result<SearchResult> search_among(const study::LoadedStudy& study,
                                  const std::vector<Strategy>& strategies,
                                  const SearchOptions& options) {
  const Deadline deadline(options);
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  const Place place{.pool = study.pool, .use = {}};
  SearchResult result;
  result.considered = std::ssize(strategies);
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  Ranking ranking(study, cluster, place, {}, options.all_fit);
  for (std::int64_t i = 0; i < std::ssize(strategies); ++i) {
    const Strategy& one = strategies[static_cast<std::size_t>(i)];
    const auto faults = faults_in(one, study.model, study.pool.size());
    if (!faults.empty()) {
      ++result.misfits[faults.front().key];
      continue;
    }
    result.most_devices = std::max(result.most_devices, one.devices());
    ranking.add(one, i, false);
  }
  ranking.refine();
  add_counts(ranking.counts(), result);
  std::vector<Candidate> candidates = std::move(ranking.candidates());
  std::ranges::stable_sort(candidates, {}, [](const Candidate& one) { return one.estimate.step; });
  Simulations simulations(study, options, deadline);
  race(study, cluster, options, candidates, {}, deadline, simulations, result);
  return result;
}

}  // namespace foreshard::search
