/// \file
/// What moves when a run goes on under another strategy, or on other devices (R1, R4.9): the slices
/// of parameters and optimizer state, by the planner of strategies/conversion, priced on a cluster.
/// `foreshard reshard --from-strategy`, `replan` and `elastic` all ask here.
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

/// A strategy and where its ranks are.
struct Side {
  const Strategy& strategy;
  std::vector<std::int32_t> devices;  ///< Of each rank; there may be more than ranks.
};

struct Move {
  conversion::Conversion plan;
  Bytes lost;  ///< Elements that no device has any more.
};

/// \param down  devices that hold nothing any more: those that failed, also where what replaces
///     them has their number.
/// \param where  the cluster that has the devices of both sides.
/// \return as conversion::plan_conversion.
Result<Move> plan_move(const Model& model, const Side& from, const Side& to,
                       const std::vector<std::int32_t>& down, const ClusterView& where);

/// What `plan` takes on that cluster. The names of both sides are the caller's.
/// \return as conversion::explain; kInfeasible also where something is lost.
Result<conversion::Explanation> explain_move(conversion::Conversion plan, const ClusterView& where,
                                             const comm::Parameters& communication);

/// What a checkpoint of the model holds under the strategy: each element once, padding left out.
Bytes checkpoint_size(const Model& model, const Strategy& strategy);

/// That devices with the same number are the same in both clusters.
/// \return kInvalidInput that names the first which is not, and a remedy.
Status same_devices(const ClusterView& before, const ClusterView& after);

}  // namespace foreshard::elastic
