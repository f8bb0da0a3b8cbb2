/// \file
/// The stages of build_workload (build.h). Each is a function of the results of the previous
/// stages:
///
///     issued     what the host of each class of ranks issues, in order
///     resources  the SMs and links that activities use
///     plans      what a class does for a task of a block, looked up once for all instances
///     graph      nodes: instances of one class, and communications that several classes join
///     order      the nodes, each after everything that it waits for
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
  bool coalesce = true;  ///< Whether consecutive kernels become one activity (task_graph.cc).
  const disturbance::Plan* plan = nullptr;  ///< See build_workload.

  std::size_t classes() const { return folding.rank_representative.size(); }
  /// The representative rank of a class.
  std::int32_t rank(std::size_t c) const { return folding.rank_representative[c]; }
};

struct Issued {
  std::vector<std::int32_t> role_of_class;
  std::vector<std::shared_ptr<const program::Expansion>> expansions;  ///< See BuiltWorkload.
};
Issued issued_by(const BuildInputs& inputs);

Resources add_resources(const BuildInputs& inputs, engine::Workload& workload);

/// The activity of a class when it runs one task of one block.
struct TaskPlan {
  engine::ShapeId shape{};
  Seconds latency{};
  double work = 0;
  std::int32_t communicator = -1;  ///< Communicator class, if the task is a communication.
  std::int32_t operations = -1;    ///< List of operations to which it belongs.
  std::int32_t count = -1;         ///< Counter of its position in that list.
  bool is_kernel = false;
  bool is_optimizer = false;
};

struct TaskPlans {
  std::vector<std::size_t> block_begin;  ///< block -> its first task among all tasks of a class.
  /// One list per class; plans are empty for blocks that the class never calls.
  std::vector<std::vector<TaskPlan>> tasks;
  std::vector<std::size_t> counters;  ///< class -> number of counters that its plans use.
  std::size_t lists = 0;              ///< Number of lists of operations, over all classes.

  const TaskPlan& of(std::size_t c, const program::Role& role,
                     const program::Instance& instance) const {
    const auto block = role.calls[static_cast<std::size_t>(instance.call)].block.index();
    return tasks[c][block_begin[block] + static_cast<std::size_t>(instance.task)];
  }
};
TaskPlans plan_tasks(const BuildInputs& inputs, const Issued& issued, const Resources& resources);

struct TaskGraph {
  struct Node {
    ClassInstance first;  ///< Instance; for a communication, its first member.
    double work = 0;      ///< Work; for a chain of kernels, the work of the whole chain.
  };
  std::vector<Node> nodes;
  std::vector<std::vector<std::int32_t>> heads;    ///< See BuiltWorkload.
  std::vector<std::vector<std::int32_t>> node_of;  ///< class -> instance -> node.
  std::vector<std::vector<ProgressRange>> part;    ///< See BuiltWorkload.
  /// node -> the instances that begin with it, in CSR form.
  std::vector<std::uint32_t> members_begin;
  std::vector<ClassInstance> members;

  std::int32_t node_of_instance(std::size_t c, std::int32_t instance) const {
    return node_of[c][static_cast<std::size_t>(instance)];
  }
};
TaskGraph join_tasks(const BuildInputs& inputs, const Issued& issued, const TaskPlans& plans);

/// Topological order (Kahn). \return kInvalidInput if communications wait for each other.
Result<std::vector<std::int32_t>> order_of(const Issued& issued, const TaskGraph& graph);

}  // namespace foreshard::sim::internal
