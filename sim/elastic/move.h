/// \file
/// The move of a run to another strategy or to other devices (R1, R4.9): which slices of parameters
/// and optimizer state move, by the planner of strategies/conversion, and their time on a cluster.
/// `foreshard reshard --from-strategy`, `replan` and `elastic` all use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/parameters.h"
#include "strategies/conversion/explain.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::elastic {

/// A strategy and the devices of its ranks.
struct Side {
  const Strategy& strategy;
  std::vector<std::int32_t> devices;  ///< Indexed by rank; may have more entries than ranks.
};

struct Move {
  conversion::Conversion plan;
  Bytes lost;  ///< Bytes of elements that no device holds any more.
};

/// \param down  devices that no longer hold anything: the failed ones, even if a replacement has
///     the same number.
/// \param where  the cluster that has the devices of both sides.
/// \return The errors of conversion::plan_conversion.
Result<Move> plan_move(const Model& model, const Side& from, const Side& to,
                       const std::vector<std::int32_t>& down, const ClusterView& where);

/// The time of `plan` on that cluster. The caller sets the names of both sides.
/// \return The errors of conversion::explain; kInfeasible also if something is lost.
Result<conversion::Explanation> explain_move(conversion::Conversion plan, const ClusterView& where,
                                             const comm::Parameters& communication);

/// Size of a checkpoint of the model under the strategy: each element once, without padding.
Bytes checkpoint_size(const Model& model, const Strategy& strategy);

/// Checks that devices with the same number are the same in both clusters.
/// \return kInvalidInput that names the first one that differs, and a remedy.
Status same_devices(const ClusterView& before, const ClusterView& after);

}  // namespace foreshard::elastic
