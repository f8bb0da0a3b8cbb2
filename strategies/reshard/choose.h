/// \file
/// The fastest known way from one layout to another on a given cluster (R2.6, R2.7, R4.8): the
/// candidates are ranked by closed form, the best few simulated, where steps and groups share the
/// links, and the fastest of those is taken.
///
///     const auto choice = choose(tensor, from, to, cost, {.cluster = &cluster});
///     choice->best().plan.steps ...
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/bound.h"
#include "strategies/reshard/placement.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

struct ChooseOptions {
  std::int32_t keep = 12;  ///< Plans considered at most. At least 1.
  /// How many are simulated, cheapest first; beside these the baseline, the direct transfer (its
  /// closed form already has all that shares links, those of other plans do not) and near ties
  /// (kNearTie). 0: none at all.
  std::int32_t simulate = 3;
};

struct Alternative {
  Plan plan{};  ///< `estimate` is the closed form of all its steps, copies within ranks included.
  std::optional<Seconds> simulated{};
  std::string remark{};  ///< Why it was not chosen, or not simulated.

  Seconds time() const { return simulated.value_or(plan.estimate); }
};

struct Choice {
  std::vector<Alternative> alternatives{};  ///< By closed form, cheapest first. Not empty.
  std::size_t chosen = 0;
  /// Gather the whole tensor on every rank that has a slice, then send it where it is missing, then
  /// cut: what is done without a planner.
  std::optional<std::size_t> baseline{};
  std::vector<Candidates::Rejected> rejected{};  ///< Not even ranked, or ranked too low to be kept.
  LowerBound bound{};

  const Alternative& best() const { return alternatives[chosen]; }
};

/// Plans whose closed form is within this factor of the cheapest one's are simulated too: by closed
/// form alone the order of such plans says little (reshard_regret_test prints how wrong it is).
inline constexpr double kNearTie = 1.1;
/// No more than this many times `simulate` plans are simulated for being near ties.
inline constexpr std::size_t kMostNearTies = 3;

/// Messages (of all-to-alls and transfers) of a plan that is simulated at most; one with more is
/// compared by its closed form, which its remark states.
inline constexpr double kMostSimulatedMessages = 250'000;

/// A plan of one kind of series: gather (after reducing what is partial), spread, cut, pad.
/// \pre the layouts fit a tensor of `dimensions`.
Plan gather_and_slice(const Layout& from, const Layout& to, std::size_t dimensions);

/// \return kInvalidInput if a layout breaks a constraint of layout.h, its ranks are not on the
///     cluster, or options are below what is allowed; kInfeasible if no plan has a route.
Result<Choice> choose(const TensorSpec& tensor, const Layout& from, const Layout& to,
                      const CostModel& cost, const Placement& placement,
                      const ChooseOptions& options = {});

}  // namespace foreshard::reshard
