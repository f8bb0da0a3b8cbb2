/// \file
/// Chooses the fastest known conversion from one layout to another on a given cluster (requirements
/// R2.6 and R2.7, composed conversions, and R4.8, choice by topology; README.md): candidates are
/// ranked by closed form, the best few are simulated, so that steps and groups share the links, and
/// the fastest of these is chosen.
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
  std::int32_t keep = 12;  ///< Most plans considered. At least 1.
  /// Number of plans that are simulated, cheapest first. Simulated besides: the baseline, the
  /// direct transfer (its closed form already includes all sharing of links, which other closed
  /// forms do not) and near ties (kNearTie). 0: none at all.
  std::int32_t simulate = 3;
};

struct Alternative {
  Plan plan{};  ///< `estimate`: closed form of all steps, copies within ranks included.
  std::optional<Seconds> simulated{};
  std::string remark{};  ///< Why the plan was not chosen, or not simulated.

  Seconds time() const { return simulated.value_or(plan.estimate); }
};

struct Choice {
  std::vector<Alternative> alternatives{};  ///< Ordered by closed form, cheapest first. Not empty.
  std::size_t chosen = 0;
  /// Index of the plan that one would use without a planner: gather the whole tensor on every rank
  /// that has a slice, send it where it is missing, then cut. Empty: there is none.
  std::optional<std::size_t> baseline{};
  /// Plans that were not ranked, or ranked too low to be kept.
  std::vector<Candidates::Rejected> rejected{};
  LowerBound bound{};

  const Alternative& best() const { return alternatives[chosen]; }
};

/// Plans whose closed form is within this factor of the cheapest one's are simulated too, since
/// closed forms do not rank such plans reliably (reshard_regret_test prints how wrong they are).
inline constexpr double kNearTie = 1.1;
/// With near ties, at most this many times `simulate` plans are simulated.
inline constexpr std::size_t kMostNearTies = 3;

/// Most messages (of all-to-alls and transfers) of a plan that is simulated. A plan with more is
/// compared by its closed form, and its remark says so.
inline constexpr double kMostSimulatedMessages = 250'000;

/// The plan that gathers (after reducing partial sums), transfers, cuts and pads.
/// \pre the layouts fit a tensor of `dimensions` dimensions
Plan gather_and_slice(const Layout& from, const Layout& to, std::size_t dimensions);

/// \return kInvalidInput if a layout breaks a constraint of layout.h, its ranks are not on the
///     cluster, or options are below their minimum; kInfeasible if no plan has a route.
Result<Choice> choose(const TensorSpec& tensor, const Layout& from, const Layout& to,
                      const CostModel& cost, const Placement& placement,
                      const ChooseOptions& options = {});

}  // namespace foreshard::reshard
