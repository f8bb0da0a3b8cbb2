/// \file
/// Program + cluster -> Prediction.
///
/// The Program is folded first (fold.h): ranks that must behave alike become one class. The
/// expander lists each class's task instances; the compute model gives kernels their time, the
/// collective algorithms give communications their loads on links; an event engine runs them; the
/// result is read off its time line.
#pragma once

#include <limits>
#include <map>
#include <string>

#include "base/result.h"
#include "base/yaml/sourced.h"

#include "sim/compute/operator_time.h"
#include "sim/disturbance/plan.h"
#include "sim/simulate/prediction.h"
#include "strategies/comm/collective.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::sim {

enum class EngineKind : std::uint8_t { kFluid, kSimgrid };
enum class Granularity : std::uint8_t {
  kFlat,      ///< A collective is one activity with a weight on each link.
  kStepwise,  ///< Every message of a collective is a flow.
};

/// How sure the rates of links are, beside the numbers of the communication library.
struct LinkEvidence {
  yaml::Evidence inside = yaml::Evidence::kMeasured;   ///< Of a node.
  yaml::Evidence network = yaml::Evidence::kMeasured;  ///< From node to node.
};

struct SimulateOptions {
  EngineKind engine = EngineKind::kFluid;
  Granularity granularity = Granularity::kFlat;
  bool fold = true;       ///< Simulate one device per class; exact either way.
  bool coalesce = true;   ///< Run undisturbed chains of kernels as one activity (chains.h): exact
                          ///< but for the times of tasks inside a slowed chain.
  bool timeline = false;  ///< Keep every task's times, for traces.
  bool critical_path = true;
  bool every_class = true;  ///< Breakdown and kernel times of each class of devices; otherwise the
                            ///< breakdown of the one that ends last alone.
  /// Most memory that the simulated tasks may take, as estimated before they are written out
  /// (memory_limit.h). Infinite: no limit.
  Bytes max_memory = Bytes::from_base(std::numeric_limits<double>::infinity());
  /// What each device's memory has no room for besides tensors (strategies/parallelism/reserve.h).
  Bytes reserve{};
  /// By the name of the device type; of those not named, links are as sure as can be.
  std::map<std::string, LinkEvidence> links = {};
  /// The disturbances; may be null. The caller applies its slow devices (disturbance::slowed).
  const disturbance::Plan* disturbances = nullptr;
};

/// \pre the Program is verified (strategies/program/ir/verify.h); only deadlocks are found here
///     too.
/// \return kInvalidInput for a Program that deadlocks or does not fit the cluster's device count,
///     kInfeasible where the strategy needs a route that does not exist, or a failure leaves none
///     to reroute over; kInvalidInput where more than `max_memory` is needed; kUnsupported for what
///     the engine or granularity cannot express. A step that a failure interrupts is a Prediction
///     with an `interruption`.
Result<Prediction> simulate(const ClusterView& cluster, const program::Program& program,
                            const comm::Parameters& communication, const SimulateOptions& options);

}  // namespace foreshard::sim
