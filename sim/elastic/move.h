/// \file
/// The move of a run to another strategy or to other devices (requirements R1, conversion of
/// sharded parameters, and R4.9, elastic runs; README.md): which slices of parameters and optimizer
/// state move, by the planner of strategies/conversion, and their time on a cluster. `foreshard
/// reshard --from-strategy`, `replan` and `elastic` call plan_move(), look at what is lost, and
/// call explain_move().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/parameters.h"
#include "strategies/conversion/conversion.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::elastic {

/// A strategy and the devices of its ranks.
struct Side {
  const Strategy& strategy;
  /// rank -> number of its device in the cluster; may have more entries than ranks.
  std::vector<std::int32_t> devices;
};

struct PlannedMove {
  conversion::Conversion plan;
  Bytes lost;  ///< Bytes of the elements in plan.lost, which no device holds any more.
};

/// Plans the move. Data that are lost are no error here: the others are planned all the same.
/// \param failed  devices whose memory is gone. A number in it may also be in `to`, for the device
///     that replaces the failed one; empty: nothing is lost.
/// \param cluster  the cluster that has the devices of both sides, old and new.
/// \return The errors of conversion::plan_conversion.
Result<PlannedMove> plan_move(const Model& model, const Side& from, const Side& to,
                              const std::vector<std::int32_t>& failed, const ClusterView& cluster);

/// The time of `plan` on the cluster for which it was planned. The caller fills in what the plan
/// does not know: Explanation::model, from, to and down.
/// \return The errors of conversion::explain, among them kInfeasible if plan.lost is not empty.
Result<conversion::Explanation> explain_move(conversion::Conversion plan,
                                             const ClusterView& cluster,
                                             const comm::Parameters& communication);

/// Size of a checkpoint of the model under the strategy: each element once, without padding.
Bytes checkpoint_size(const Model& model, const Strategy& strategy);

/// Checks that devices with the same number have the same type in both clusters; numbers that only
/// one of them has are not looked at.
/// \return kInvalidInput that names the first one that differs, and a remedy.
Status same_devices(const ClusterView& before, const ClusterView& after);

}  // namespace foreshard::elastic
