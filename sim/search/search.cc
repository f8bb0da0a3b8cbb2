#include "sim/search/search.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "sim/search/output.h"
#include "sim/search/place.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/expense.h"
#include "sim/study/run.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {
namespace {

using Clock = std::chrono::steady_clock;

struct Candidate {
  Strategy strategy;
  Estimate estimate;
  const Place* place;
};

// The estimate of memory is this near to the simulation: what is farther from fitting does not fit.
// tests/sim/study/search_test.cc holds it to that.
constexpr double kMemoryError = 0.02;

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

Bytes missing(const Estimate& estimate) {
  return estimate.peak - estimate.memory;
}
bool is_nearer(const Estimate& estimate, const std::optional<Nearest>& nearest) {
  return !nearest || missing(estimate) < missing(nearest->estimate);
}

// Adds those of `strategies` that may fit; counts the others. What is kept as the nearest to
// fitting could run but for its memory.
void add_candidates(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
                    std::vector<Strategy> strategies, std::vector<Candidate>& candidates,
                    SearchResult& result) {
  const sim::SimulatedCost cost(cluster, study.communication);
  Estimator estimator(study.model, cluster, place.pool.devices, cost, launch_time_of(cluster));
  for (Strategy& strategy : strategies) {
    const auto memory = estimator.memory(strategy);
    if (!memory) {
      ++result.misfits["sharding"];
      continue;
    }
    const bool too_large = memory->peak * (1 - kMemoryError) > memory->memory;
    if (too_large && !is_nearer(*memory, result.nearest)) {
      ++result.too_large;
      continue;
    }
    const auto estimate = estimator.estimate(strategy);
    if (!estimate) {
      if (result.unroutable++ == 0) result.no_route = estimate.error().message;
    } else if (too_large) {
      ++result.too_large;
      result.nearest = {strategy, *memory};
    } else {
      candidates.push_back({std::move(strategy), *estimate, &place});
    }
  }
}

// What tells strategies of one search apart on the devices of a place.
using Tried = std::vector<std::set<std::string>>;

// Whether an earlier place puts the strategy's ranks on the same devices.
bool is_known(const Strategy& strategy, const std::vector<Place>& places, const Tried& tried) {
  const study::Pool& own = places[tried.size()].pool;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (same_devices(places[i].pool, own, strategy.devices()) &&
        tried[i].contains(describe(strategy)))
      return true;
  return false;
}

// Those of all places that may fit, by estimate.
std::vector<Candidate> ranked(const study::LoadedStudy& study, const ClusterView& cluster,
                              const std::vector<Place>& places, const SearchSpace& space,
                              SearchResult& result) {
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
    auto& own = tried.emplace_back();
    if (places.size() > 1)
      for (const Strategy& one : found.candidates) own.insert(describe(one));
    result.most_devices = std::max(result.most_devices, found.most_devices);
    add_candidates(study, cluster, place, std::move(found.candidates), candidates, result);
  }
  std::ranges::stable_sort(candidates, {},
                           [](const Candidate& candidate) { return candidate.estimate.step; });
  return candidates;
}

Result<Simulated> simulated(const study::LoadedStudy& study, const ClusterView& cluster,
                            const Candidate& candidate) {
  FORESHARD_ASSIGN(auto lowered, lower::lower(study.model, candidate.strategy, {}));
  const auto program =
      study::with_launch_times(candidate.place->pool.placed(std::move(lowered)), cluster);
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   sim::simulate(cluster, program, study.communication,
                                 {.critical_path = false,
                                  .reserve = reserve_of(candidate.strategy),
                                  .links = study::links_of(study.cluster)}));
  set_interval(prediction, *study.strategy.framework, study.errors);
  const auto worst = static_cast<std::size_t>(prediction.worst_memory);
  return Simulated{.strategy = candidate.strategy,
                   .estimate = candidate.estimate,
                   .use = candidate.place->use,
                   .step = prediction.step,
                   .low = prediction.low,
                   .high = prediction.high,
                   .idle = prediction.idle,
                   .peak = prediction.classes[worst].memory.peak,
                   .capacity = prediction.memory_capacity - prediction.memory_reserve,
                   .fits = prediction.fits,
                   .mfu = prediction.mfu,
                   .tflops_per_device = prediction.model_tflops_per_device,
                   .breakdown = prediction.breakdown,
                   .expense = study::expense_of(prediction, cluster, study.cluster)};
}

// Simulates some of the candidates, in the order given, several at a time. Routes are remembered by
// the cluster that finds them, so each thread has its own.
class Simulations {
 public:
  Simulations(const study::LoadedStudy& study, const SearchOptions& options,
              const std::vector<Candidate>& candidates, std::vector<std::size_t> which,
              Clock::time_point start)
      : study_(study),
        options_(options),
        candidates_(candidates),
        which_(std::move(which)),
        results_(which_.size()),
        start_(start) {}

  // One entry per candidate; empty where the time limit came first.
  std::vector<std::optional<Result<Simulated>>> run() {
    const auto threads = std::clamp<std::int64_t>(
        options_.threads, 1, std::max<std::int64_t>(static_cast<std::int64_t>(results_.size()), 1));
    {
      std::vector<std::jthread> workers;
      for (std::int64_t i = 1; i < threads; ++i) workers.emplace_back([this] { work(); });
      work();
    }
    return std::move(results_);
  }
  bool out_of_time() const { return out_of_time_; }

 private:
  void work() {
    const auto cluster = cluster_of(study_);
    if (!cluster) return;  // it could be built before
    while (true) {
      if (options_.time_limit && Clock::now() - start_ > *options_.time_limit) {
        if (next_ < results_.size()) out_of_time_ = true;
        return;
      }
      const std::size_t i = next_++;
      if (i >= results_.size()) return;
      results_[i] = simulated(study_, *cluster, candidates_[which_[i]]);
      if (options_.progress) options_.progress(++done_, static_cast<std::int64_t>(results_.size()));
    }
  }

  const study::LoadedStudy& study_;
  const SearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  std::vector<std::size_t> which_;
  std::vector<std::optional<Result<Simulated>>> results_;
  Clock::time_point start_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<bool> out_of_time_{false};
};

// Which candidates to simulate next, and what came out so far.
class Race {
 public:
  Race(const study::LoadedStudy& study, const SearchOptions& options,
       const std::vector<Candidate>& candidates, Clock::time_point start, SearchResult& result)
      : study_(study),
        options_(options),
        candidates_(candidates),
        start_(start),
        result_(result),
        waiting_(candidates.size()) {
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
  }

  void run() {
    simulate(static_cast<std::size_t>(std::max<std::int64_t>(options_.simulate, 1)));
    // In rounds of a fixed size: what is simulated does not depend on the number of threads.
    constexpr std::size_t kRound = 4;
    auto left = static_cast<std::size_t>(std::max<std::int64_t>(options_.certify, 0));
    while (left > 0 && !result_.partial) {
      if (best_) by_bound();  // until one fits, by estimate
      const std::size_t done = simulate(std::min(kRound, left));
      if (done == 0) break;
      left -= done;
    }
    judge();
  }

 private:
  void by_bound() {
    std::ranges::stable_sort(waiting_, {},
                             [&](std::size_t i) { return candidates_[i].estimate.bound; });
  }
  bool may_win(std::size_t i) const { return !best_ || candidates_[i].estimate.bound < *best_; }

  // The next `most` of those waiting, up to the first one that cannot win.
  std::size_t simulate(std::size_t most) {
    std::vector<std::size_t> round;
    while (round.size() < std::min(most, waiting_.size()) && may_win(waiting_[round.size()]))
      round.push_back(waiting_[round.size()]);
    waiting_.erase(waiting_.begin(), waiting_.begin() + std::ssize(round));
    Simulations simulations(study_, options_, candidates_, round, start_);
    auto found = simulations.run();
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (!found[i]) {
        waiting_.push_back(round[i]);
      } else if (*found[i]) {
        Simulated one = **std::move(found[i]);
        if (one.fits && (!best_ || one.step < *best_)) best_ = one.step;
        result_.simulated.push_back(std::move(one));
      } else if (result_.unroutable++ == 0) {
        result_.no_route = found[i]->error().message;
      }
    }
    result_.partial = result_.partial || simulations.out_of_time();
    return round.size();
  }

  void judge() {
    for (const Simulated& one : result_.simulated) {
      const double ratio = one.estimate.step / one.step;
      const bool first = &one == result_.simulated.data();
      result_.lowest_ratio = first ? ratio : std::min(result_.lowest_ratio, ratio);
      result_.highest_ratio = first ? ratio : std::max(result_.highest_ratio, ratio);
    }
    std::ranges::stable_sort(result_.simulated, [](const Simulated& a, const Simulated& b) {
      return a.fits != b.fits ? a.fits : a.step < b.step;
    });
    result_.slower = std::ssize(waiting_);
    for (const std::size_t i : waiting_) {
      const Seconds bound = candidates_[i].estimate.bound;
      if (!result_.best_bound || bound < *result_.best_bound) result_.best_bound = bound;
      if (!may_win(i)) ++result_.provably_slower;
    }
    if (!best_) {
      for (const Simulated& one : result_.simulated) {
        Estimate needs = one.estimate;
        needs.peak = one.peak;
        needs.memory = one.capacity;
        if (is_nearer(needs, result_.nearest)) result_.nearest = {one.strategy, needs};
      }
      return;
    }
    result_.nearest.reset();
    result_.certified = result_.provably_slower == result_.slower;
  }

  const study::LoadedStudy& study_;
  const SearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  Clock::time_point start_;
  SearchResult& result_;
  std::vector<std::size_t> waiting_;  // by estimate until one fits, then by bound
  std::optional<Seconds> best_;
};

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

Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options) {
  const auto start = Clock::now();
  if (study.strategy.mode != Mode::kTrain)
    return study.loader.error_at("strategy.mode", "a search compares steps of training",
                                 "leave out mode, or simulate strategies of mode: forward singly");
  if (study.graph)
    return study.loader.error_at("graph", "a search needs a model, not a general graph",
                                 "give 'model', or simulate strategies singly");
  const std::int64_t blocks =
      std::ssize(study.model.layer_kinds(study.strategy.unquantized_layers)) +
      study.model.multi_token_prediction + 2;
  if (blocks > static_cast<std::int64_t>(kBlocks))
    return study.loader.error_at("model",
                                 "a search does not know models with so many kinds of layers",
                                 "simulate strategies singly");
  if (study.model.frozen)
    return study.loader.error_at("model.frozen", "a search does not know frozen parts yet",
                                 "leave it out, or simulate strategies one by one");
  if (study.model.adapters)
    return study.loader.error_at("model.adapters", "a search does not know adapters yet",
                                 "leave them out, or simulate strategies one by one");
  if (study.strategy.recompute_layers > 0)
    return study.loader.error_at("strategy.recompute_layers",
                                 "a search recomputes all layers or none",
                                 "leave it out, or simulate strategies one by one");
  if (study.strategy.offloads())
    return study.loader.error_at(study.strategy.offload_activation_layers > 0
                                     ? "strategy.offload_activation_layers"
                                     : "strategy.offload_optimizer",
                                 "a search offloads nothing to the host",
                                 "leave out offload_activation_layers, offload_optimizer and "
                                 "offload_parameters, or simulate strategies one by one");
  if (study.strategy.token_dispatcher != TokenDispatcher::kAllToAll)
    return study.loader.error_at("strategy.token_dispatcher",
                                 "a search exchanges tokens by all-to-all",
                                 "leave it out, or simulate strategies one by one");
  if (study.strategy.overlap_experts)
    return study.loader.error_at("strategy.overlap_experts",
                                 "a search runs passes one after another",
                                 "leave it out, or simulate strategies one by one");
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  SearchResult result;
  result.devices = study.pool.size();
  result.shortage = study.pool.shortage;
  FORESHARD_ASSIGN(const auto places, places_of(study, cluster));
  const auto candidates = ranked(study, cluster, places, options.space, result);
  if (result.most_devices == 0) return Error{Error::Code::kInvalidInput, nothing_suits(result)};
  Race(study, options, candidates, start, result).run();
  return result;
}

}  // namespace foreshard::search
