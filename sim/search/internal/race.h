/// \file
/// Decides which candidates of a search are simulated, and in what order, and judges the results.
///
/// The best estimates come first: one for each kind (strategies that divide their devices alike),
/// then the best by estimate times the ratio of simulated to estimated time of their kind so far.
/// Then come candidates whose lower bound is below the winner's time, the lowest bounds first,
/// until the winner is certain. Rounds have a fixed size, so that the simulated candidates do not
/// depend on the number of threads. Where strategies that are not listed may win, there is only one
/// such round; where everything is searched and all that may win are quick to simulate, there is no
/// limit. Last come candidates that cannot win, as many as are to be listed, and some of the Pareto
/// front of time, memory and money that the estimates make.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "sim/search/device_subset.h"
#include "sim/search/search.h"

namespace foreshard::search {

struct Candidate {
  Strategy strategy;
  Estimate estimate;
  const DeviceSubset* place;
  std::int64_t order = 0;  ///< Index in its place's enumeration.
};

/// The time limit of a search. One per search; may be asked from any thread.
class Deadline {
 public:
  explicit Deadline(const SearchOptions& options) : options_(options) {}

  bool is_over() const { return passed(1); }
  bool is_over_for_estimates() const { return passed(kShareOfEstimates); }
  /// Time left of the limit; nothing where there is no limit.
  std::optional<std::chrono::duration<double>> left() const {
    if (!options_.time_limit) return std::nullopt;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return std::max(std::chrono::duration<double>{}, *options_.time_limit - passed);
  }

 private:
  static constexpr double kShareOfEstimates = 2.0 / 3;

  bool passed(double share) const {
    if (options_.stop && options_.stop()) return true;
    return options_.time_limit &&
           std::chrono::steady_clock::now() - start_ >= share * *options_.time_limit;
  }

  const SearchOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Whether the estimate lacks less memory than the nearest so far.
bool is_nearer(const Estimate& estimate, const std::optional<Nearest>& nearest);

/// Counts of the strategies of a search that are not among its candidates, though they may fit.
struct Unlisted {
  std::int64_t far = 0;            ///< Strategies that take no less than `limit`.
  std::vector<Seconds> near{};     ///< Lower bounds of the other strategies.
  std::optional<Seconds> limit{};  ///< The limit of `far`; nothing: `far` is 0.

  /// Adds others; the lesser limit applies to both.
  void add(const Unlisted& others);
};

class Simulations;

/// Simulates some of `candidates`, which are in the order of their estimates, into `result`, which
/// may have some simulations already.
/// \param is_last  whether candidates that cannot win are simulated too, for the list and the
///     front.
/// \return the lower bounds of the candidates that were not simulated.
std::vector<Seconds> race(const study::LoadedStudy& study, const ClusterView& cluster,
                          const SearchOptions& options, const std::vector<Candidate>& candidates,
                          const Unlisted& unlisted, const Deadline& deadline,
                          Simulations& simulations, SearchResult& result, bool is_last = true);

/// Sorts the simulated strategies of a result, and marks those on the Pareto front.
void rank(SearchResult& result);

/// Does nothing if `result` has an answer. Else it lists the strategies of each place anew (of
/// level 2 at most), offloads as little as possible of the best ones that need too much memory
/// (offload.h), and simulates those into `result`. Where simulations need more memory than their
/// estimates, it offloads more, by the largest error of the estimates.
/// \param unlisted  strategies that `result` has not simulated, though they might fit without
///     offloading.
void race_on_hosts(const study::LoadedStudy& study, const ClusterView& cluster,
                   const std::vector<DeviceSubset>& places, const SearchOptions& options,
                   const Unlisted& unlisted, const Deadline& deadline, Simulations& simulations,
                   SearchResult& result);

}  // namespace foreshard::search
