/// \file
/// A disturbance plan as the engine meets it: what folding must keep apart, and which events the
/// workload gets.
///
/// A failure with `reroute` gives the collectives and transfers that crossed what is dead another
/// flat form: of the same algorithm, on a cluster without all that is dead then. They go on in it
/// with the bytes that they have left, and later ones begin in it, until the repair.
/// Not modelled: latencies stay those of the first routes.
#pragma once

#include <map>
#include <vector>

#include "base/result.h"

#include "sim/disturbance/plan.h"
#include "sim/simulate/build.h"
#include "sim/simulate/fold.h"
#include "strategies/comm/collective.h"

namespace foreshard::sim {

/// From `at` on, these communicators take these forms (by bytes); all others their first ones.
struct RoutesFrom {
  Seconds at;
  std::map<std::size_t, std::map<double, comm::FlatCollective>> forms;
};

/// The routes of a plan with failures that are rerouted, by time.
/// \return kInfeasible if nothing is left to route over.
Result<std::vector<RoutesFrom>> routes_over_time(const ClusterView& cluster,
                                                 const program::Program& program,
                                                 const Communicators& communicators,
                                                 const CommunicatorForms& forms,
                                                 const comm::Parameters& parameters,
                                                 const disturbance::Plan& plan);

/// What the plan does to each rank and link, as colours: equal for equal disturbances.
InitialColours colours_of(const ClusterView& cluster, const program::Program& program,
                          const disturbance::Plan& plan);

/// As fold(), with every disturbed rank and link, and every rerouted communicator, apart from those
/// that are disturbed otherwise: the partition is stable under the loads of each routing too. Where
/// that cannot be reached, and where every kernel has a time of its own, everything for itself.
/// \pre `limits` are none, unless the plan is about speeds of devices only.
Folding fold_disturbed(const ClusterView& cluster, const program::Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       bool fold, const disturbance::Plan& plan,
                       const std::vector<RoutesFrom>& routes, const FoldLimits& limits = {});

/// As build_workload(), with the plan's jitter and events. Where devices fail, no chains: what of
/// one was done when its device died, only its parts can tell.
Result<BuiltWorkload> build_disturbed(const ClusterView& cluster, const program::Program& program,
                                      const Communicators& communicators,
                                      const CommunicatorForms& forms, const Folding& folding,
                                      Granularity granularity, bool coalesce,
                                      const disturbance::Plan& plan,
                                      const std::vector<RoutesFrom>& routes);

/// What stands in the way of a plan: kUnsupported for failures that are rerouted message by
/// message, or nothing.
Status obstacle_to(const disturbance::Plan& plan, const SimulateOptions& options);

}  // namespace foreshard::sim
