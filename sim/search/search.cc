// The search of `foreshard search` for a transformer (search.h): lists, estimates, simulates and
// judges. The library, `replan`, `elastic` and sweeps run the same.
#include "sim/search/search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/threads.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/candidates.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/peaks.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/internal/subset_ranking.h"
#include "sim/search/output.h"
#include "sim/search/robustness.h"
#include "sim/search/why_not.h"
#include "sim/study/run.h"
#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

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

// Ranks the first fitting strategies once more, with other numbers.
static Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                        const SearchResult& result, std::int64_t threads) {
  std::vector<Contender> contenders;
  for (const Simulated& one : result.simulated)
    if (one.fits && one.tight == result.simulated.front().tight &&
        std::ssize(contenders) < kContenders)
      contenders.push_back({one.strategy, one.devices, one.step});
  return robustness_of(study, cluster, contenders, threads);
}

// Whether the space of the search holds a strategy within `asked`, as it was listed or with a cut
// that was tried.
static bool is_in_space(const study::LoadedStudy& study, const ClusterView& cluster,
                        const std::vector<DeviceSubset>& places, const SearchOptions& options,
                        const std::vector<Candidate>& candidates, const SearchSpace& asked) {
  const auto is_asked = [&](const Strategy& one) { return is_within(one, asked, study.model); };
  if (std::ranges::any_of(candidates, is_asked, &Candidate::strategy)) return true;
  return std::ranges::any_of(places, [&](const DeviceSubset& place) {
    const auto parts = parts_of(place, cluster);
    return std::ranges::any_of(
        enumerate(options.space, study.strategy, study.model, place.pool.size(), parts).candidates,
        is_asked);
  });
}

// The knobs of a strategy with the layers of each stage written out, even where they are the
// default.
static nlohmann::ordered_json knobs_with_layers(Strategy strategy, const Model& model) {
  strategy.layers_per_stage = layers_of_stages(strategy, model.layers);
  return knobs_of(strategy);
}

// A strategy's step compared with the first one of a search.
static std::string beside(const Simulated& first, const Simulated& other) {
  if (other.step > first.step) return difference_text(first, other);
  return other.step < first.step
             ? fmt::format("{} faster than the first", format(first.step - other.step))
             : "as fast as the first";
}

// Explains what was asked about by a search over it alone, compared with the result of the whole
// one.
static Result<WhyNot> found_alone(const study::LoadedStudy& study, const SearchOptions& options,
                                  const Deadline& deadline, const SearchResult& whole) {
  using Cause = WhyNot::Cause;
  WhyNot why{.asked = options.why_not, .cause = Cause::kTime, .message = {}};
  why.message = "it was not looked into: " + whole.ended_by();
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
  // Strategies of the kind asked about that the whole search simulated count as well.
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

// Adds whether the whole search had what was asked about in its space.
static Result<WhyNot> placed_in(const study::LoadedStudy& study, const ClusterView& cluster,
                                const std::vector<DeviceSubset>& places,
                                const SearchOptions& options, const Deadline& deadline,
                                const std::vector<Candidate>& candidates,
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
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study, study.pool.devices));
  FORESHARD_ASSIGN(const auto places, device_subsets_of(study, cluster));
  Ranked found;
  if (!asked.layers_per_stage.empty()) {  // the candidates tell whether such a cut was tried
    SearchOptions cuts = options;
    cuts.space = asked;
    cuts.space.layers_per_stage = options.space.layers_per_stage;
    SearchResult counts;
    FORESHARD_ASSIGN(found, ranked(study, cluster, places, cuts,
                                   std::make_shared<SharedPlanForms>(), {}, deadline, counts));
  }
  SearchResult known = whole;
  known.whole_space = true;  // an ended time limit was another search's
  return placed_in(study, cluster, places, options, deadline, found.candidates, known);
}

namespace {

// What all parts of a search share.
struct SearchContext {
  const study::LoadedStudy& study;
  const ClusterView& cluster;
  const std::vector<DeviceSubset>& places;
  const Deadline& deadline;
  Simulations& simulations;
};

}  // namespace

// Resets the counts before the next level, which has all strategies of the levels below and counts
// them anew.
static void forget_counts(SearchResult& result) {
  result.considered = 0;
  result.not_reached = 0;
  result.misfits.clear();
  result.too_large = 0;
  result.unroutable = 0;
  result.no_route.clear();
  result.nearest.reset();
}

// Runs the levels of a search, the lowest first; each begins with what the levels below have found.
static Result<Ranked> search_levels(const SearchContext& context, const SearchOptions& options,
                                    SearchResult& result) {
  Ranked found;
  const auto forms = std::make_shared<SharedPlanForms>();
  SearchOptions of_level = options;
  for (std::int64_t level = 0; level <= options.space.level && !result.partial; ++level) {
    of_level.space.level = level;
    forget_counts(result);
    FORESHARD_ASSIGN(found, ranked(context.study, context.cluster, context.places, of_level, forms,
                                   found.candidates, context.deadline, result));
    if (result.most_devices == 0) continue;
    const auto left =
        race(context.study, context.cluster, of_level, found.candidates, found.unlisted,
             context.deadline, context.simulations, result, level == options.space.level);
    if (level == options.space.level || result.partial) found.unlisted.add({.near = left});
  }
  return found;
}

// Searches among strategies that keep the memory margin; where none does, among all that fit; and
// where none fits, with offloading to hosts, unless the space or the study decides about that.
static Result<Ranked> search_by_memory(const SearchContext& context, const SearchOptions& options,
                                       SearchResult& result) {
  SearchOptions now = options;
  FORESHARD_ASSIGN(Ranked found, search_levels(context, now, result));
  const auto is_over = [&] {
    return result.partial || result.most_devices == 0 || best_step(result, now).has_value();
  };
  if (!is_over() && margin_of(context.study, now) > 0) {
    now.keep_margin = false;
    FORESHARD_ASSIGN(found, search_levels(context, now, result));
  }
  if (options.space.offload || context.study.strategy.offloads()) return found;
  for (const bool keep_margin : {true, false}) {
    if (is_over()) break;
    now.keep_margin = keep_margin;
    race_on_hosts(context.study, context.cluster, context.places, now, found.unlisted,
                  context.deadline, context.simulations, result);
  }
  return found;
}

// Whether the framework has options for all of a strategy but for its unequal shares.
static bool lacks_only_shares(const Strategy& strategy, const Model& model) {
  const auto cannot = launch::limitations_in(strategy, model);
  return !cannot.empty() && std::ranges::all_of(cannot, [](const launch::Limitation& one) {
    return one.key == "batch_shares";
  });
}

// Where the first strategy of a result has unequal shares of the batch for which its framework has
// no option, searches among equal shares as well, adds the best of them, and names the fastest that
// the framework can run. Where the time is over, that is the fastest of those simulated so far.
static Status add_runnable(const SearchContext& context, const SearchOptions& options,
                           SearchResult& result) {
  const Model& model = context.study.model;
  if (!options.runnable || options.space.any_framework || !result.has_answer() ||
      !lacks_only_shares(result.simulated.front().strategy, model))
    return {};
  SearchResult others;
  if (!result.partial) {
    SearchOptions equal = options;
    equal.space.unequal_shares = false;
    equal.front = 0;
    FORESHARD_TRY(search_by_memory(context, equal, others));
  }
  if (others.has_answer()) {
    const Simulated& found = others.simulated.front();
    const auto knobs = knobs_of(found.strategy);
    const auto is_found = [&](const Simulated& one) {
      return one.use == found.use && knobs_of(one.strategy) == knobs;
    };
    if (std::ranges::none_of(result.simulated, is_found)) result.simulated.push_back(found);
    rank(result);
  }
  const auto runs = [&](const Simulated& one) {
    return one.fits && launch::limitations_in(one.strategy, model).empty();
  };
  const auto first = std::ranges::find_if(result.simulated, runs);
  if (first == result.simulated.end()) return {};
  result.runnable = static_cast<std::size_t>(first - result.simulated.begin());
  result.runnable_certified = others.certified;
  return {};
}

// Does a part of a search. Where the system gives no more memory or threads for it, what the search
// has so far is its result, if that is an answer and `options` accept it.
template <class Work>
static Status as_far_as_it_goes(const SearchOptions& options, SearchResult& result,
                                const Work& work) {
  try {
    return work();
  } catch (...) {
    const std::string_view missing = missing_resource(std::current_exception());
    if (missing.empty() || !options.best_so_far || !result.has_answer()) throw;
    result.partial = true;
    result.missing = missing;
  }
  return {};
}

// Takes back what is known of strategies that were not simulated.
static void forget_the_others(SearchResult& result) {
  result.whole_space = false;
  result.certified = false;
  result.best_bound.reset();
  result.considered = std::max(result.considered, std::ssize(result.simulated) + result.slower);
}

Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options) {
  const Deadline deadline(options);
  std::vector<DeviceSubset> places;
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
  if (!can_estimate(study.model, study.strategy))
    return study.loader.error_at("model",
                                 "a search does not know models with so many kinds of layers",
                                 "simulate strategies singly");
  if (!options.why_not.empty()) FORESHARD_TRY(narrowed(options.space, options.why_not));
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study, study.pool.devices));
  SearchResult result;
  result.space = options.space;
  const auto margin = study::memory_margin_of(study);
  result.memory_margin = margin.part;
  result.margin_source = margin.source;
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  FORESHARD_ASSIGN(places, device_subsets_of(study, cluster));
  const SearchContext context{.study = study,
                              .cluster = cluster,
                              .places = places,
                              .deadline = deadline,
                              .simulations = simulations};
  Ranked found;
  FORESHARD_TRY(as_far_as_it_goes(options, result, [&]() -> Status {
    FORESHARD_ASSIGN(found, search_by_memory(context, options, result));
    return add_runnable(context, options, result);
  }));
  if (!result.missing.empty()) forget_the_others(result);
  if (result.most_devices == 0) return Error{Error::Code::kInvalidInput, nothing_suits(result)};
  FORESHARD_TRY(as_far_as_it_goes(options, result, [&]() -> Status {
    if (!result.partial) {
      FORESHARD_ASSIGN(result.robustness, robustness_of(study, cluster, result, options.threads));
    }
    if (!options.why_not.empty()) {
      FORESHARD_ASSIGN(result.why_not, placed_in(study, cluster, places, options, deadline,
                                                 found.candidates, result));
    }
    return {};
  }));
  return result;
}

Result<SearchResult> search_among(const study::LoadedStudy& study,
                                  const std::vector<Strategy>& strategies,
                                  const SearchOptions& options) {
  const Deadline deadline(options);
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study, study.pool.devices));
  const DeviceSubset place{.pool = study.pool, .use = {}};
  SearchResult result;
  result.considered = std::ssize(strategies);
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  Ranking ranking(study, cluster, place, {}, options.all_fit ? 0 : margin_of(study, options),
                  options.all_fit);
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
