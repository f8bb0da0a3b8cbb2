/// \file
/// Search for the best strategy of a study's model on its cluster (R4.4): every candidate of the
/// space is estimated, those that fit are ranked, the best ones are simulated.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/team/team.h"
#include "base/units.h"

#include "sim/search/estimate.h"
#include "sim/search/robustness.h"
#include "sim/search/space.h"
#include "sim/search/why_not.h"
#include "sim/simulate/prediction.h"
#include "sim/study/evidence.h"
#include "sim/study/study.h"

namespace foreshard::search {

struct SearchOptions {
  SearchSpace space = {};
  std::int64_t simulate = 20;  ///< Candidates that are simulated, the best estimates first.
  /// The most candidates that are simulated after those to certify the winner: candidates whose
  /// lower bound is below the best time so far, the lowest bounds first, until none is left. At
  /// level 3 there is no such limit where all that are left take about a minute or less to
  /// simulate.
  std::int64_t certify = 20;
  /// The most candidates that are simulated after those for the Pareto front of time, memory and
  /// money, which the estimates make.
  std::int64_t front = 6;
  std::int64_t threads = 2;
  /// Wall-clock limit. No work begins after it: the result is then the best so far, marked as
  /// partial. Estimates take at most two thirds of it.
  std::optional<std::chrono::duration<double>> time_limit = {};
  /// Called between strategies, from any thread; true ends the search. May be empty.
  std::function<bool()> stop = {};
  /// Whether the best so far is the result, marked as partial, where the system gives no more
  /// memory or threads after a strategy that fits was simulated. Otherwise the exception reaches
  /// the caller.
  bool best_so_far = false;
  /// The team of processes whose rank 0 this is: the other ranks simulate too. Null: this process
  /// searches alone. May not be set with `all_fit`.
  const team::Team* team = nullptr;
  std::string version = {};  ///< Version of the program; ranks of another version are refused.
  std::string why_not = {};  ///< A strategy in words (why_not.h) whose absence is explained.
  /// Every candidate counts as one that fits, whatever memory it needs, because it is known to run.
  bool all_fit = false;
  /// Whether a strategy that leaves less than the study's memory margin counts as one that does not
  /// fit. Where no strategy keeps the margin, run_search searches again with false.
  bool keep_margin = true;
  /// Whether SearchResult::runnable is looked for.
  bool runnable = false;
  /// Called from any thread after each simulation, with the counts of the round at hand. May be
  /// empty.
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};
};

struct Simulated {
  Strategy strategy;
  Estimate estimate;
  /// Nodes and devices to name in the study's `use`; empty: the study's own.
  std::vector<std::string> use;
  /// Index in its place's enumeration; after search_among(), index of the given strategy.
  std::int64_t order = 0;
  Seconds step;
  Seconds low;  ///< Interval of the step, as in a Prediction.
  Seconds high;
  study::Unmeasured unmeasured;  ///< The part of the step that nobody measured.
  std::int64_t idle = 0;         ///< Working devices that carry no rank.
  Bytes peak;                    ///< Peak memory of the device with the least room.
  Bytes capacity;
  bool fits = true;
  bool tight = false;  ///< It leaves less than the study's memory margin.
  double mfu = 0;
  double tflops_per_device = 0;
  sim::Breakdown breakdown;
  std::optional<Dollars> usd;  ///< Cost of a step, as in an Expense.
  std::optional<Joules> energy;
  std::vector<std::int32_t> devices;  ///< Devices of its ranks, in their order.
  /// Rent of `devices` for a step; nothing where the price of one is not known.
  std::optional<Dollars> rent_of_used;
  /// Whether it is on the Pareto front: no other strategy that fits is at least as good in time,
  /// memory and money and better in one of them. Money is the rent, or device_time() where some
  /// simulated strategy has no price.
  bool on_front = false;

  /// Time of all its devices together, for a step.
  Seconds device_time() const { return static_cast<double>(devices.size()) * step; }
  Bytes headroom() const { return capacity - peak; }
};

/// The candidate that lacks the least memory, where none fits. Apart from its memory it could run.
struct Nearest {
  Strategy strategy;
  Estimate estimate;
};

struct SearchResult {
  SearchSpace space = {};                       ///< The space that was searched.
  std::int64_t considered = 0;                  ///< Combinations of the space.
  std::int64_t not_reached = 0;                 ///< Combinations that the time limit left out.
  bool whole_space = true;                      ///< All combinations were counted before it ended.
  std::map<std::string, std::int64_t> misfits;  ///< Forbidden combinations, by the key at fault.
  std::int64_t too_large = 0;                   ///< Candidates that need more memory than there is.
  /// Candidates that could not be estimated or simulated because their ranks cannot reach each
  /// other, and the error of the first one.
  std::int64_t unroutable = 0;
  std::string no_route;
  /// Candidates that fit but were not simulated because their estimates are slower.
  std::int64_t slower = 0;
  /// Candidates of `slower` whose lower bound is no less than the winner's time.
  std::int64_t provably_slower = 0;
  std::int64_t devices = 0;       ///< Devices that ranks may run on.
  std::int64_t most_devices = 0;  ///< The most devices that a candidate uses.
  std::string shortage;           ///< Why `devices` are not all of the cluster's.
  /// Strategies that fit come first, of these the ones that keep the memory margin, each by time.
  std::vector<Simulated> simulated;
  /// Interval of estimate / simulated time over the simulated ones.
  double lowest_ratio = 0;
  double highest_ratio = 0;
  /// The least lower bound of the candidates that were not simulated. Nothing where all were, or
  /// where some combinations were not looked at.
  std::optional<Seconds> best_bound;
  /// Within the simulator's model, no strategy that was considered can be faster than the best
  /// simulated one. Only a few unequal shares of the batch and a few ways to offload are
  /// considered.
  bool certified = false;
  /// Index in `simulated` of the fastest strategy that the framework can run, where it has no
  /// option for the unequal shares of the first one (SearchOptions::runnable).
  std::optional<std::size_t> runnable;
  /// As `certified`, for `runnable` among the strategies with equal shares.
  bool runnable_certified = false;
  double memory_margin = 0;   ///< The part of each device's memory that should stay free.
  std::string margin_source;  ///< Source of the margin, as in study::MemoryMargin.
  /// Nothing fits without the memory of hosts, so offloading was tried unasked
  /// (SearchSpace::offload).
  bool tried_hosts = false;
  /// What offloading needs to know of the hosts and the cluster does not tell; else empty.
  std::string no_hosts;
  bool is_priced = false;          ///< Every device that a simulated strategy uses has a price.
  bool partial = false;            ///< It ended before it was through; ended_by() says why.
  std::string missing;             ///< The resource that ran out, in words; else empty.
  std::optional<Nearest> nearest;  ///< The candidate nearest to fitting, where nothing fits.
  std::optional<WhyNot> why_not;   ///< Answer to SearchOptions::why_not.
  Robustness robustness;           ///< Robustness of the order of the first kContenders that fit.

  bool has_answer() const { return !simulated.empty() && simulated.front().fits; }
  /// What ended a partial search; where nothing is missing, the time limit came first, or somebody
  /// stopped it.
  std::string ended_by() const { return missing.empty() ? "the time was over" : missing; }
  /// Whether no simulated strategy that fits keeps the study's memory margin.
  bool is_tight() const { return has_answer() && simulated.front().tight; }
  /// Whether the answer fits only by offloading to hosts that nobody asked for.
  bool needs_hosts() const { return tried_hosts && has_answer(); }
  /// Nothing where there were no draws.
  std::optional<Robustness> tested() const {
    return robustness.draws > 0 ? std::optional(robustness) : std::nullopt;
  }
  /// The number of strategies that fit and whose interval overlaps the best one's, without the
  /// best.
  std::int64_t overlapping() const;
  /// How much faster than the best simulated one an unsimulated candidate could be at most, as a
  /// part of its time; 0 if certified.
  double gap() const;
  /// The probability that the first strategy really is faster than the second. Their times are
  /// taken as independent log-normal variables around the simulated times, with 10th and 90th
  /// percentiles as far apart as the ends of their intervals. Strategies of one framework on the
  /// same devices share most of their errors, which would make the order more certain. Nothing
  /// where fewer than two strategies fit.
  std::optional<double> first_beats_second() const;
};

/// How many of the best strategies are ranked again with other numbers (robustness.h).
inline constexpr std::int64_t kContenders = 4;

/// Searches the whole space. Ranks run on all or some of the devices of the study's pool, or of the
/// parts of it that device_subsets_of() (device_subset.h) names.
/// \return kInvalidInput for a strategy of mode: forward or with batch_shares, for a general graph,
///     for a model with too many kinds of layers, where the cluster cannot be built, or where no
///     candidate is left to try; kIo where the team cannot wait for its other ranks.
Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options);

/// Searches among the given strategies instead of a space: ranks them by estimate, drops them by
/// lower bound, and simulates until the winner is certified, as far as `options` allow.
/// \param strategies  of the study's framework, precision, batch and optimizer. One that its model
///     or pool forbids counts among the misfits.
/// \return kInvalidInput where the cluster cannot be built.
Result<SearchResult> search_among(const study::LoadedStudy& study,
                                  const std::vector<Strategy>& strategies,
                                  const SearchOptions& options);

/// The answer to `options.why_not` for a search over `options.space` that is done: `whole` is its
/// result. Only its simulated strategies and `tried_hosts` are read.
/// \return kInvalidInput for words that name no strategy, and as run_search.
Result<WhyNot> why_not(const study::LoadedStudy& study, const SearchOptions& options,
                       const SearchResult& whole);

}  // namespace foreshard::search
