/// \file
/// Which of the candidates of a search are simulated, in what order, and what that shows.
///
/// The best estimates come first: of each kind of strategies, which divide their devices alike,
/// one, and then the best by what those of their kind took beside their estimates. Then, until the
/// winner is certain, those whose lower bound is below its time, the lowest bounds first, in rounds
/// of a fixed size: what is simulated does not depend on the number of threads. Where strategies
/// may win that are not listed, one round; where everything is searched and all that may win are
/// quick to simulate, all of them. Then those that cannot win, as many as are to be listed, and
/// some of the Pareto front of time, memory and money that the estimates make.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "sim/search/place.h"
#include "sim/search/search.h"

namespace foreshard::search {

struct Candidate {
  Strategy strategy;
  Estimate estimate;
  const Place* place;
  std::int64_t order = 0;  ///< In its place's enumeration.
};

/// When to end. One for a search; asked from any thread.
class Deadline {
 public:
  explicit Deadline(const SearchOptions& options) : options_(options) {}

  bool is_over() const { return passed(1); }
  bool is_over_for_estimates() const { return passed(kShareOfEstimates); }
  /// What is left of the time limit; nothing where there is none.
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

/// Whether it misses less memory than the nearest so far.
bool is_nearer(const Estimate& estimate, const std::optional<Nearest>& nearest);

/// Strategies of a search that are not among its candidates, though they may fit.
struct Unlisted {
  std::int64_t far = 0;            ///< Take no less than `limit`.
  std::vector<Seconds> near{};     ///< Bounds of the others.
  std::optional<Seconds> limit{};  ///< Nothing: there are none.

  /// Joins them; the limit of both is the lesser.
  void add(const Unlisted& others);
};

class Simulations;

/// Simulates some of `candidates`, which are in the order of their estimates, and says so in
/// `result`, which may have simulated some before.
/// \param is_last  whether also candidates that cannot win are simulated, for the list and the front.
/// \return the lower bounds of those that were not simulated.
std::vector<Seconds> race(const study::LoadedStudy& study, const ClusterView& cluster,
                          const SearchOptions& options, const std::vector<Candidate>& candidates,
                          const Unlisted& unlisted, const Deadline& deadline,
                          Simulations& simulations, SearchResult& result, bool is_last = true);

}  // namespace foreshard::search
