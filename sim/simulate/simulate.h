/// \file
/// Program + cluster -> Prediction.
///
/// The Program is folded first (fold.h): ranks that must behave alike become one class. The
/// expander lists each class's task instances; the compute model gives kernels their times; the
/// collective algorithms give communications their loads on links; an event engine runs them; the
/// prediction is read off the engine's timeline.
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

/// Evidence for the rates of links, besides the numbers of the communication library.
struct LinkEvidence {
  yaml::Evidence inside = yaml::Evidence::kMeasured;   ///< Links inside a node.
  yaml::Evidence network = yaml::Evidence::kMeasured;  ///< Links between nodes.
};

struct SimulateOptions {
  EngineKind engine = EngineKind::kFluid;
  Granularity granularity = Granularity::kFlat;
  bool fold = true;  ///< Simulate one device per class; exact either way.
  /// Run undisturbed chains of kernels as one activity (internal/task_graph.cc): exact except for
  /// the times of tasks inside a slowed chain.
  bool coalesce = true;
  /// Keep every task's times, the memory over time and the loads of links, for traces and bundles.
  bool timeline = false;
  bool critical_path = true;
  /// Compute breakdown and kernel times for each class of devices; otherwise only the breakdown of
  /// the class that ends last.
  bool every_class = true;
  /// Maximum memory of the simulated tasks, as estimated before they are expanded (memory_limit.h).
  /// Infinite: no limit.
  Bytes max_memory = Bytes::from_base(std::numeric_limits<double>::infinity());
  /// Part of each device's memory that is not for tensors (reserve_of()).
  Bytes reserve{};
  /// By the name of the device type; links of unnamed types count as measured.
  std::map<std::string, LinkEvidence> links = {};
  /// The disturbances; may be null. The caller applies its slow devices (disturbance::slowed).
  const disturbance::Plan* disturbances = nullptr;
};

/// \pre The Program is verified (strategies/program/ir/verify.h); of its faults, only deadlocks are
///     found here too.
/// \return kInvalidInput for a Program that deadlocks or does not fit the cluster's device count,
///     or if more than `max_memory` is needed; kInfeasible if the strategy needs a route that does
///     not exist, or a failure leaves none to reroute over; kUnsupported for what the engine or
///     granularity cannot express. A step that a failure interrupts is a Prediction with an
///     `interruption`.
Result<Prediction> simulate(const ClusterView& cluster, const program::Program& program,
                            const comm::Parameters& communication, const SimulateOptions& options);

}  // namespace foreshard::sim
