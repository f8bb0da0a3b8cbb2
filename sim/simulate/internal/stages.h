/// \file
/// The stages of build_workload (build.h). Each is a function of what the stages before it made:
///
///     issued     what the host of each class of ranks issues, in its order
///     resources  the SMs and links that activities take
///     plans      what a class does for a task of a block, looked up once for all instances
///     graph      nodes: instances of one class, and communications that several classes join in
///     order      the nodes, each behind all that it waits for
///
/// build.cc writes the nodes as activities, in that order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

#include "sim/simulate/build.h"

namespace foreshard::sim::internal {

struct BuildInputs {
  const ClusterView& cluster;
  const program::Program& program;
  const Communicators& communicators;
  const CommunicatorForms& forms;
  const Folding& folding;
  Granularity granularity = Granularity::kFlat;
  bool coalesce = true;                     ///< Kernels in a row are one activity (chains.h).
  const disturbance::Plan* plan = nullptr;  ///< As in build_workload.

  std::size_t classes() const { return folding.rank_representative.size(); }
  /// The rank that stands for a class.
  std::int32_t rank(std::size_t c) const { return folding.rank_representative[c]; }
};

struct Issued {
  std::vector<std::int32_t> role_of_class;
  std::vector<std::shared_ptr<const program::Expansion>> expansions;  ///< As in BuiltWorkload.
};
Issued issued_by(const BuildInputs& inputs);

Resources add_resources(const BuildInputs& inputs, engine::Workload& workload);

/// What a class does when it runs one task of one block.
struct TaskPlan {
  engine::ShapeId shape{};
  Seconds latency{};
  double work = 0;
  std::int32_t communicator = -1;  ///< A communicator class, if it is a communication ...
  std::int32_t operations = -1;    ///< ... the list of operations that it continues ...
  std::int32_t count = -1;         ///< ... and the counter of its place in that list.
  bool is_kernel = false;
  bool is_optimizer = false;
};

struct TaskPlans {
  std::vector<std::size_t> block_begin;      ///< Of a block's tasks among those of a class.
  std::vector<std::vector<TaskPlan>> tasks;  ///< Per class; empty plans for blocks it never calls.
  std::vector<std::size_t> counters;         ///< Per class, how many its plans use.
  std::size_t lists = 0;                     ///< Of operations, over all classes.

  const TaskPlan& of(std::size_t c, const program::Role& role,
                     const program::Instance& instance) const {
    const auto block = role.calls[static_cast<std::size_t>(instance.call)].block.index();
    return tasks[c][block_begin[block] + static_cast<std::size_t>(instance.task)];
  }
};
TaskPlans plan_tasks(const BuildInputs& inputs, const Issued& issued, const Resources& resources);

struct TaskGraph {
  struct Node {
    ClassInstance first;  ///< Of a communication: of its first member.
    double work = 0;      ///< Of a chain of kernels, all of it.
  };
  std::vector<Node> nodes;
  std::vector<std::vector<std::int32_t>> heads;    ///< As in BuiltWorkload.
  std::vector<std::vector<std::int32_t>> node_of;  ///< Per class, per instance.
  std::vector<std::vector<Part>> part;             ///< As in BuiltWorkload.
  /// Per node, the instances that begin with it. CSR.
  std::vector<std::uint32_t> members_begin;
  std::vector<ClassInstance> members;

  std::int32_t node_of_instance(std::size_t c, std::int32_t instance) const {
    return node_of[c][static_cast<std::size_t>(instance)];
  }
};
TaskGraph join_tasks(const BuildInputs& inputs, const Issued& issued, const TaskPlans& plans);

/// Kahn's order. \return kInvalidInput if communications wait for each other.
Result<std::vector<std::int32_t>> order_of(const Issued& issued, const TaskGraph& graph);

}  // namespace foreshard::sim::internal
