/// \file
/// Measures the search: how much slower its choice was measured than the fastest strategy that
/// somebody measured, and how well simulation ranks the measured strategies. Called by score()
/// (accuracy.cc) for `foreshard accuracy --regret` and `--report`.
///
/// A **group** is the rows of one table that were measured with the same model, framework, batch,
/// sequence and precision on the same number of devices of the same machine, with at least
/// kFewestStrategies different strategies. Several rows of one strategy count as one, with the mean
/// of their times.
///
///     regret = measured time of the strategy that the search takes / least measured time - 1
///
/// The search is `search::search_among` on the group's strategies: it ranks them by estimate, drops
/// them by lower bound, and simulates until the choice is certified. Every measured strategy did
/// run, so memory rules none out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

struct Context;

inline constexpr std::size_t kFewestStrategies = 5;

/// The result of one group.
struct RegretGroup {
  std::string file;
  std::string model;
  std::string device;
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::string precision;
  std::int64_t strategies = 0;  ///< Number of different strategies.
  std::int64_t simulated = 0;   ///< Strategies that were simulated to certify the choice.
  bool certified = false;
  std::string chosen;     ///< Id of the first row with the strategy that the search takes.
  std::string fastest;    ///< Id of the first row with the strategy that was measured the fastest.
  std::string simulates;  ///< Id of the first row with the strategy of least simulated time.
  double regret_pct = 0;
  /// Kendall's tau of measured against simulated times of the strategies (statistics.h); empty if
  /// all measured or all simulated times are equal.
  std::optional<double> tau{};
  double slower_pct = 0;  ///< How much longer `chosen` takes than `simulates`, both simulated.
};

/// The mean and the worst regret over several groups, each with the same weight.
struct MeanRegret {
  std::int64_t groups = 0;
  double mean_pct = 0;
  double worst_pct = 0;
  std::optional<double> tau{};  ///< Mean over the groups that have a tau.
};

struct Regret {
  std::vector<RegretGroup> groups;          ///< Groups, sorted by their first rows.
  std::map<std::string, MeanRegret> files;  ///< file -> mean over its groups, if it has any.
  MeanRegret overall;                       ///< Mean over all groups.
};

/// The regret over the predicted rows of training steps. Strategies that offload to the host are
/// left out.
/// \param threads  number of threads, each of which searches one group at a time; the result does
///     not depend on it.
/// \return Errors of the study and of the search; kInfeasible if no strategy of a group can be
///     routed.
Result<Regret> regret_of(const std::vector<Outcome>& rows, const Context& context, int threads);

}  // namespace foreshard::accuracy
