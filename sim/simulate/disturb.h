/// \file
/// Applies a disturbance plan: which ranks and links folding must keep apart, and which events the
/// workload gets.
///
/// A failure with `reroute` gives another flat form to the collectives and transfers that crossed
/// dead links: the same algorithm, on a cluster without all that is dead at that time. They
/// continue in it with their remaining bytes, and later ones begin in it, until the repair.
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

/// From `at` on, these communicators have these forms (by bytes); all others have their first ones.
struct RoutesFrom {
  Seconds at;
  std::map<std::size_t, std::map<double, comm::FlatCollective>> forms;
};

/// The routes under a plan with rerouted failures, sorted by time.
/// \return kInfeasible if nothing is left to route over.
Result<std::vector<RoutesFrom>> routes_over_time(const ClusterView& cluster,
                                                 const program::Program& program,
                                                 const Communicators& communicators,
                                                 const CommunicatorForms& forms,
                                                 const comm::Parameters& parameters,
                                                 const disturbance::Plan& plan);

/// The plan's effect on each rank and link, as colours: equal for equal disturbances.
InitialColours colours_of(const ClusterView& cluster, const program::Program& program,
                          const disturbance::Plan& plan);

/// Folds like fold(), but keeps apart disturbed ranks and links, and rerouted communicators, whose
/// disturbances differ: the partition is stable under the loads of each routing too. If that cannot
/// be reached, or if every kernel has a time of its own, nothing is folded.
/// \pre `limits` has its defaults, unless the plan is about speeds of devices only.
Folding fold_disturbed(const ClusterView& cluster, const program::Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       bool fold, const disturbance::Plan& plan,
                       const std::vector<RoutesFrom>& routes, const FoldLimits& limits = {});

/// Like build_workload(), with the plan's jitter and events. If devices fail, there are no chains:
/// only its separate kernels show how much of a chain was done when its device died.
Result<BuiltWorkload> build_disturbed(const ClusterView& cluster, const program::Program& program,
                                      const Communicators& communicators,
                                      const CommunicatorForms& forms, const Folding& folding,
                                      Granularity granularity, bool coalesce,
                                      const disturbance::Plan& plan,
                                      const std::vector<RoutesFrom>& routes);

/// Why a plan cannot be applied: kUnsupported for failures that are rerouted message by message;
/// otherwise no error.
Status obstacle_to(const disturbance::Plan& plan, const SimulateOptions& options);

}  // namespace foreshard::sim
