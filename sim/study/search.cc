#include "sim/study/search.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/run.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::study {
namespace {

using Clock = std::chrono::steady_clock;

struct Candidate {
  Strategy strategy;
  search::Estimate estimate;
};

Seconds launch_time_of(const ClusterView& cluster) {
  Seconds launch_time;
  for (std::int32_t node = 0; node < cluster.node_count(); ++node)
    launch_time = std::max(launch_time, cluster.host(node).launch_time);
  return launch_time;
}

Bytes smallest_memory(const ClusterView& cluster) {
  Bytes least = Bytes::from_base(std::numeric_limits<double>::infinity());
  for (const Device& device : cluster.devices())
    least = std::min(least, cluster.device_types()[device.type.index()].memory.value);
  return least;
}

// Keeps those that fit, by estimate; counts the others.
std::vector<Candidate> ranked(const LoadedStudy& study, const ClusterView& cluster,
                              std::vector<Strategy> strategies, SearchResult& result) {
  const sim::SimulatedCost cost(cluster, study.communication);
  search::Estimator estimator(study.model, cluster, cost, launch_time_of(cluster));
  std::vector<Candidate> kept;
  for (Strategy& strategy : strategies) {
    const auto memory = estimator.memory(strategy);
    if (!memory) {
      ++result.misfits["sharding"];
      continue;
    }
    if (memory->peak > result.capacity) {
      ++result.too_large;
      if (!result.nearest || memory->peak < result.nearest->estimate.peak)
        result.nearest = Nearest{strategy, *memory};
      continue;
    }
    const auto estimate = estimator.estimate(strategy);
    if (!estimate) {
      ++result.unroutable;
      continue;
    }
    kept.push_back({std::move(strategy), *estimate});
  }
  std::ranges::stable_sort(kept, {},
                           [](const Candidate& candidate) { return candidate.estimate.step; });
  return kept;
}

Result<Simulated> simulated(const LoadedStudy& study, const ClusterView& cluster,
                            const Candidate& candidate) {
  const auto program =
      lower::lower(study.model, candidate.strategy, {.launch_time = launch_time_of(cluster)});
  if (!program) return program.error();
  const auto prediction =
      sim::simulate(cluster, *program, study.communication, {.critical_path = false});
  if (!prediction) return prediction.error();
  const auto worst = static_cast<std::size_t>(prediction->worst_memory);
  return Simulated{.strategy = candidate.strategy,
                   .estimate = candidate.estimate,
                   .step = prediction->step,
                   .peak = prediction->classes[worst].memory.peak,
                   .capacity = prediction->memory_capacity,
                   .fits = prediction->fits,
                   .mfu = prediction->mfu,
                   .tflops_per_device = prediction->model_tflops_per_device,
                   .breakdown = prediction->breakdown};
}

// Simulates some of the candidates, in the order given, several at a time. Routes are remembered by
// the cluster that finds them, so each thread has its own.
class Simulations {
 public:
  Simulations(const LoadedStudy& study, const SearchOptions& options,
              const std::vector<Candidate>& candidates, std::vector<std::size_t> which,
              Clock::time_point start)
      : study_(study),
        options_(options),
        candidates_(candidates),
        which_(std::move(which)),
        results_(which_.size()),
        start_(start) {}

  // One entry per candidate; empty where the time limit came first or it failed.
  std::vector<std::optional<Simulated>> run() {
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
      auto result = simulated(study_, *cluster, candidates_[which_[i]]);
      if (result) results_[i] = *std::move(result);
      if (options_.progress) options_.progress(++done_, static_cast<std::int64_t>(results_.size()));
    }
  }

  const LoadedStudy& study_;
  const SearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  std::vector<std::size_t> which_;
  std::vector<std::optional<Simulated>> results_;
  Clock::time_point start_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<bool> out_of_time_{false};
};

void judge(const std::vector<Candidate>& candidates,
           std::vector<std::optional<Simulated>> simulations, SearchResult& result) {
  std::vector<const Candidate*> rest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i >= simulations.size() || !simulations[i]) {
      rest.push_back(&candidates[i]);
      continue;
    }
    Simulated& one = *simulations[i];
    const double ratio = one.estimate.step / one.step;
    const bool first = result.simulated.empty();
    result.lowest_ratio = first ? ratio : std::min(result.lowest_ratio, ratio);
    result.highest_ratio = first ? ratio : std::max(result.highest_ratio, ratio);
    result.simulated.push_back(std::move(one));
  }
  std::ranges::stable_sort(result.simulated, [](const Simulated& a, const Simulated& b) {
    return a.fits != b.fits ? a.fits : a.step < b.step;
  });
  result.slower = static_cast<std::int64_t>(rest.size());
  for (const Candidate* one : rest) {
    if (!result.best_bound || one->estimate.bound < *result.best_bound)
      result.best_bound = one->estimate.bound;
  }
  if (result.simulated.empty() || !result.simulated.front().fits) return;
  result.nearest.reset();
  const Seconds best = result.simulated.front().step;
  for (const Candidate* one : rest) {
    if (one->estimate.bound >= best) ++result.provably_slower;
  }
  result.certified = result.provably_slower == result.slower;
}

}  // namespace

double SearchResult::gap() const {
  if (certified || simulated.empty() || !best_bound) return 0;
  return 1 - *best_bound / simulated.front().step;
}

Result<SearchResult> run_search(const LoadedStudy& study, const SearchOptions& options) {
  const auto start = Clock::now();
  if (study.strategy.mode != Mode::kTrain)
    return study.loader.error_at("strategy.mode", "a search compares steps of training",
                                 "leave out mode, or simulate strategies of mode: forward singly");
  if (study.graph)
    return study.loader.error_at("graph", "a search needs a model, not a general graph",
                                 "give 'model', or simulate strategies singly");
  const auto cluster = cluster_of(study);
  if (!cluster) return cluster.error();
  auto space = search::enumerate(options.space, study.strategy, study.model,
                                 static_cast<std::int64_t>(cluster->devices().size()));
  SearchResult result;
  result.considered = space.considered;
  result.misfits = std::move(space.misfits);
  result.capacity = smallest_memory(*cluster);
  if (space.candidates.empty())
    return Error{
        Error::Code::kInvalidInput,
        fmt::format("none of {} combinations suits this model and batch", result.considered)};
  const auto candidates = ranked(study, *cluster, std::move(space.candidates), result);
  std::vector<std::optional<Simulated>> results(candidates.size());
  std::optional<Seconds> best;
  const auto simulate = [&](const std::vector<std::size_t>& which) {
    Simulations simulations(study, options, candidates, which, start);
    auto found = simulations.run();
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (found[i] && found[i]->fits && (!best || found[i]->step < *best)) best = found[i]->step;
      results[which[i]] = std::move(found[i]);
    }
    result.partial = result.partial || simulations.out_of_time();
  };
  std::vector<std::size_t> first(std::min(
      candidates.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.simulate, 1))));
  std::iota(first.begin(), first.end(), std::size_t{0});
  simulate(first);

  // In rounds of a fixed size: what is simulated does not depend on the number of threads.
  constexpr std::size_t kRound = 4;
  std::vector<std::size_t> by_bound(candidates.size() - first.size());
  std::iota(by_bound.begin(), by_bound.end(), first.size());
  std::ranges::stable_sort(by_bound, {},
                           [&](std::size_t i) { return candidates[i].estimate.bound; });
  by_bound.resize(std::min(by_bound.size(),
                           static_cast<std::size_t>(std::max<std::int64_t>(options.certify, 0))));
  for (std::size_t i = 0; i < by_bound.size() && best && !result.partial; i += kRound) {
    std::vector<std::size_t> round(
        by_bound.begin() + static_cast<std::ptrdiff_t>(i),
        by_bound.begin() + static_cast<std::ptrdiff_t>(std::min(i + kRound, by_bound.size())));
    std::erase_if(round, [&](std::size_t c) { return candidates[c].estimate.bound >= *best; });
    if (round.empty()) break;
    simulate(round);
  }
  judge(candidates, std::move(results), result);
  return result;
}

std::string describe(const Strategy& strategy) {
  std::string text =
      fmt::format("tensor {}{}, pipeline {}", strategy.tensor_parallel,
                  strategy.sequence_parallel ? " with sequence" : "", strategy.pipeline_parallel);
  if (strategy.virtual_stages > 1) text += fmt::format(" x {} chunks", strategy.virtual_stages);
  text += fmt::format(", data {}, micro-batch {}", strategy.data_parallel, strategy.micro_batch);
  if (strategy.recompute != Recompute::kNone)
    text += fmt::format(", {} recomputation", yaml::name_of(strategy.recompute));
  if (strategy.zero_stage > 0) text += fmt::format(", ZeRO {}", strategy.zero_stage);
  return text;
}

}  // namespace foreshard::study
