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
#include "base/units.h"

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// A lower bound on the time of any conversion from one layout to another on a cluster, whatever
/// the primitives. It follows from the bytes that must enter or leave a device, or a node, and the
/// bandwidth of all links that lead there.
///
///     max over devices and nodes, in and out, of (bytes that must cross) / (link bandwidth)
///
/// Data that a device needs and does not hold must enter it; data that only it holds and another
/// device needs must leave it, at least once. The same holds for all devices of a node together,
/// over the links that join the node to the fabric, since a device can pass on inside the node what
/// it has received. No rank holds the values of a partial tensor, so at least one summand of all
/// that a device needs must enter it. A partial target has no bound, since its summands are
/// arbitrary.
/// Not modelled: latency; switches and cables behind the node's own links.
struct LowerBound {
  Seconds time{};
  std::string meaning{};  ///< "1.88 GB must enter node 1 at 400 GB/s". Empty: nothing must move.
};

/// Cost: O(ranks x pieces), pieces = the cells between all cuts of both layouts. Beyond 2^22 of
/// these, nodes are left out and the bound covers devices only, from their slices.
/// \pre both layouts fit the tensor, and their ranks have devices
LowerBound lower_bound(const TensorSpec& tensor, const Layout& from, const Layout& to,
                       const Placement& placement);

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
