/// \file
/// What it costs to follow a search: of the strategies that somebody measured, the search takes
/// one, and another may have been faster. And how far simulation ranks them as measured.
///
/// A **group** is the rows of one table that were measured with the same model, framework, batch,
/// sequence and precision on as many devices of the same machine, in kFewestStrategies different
/// strategies at least. Several rows of one strategy count by the mean of their times.
///
///     regret = measured time of the strategy that the search takes / least measured time - 1
///
/// The search is `search::search_among` on the group's strategies: ranked by estimate, dropped by
/// lower bound, simulated until the choice is certified. What was measured did run, so memory rules
/// nothing out.
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

struct RegretGroup {
  std::string file;
  std::string model;
  std::string device;
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::string precision;
  std::int64_t strategies = 0;
  std::int64_t simulated = 0;  ///< Of these, until the choice was certified.
  bool certified = false;
  std::string chosen;     ///< The first row with the strategy that the search takes.
  std::string fastest;    ///< Likewise: that was measured the fastest.
  std::string simulates;  ///< Likewise: of the least time when each row is simulated.
  double regret_pct = 0;
  /// Of measured against simulated times of the strategies (statistics.h); empty where one side is
  /// all equal.
  std::optional<double> tau{};
  double slower_pct = 0;  ///< What the choice takes longer in simulation than `simulates`.
};

struct MeanRegret {
  std::int64_t groups = 0;
  double mean_pct = 0;
  double worst_pct = 0;
  std::optional<double> tau{};  ///< Mean of the groups that have one.
};

struct Regret {
  std::vector<RegretGroup> groups;          ///< In the order of their first rows.
  std::map<std::string, MeanRegret> files;  ///< Of those that have groups.
  MeanRegret overall;                       ///< Each group counts the same.
};

/// Of the steps of training runs among the rows that have a prediction. Left out: strategies that
/// offload, of which the search knows nothing.
/// \param threads  groups at a time; the result does not depend on it.
/// \return errors of the cluster and of the search.
Result<Regret> regret_of(const std::vector<Outcome>& rows, const Context& context, int threads);

}  // namespace foreshard::accuracy
