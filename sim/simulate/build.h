/// \file
/// Builds the engine's workload from folded task instances.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/compute/operator_time.h"
#include "sim/disturbance/plan.h"
#include "sim/engine/workload.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/simulate.h"
#include "strategies/program/ir/expand.h"

namespace foreshard::sim {

/// The fractions of its activity's progress at which an instance begins and ends.
struct ProgressRange {
  double begin = 0;
  double end = 1;
};

/// An instance in a class's expansion.
struct ClassInstance {
  std::int32_t device_class = 0;
  std::int32_t instance = 0;
};

/// The resources of a workload, and the shapes of the activities that use them.
struct Resources {
  std::vector<engine::ResourceId> sm;          ///< class -> its SMs.
  std::vector<engine::ShapeId> compute_shape;  ///< class -> shape of its kernels.
  engine::ShapeId host_shape{};                ///< Shape of activities that use no resource.
  std::vector<engine::ResourceId> links;       ///< class of links -> its resource.
  /// (communicator class, bytes) -> shape of a flat collective, and whether anything limits its
  /// rate.
  std::map<std::pair<std::int32_t, double>, std::pair<engine::ShapeId, bool>> communication_shape;
};

struct BuiltWorkload {
  engine::Workload workload;
  /// class -> its expansion; classes with the same role and launch time share one.
  std::vector<std::shared_ptr<const program::Expansion>> expansions;
  std::vector<std::int32_t> role_of_class;
  /// class -> its instances that begin an activity, ascending: all but the later ones of a chain
  /// (internal/task_graph.cc).
  std::vector<std::vector<std::int32_t>> heads;
  /// class -> instance -> its node, and the part of the node's time that it takes. A node is what
  /// instances have in common: a chain, or a communication.
  std::vector<std::vector<std::int32_t>> node;
  std::vector<std::vector<ProgressRange>> part;
  /// node -> the activity at whose start it starts, and the activity at whose finish it finishes
  /// (two different ones for a stepwise collective).
  std::vector<engine::ActivityId> begin;
  std::vector<engine::ActivityId> end;
  /// activity -> the instances that begin with it, in CSR form: one, or one per member class of a
  /// communication. Messages of a stepwise collective carry none.
  std::vector<std::uint32_t> carried_begin;
  std::vector<ClassInstance> carried;
  Resources resources;  ///< Resources and shapes that disturbances change.
};

/// The role of the ranks of a class.
inline const program::Role& role_of(const program::Program& program, const BuiltWorkload& built,
                                    std::size_t device_class) {
  return program.roles[static_cast<std::size_t>(built.role_of_class[device_class])];
}

/// Whether the instance begins an activity.
inline bool is_head(const BuiltWorkload& built, std::size_t device_class, std::size_t instance) {
  return std::ranges::binary_search(built.heads[device_class], static_cast<std::int32_t>(instance));
}

/// The first and the last activity of an instance's node.
inline engine::ActivityId first_activity(const BuiltWorkload& built, std::size_t device_class,
                                         std::size_t instance) {
  return built.begin[static_cast<std::size_t>(built.node[device_class][instance])];
}
inline engine::ActivityId last_activity(const BuiltWorkload& built, std::size_t device_class,
                                        std::size_t instance) {
  return built.end[static_cast<std::size_t>(built.node[device_class][instance])];
}

/// When an instance starts and ends, on a timeline of the workload.
Seconds start_of(const BuiltWorkload& built, const engine::Timeline& times,
                 std::size_t device_class, std::size_t instance);
Seconds end_of(const BuiltWorkload& built, const engine::Timeline& times, std::size_t device_class,
               std::size_t instance);

/// \param plan  if not null, each kernel's time gets its factor of the plan's jitter.
/// \return kInfeasible if a route is missing (stepwise), kUnsupported for a stepwise form that does
///     not exist.
Result<BuiltWorkload> build_workload(const ClusterView& cluster, const program::Program& program,
                                     const Communicators& communicators,
                                     const CommunicatorForms& forms, const Folding& folding,
                                     Granularity granularity, bool coalesce = true,
                                     const disturbance::Plan* plan = nullptr);

}  // namespace foreshard::sim
