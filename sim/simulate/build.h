/// \file
/// From folded task instances to the engine's workload.
#pragma once

#include <vector>

#include "base/result.h"

#include "sim/compute/operator_time.h"
#include "sim/engine/workload.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/simulate.h"
#include "strategies/program/ir/expand.h"

namespace foreshard::sim {

/// An instance of a class's expansion.
struct ClassInstance {
  std::int32_t device_class = 0;
  std::int32_t instance = 0;
};

struct Part {
  double begin = 0;
  double end = 1;
};

struct BuiltWorkload {
  engine::Workload workload;
  std::vector<program::Expansion> expansions;  ///< Per class.
  std::vector<std::int32_t> role_of_class;
  /// Per class, per instance: the activity whose start is its start, and the one whose finish is
  /// its finish (different for a stepwise collective).
  std::vector<std::vector<engine::ActivityId>> begin;
  std::vector<std::vector<engine::ActivityId>> end;
  /// Per class, per instance: the part of its activity's progress at which it begins and ends.
  /// Kernels that follow one another undisturbed are one activity: (0, 0.4), (0.4, 1). Times
  /// within it are exact unless something else slowed a part of it.
  std::vector<std::vector<Part>> part;
  /// Per activity, the instances that began with it: one, or one per member class of a
  /// communication. CSR. Messages of a stepwise collective carry none.
  std::vector<std::uint32_t> carried_begin;
  std::vector<ClassInstance> carried;
};

/// When an instance starts and ends, on a time line of the workload.
Seconds start_of(const BuiltWorkload& built, const engine::Timeline& times,
                 std::size_t device_class, std::size_t instance);
Seconds end_of(const BuiltWorkload& built, const engine::Timeline& times, std::size_t device_class,
               std::size_t instance);

/// \return kInfeasible where a route is missing (stepwise), kUnsupported for a stepwise form that
///     does not exist.
Result<BuiltWorkload> build_workload(const ClusterView& cluster, const program::Program& program,
                                     const Communicators& communicators,
                                     const CommunicatorForms& forms, const Folding& folding,
                                     Granularity granularity, bool coalesce = true);

}  // namespace foreshard::sim
