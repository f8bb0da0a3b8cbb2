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
  /// Simulated after those at most: candidates whose lower bound is below the best time so far, the
  /// lowest bounds first, until none is left and the winner is certified. Of level 3 more, where
  /// all that are left take about a minute.
  std::int64_t certify = 20;
  /// Simulated after those at most: candidates of the Pareto front of time, memory and money, by
  /// estimate.
  std::int64_t front = 6;
  std::int64_t threads = 2;
  /// Nothing begins after this: the result is the best so far, and marked as partial. Estimates
  /// take two thirds of it at most.
  std::optional<std::chrono::duration<double>> time_limit = {};
  /// Asked between strategies, from any thread: whether to end now. May be empty.
  std::function<bool()> stop = {};
  /// As rank 0 of several, which simulate too; null: alone. May not be set with `all_fit`.
  const team::Team* team = nullptr;
  std::string version = {};  ///< Of the program: ranks of another one are refused.
  std::string why_not = {};  ///< A strategy in words (why_not.h) whose absence is explained.
  /// Every candidate counts as one that fits, whatever it needs: it is known to run.
  bool all_fit = false;
  /// Whether what leaves less than the study's memory margin counts as what does not fit. Where
  /// nothing keeps it, run_search sets this to false.
  bool keep_margin = true;
  /// Called from any thread as work ends: how much is done of how much. May be empty.
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};
};

struct Simulated {
  Strategy strategy;
  Estimate estimate;
  std::vector<std::string> use;  ///< Nodes to name in the study's `use`; empty: as the study does.
  std::int64_t order = 0;        ///< In search_among: which of those given.
  Seconds step;
  Seconds low;  ///< Interval of the step, as of a Prediction.
  Seconds high;
  study::Unmeasured unmeasured;  ///< What of the step nobody measured.
  std::int64_t idle = 0;         ///< Devices that work and carry no rank.
  Bytes peak;                    ///< Of the device with the least room.
  Bytes capacity;
  bool fits = true;
  bool tight = false;  ///< It leaves less than the study's memory margin.
  double mfu = 0;
  double tflops_per_device = 0;
  sim::Breakdown breakdown;
  std::optional<Dollars> usd;  ///< Of a step, as of an Expense.
  std::optional<Joules> energy;
  std::vector<std::int32_t> devices;  ///< Of its ranks.
  /// Rent of these for a step; of devices whose price is not known, nothing.
  std::optional<Dollars> rent_of_used;
  /// No other that fits is better in time, memory and money: rent, or device_time() where not all
  /// of the search have a price.
  bool on_front = false;

  /// Of all its devices, for a step.
  Seconds device_time() const { return static_cast<double>(devices.size()) * step; }
  Bytes headroom() const { return capacity - peak; }
};

/// The candidate that misses the least memory, where none fits; but for that it could run.
struct Nearest {
  Strategy strategy;
  Estimate estimate;
};

struct SearchResult {
  SearchSpace space = {};        ///< That was searched.
  std::int64_t considered = 0;   ///< Combinations of the space.
  std::int64_t not_reached = 0;  ///< Of these: the time was over before.
  bool whole_space = true;       ///< The time was not over before all combinations were counted.
  std::map<std::string, std::int64_t> misfits;  ///< By the key that this model forbids.
  std::int64_t too_large = 0;                   ///< Candidates that need more memory than there is.
  /// Candidates that no estimate or simulation could be made of (their ranks cannot reach each
  /// other), and what the first one met.
  std::int64_t unroutable = 0;
  std::string no_route;
  std::int64_t slower = 0;  ///< Candidates that fit but were not simulated: their estimates lose.
  std::int64_t provably_slower = 0;  ///< Of those: their lower bound exceeds the winner's time.
  std::int64_t devices = 0;          ///< That ranks may run on.
  std::int64_t most_devices = 0;     ///< That any candidate uses.
  std::string shortage;              ///< Why `devices` are not all of the cluster's.
  std::vector<Simulated> simulated;  ///< Those that fit, by simulated time, then the others.
  /// Interval of estimate / simulated time over the simulated ones.
  double lowest_ratio = 0;
  double highest_ratio = 0;
  /// The least lower bound of what was not simulated; nothing if all was.
  std::optional<Seconds> best_bound;
  /// Within the model, none of those considered can be faster than the best simulated one. Of
  /// unequal shares of the batch, and of what hosts may hold, a few are considered.
  bool certified = false;
  double memory_margin = 0;   ///< The part of each device's memory that should stay free.
  std::string margin_source;  ///< As study::MemoryMargin.
  /// Nothing fits without the memory of hosts, which was tried unasked (SearchSpace::offload).
  bool tried_hosts = false;
  std::string no_hosts;    ///< Where the cluster does not tell enough of its hosts: what it lacks.
  bool is_priced = false;  ///< Every device that a simulated strategy uses has a price.
  bool partial = false;    ///< The time limit came first, or somebody stopped it.
  std::optional<Nearest> nearest;  ///< Where nothing fits.
  std::optional<WhyNot> why_not;   ///< Of SearchOptions::why_not.
  Robustness robustness;           ///< Of the first kContenders that fit.

  bool has_answer() const { return !simulated.empty() && simulated.front().fits; }
  /// Nothing that fits keeps the study's memory margin: so far as was looked, the first does not.
  bool is_tight() const { return has_answer() && simulated.front().tight; }
  /// What fits does so by memory of hosts that nobody asked for.
  bool needs_hosts() const { return tried_hosts && has_answer(); }
  /// Those that fit whose interval overlaps that of the best one, which is not counted.
  std::int64_t overlapping() const;
  /// How much faster than the best simulated one an unsimulated candidate could be at most, as a
  /// part of its time; 0 if certified.
  double gap() const;
  /// The probability that a machine runs the first faster than the second: that of two log-normal
  /// times around the simulated ones, independent of each other, whose 10th and 90th percentiles
  /// are as far apart as those of their intervals. Errors that both share, as strategies of one
  /// framework on the same devices do for the most part, would make it surer. Nothing where two
  /// that fit are not there.
  std::optional<double> first_beats_second() const;
};

/// Strategies whose order is held against other numbers (robustness.h).
inline constexpr std::int64_t kContenders = 4;

/// Ranks run on the study's pool, on as many devices as there are or on a part of them, and on the
/// parts of it that places_of() (place.h) names.
/// \return kInvalidInput for a strategy of mode: forward, where the cluster cannot be built, or
///     where no candidate is left to try; kIo where other ranks cannot be waited for.
Result<SearchResult> run_search(const study::LoadedStudy& study, const SearchOptions& options);

/// The same among given strategies alone, instead of a space: ranked by estimate, dropped by bound,
/// simulated until certified as `options` allow.
/// \param strategies  of the study's framework, precision, batch and optimizer. One that its model
///     or pool forbids counts among the misfits.
/// \return kInvalidInput where the cluster cannot be built.
Result<SearchResult> search_among(const study::LoadedStudy& study,
                                  const std::vector<Strategy>& strategies,
                                  const SearchOptions& options);

/// What `run_search` with `options.why_not` says beside the result of the search without: of
/// `whole`, the space and the listed strategies count.
/// \return kInvalidInput for words that name no strategy, and as run_search.
Result<WhyNot> why_not(const study::LoadedStudy& study, const SearchOptions& options,
                       const SearchResult& whole);

}  // namespace foreshard::search
