// Turns folded task instances into the engine's workload (build.h), for disturb.cc and
// sensitivity.cc. Kernels take their time on a device's compute resource; communication takes
// latency, then bytes over links.
#include "sim/simulate/build.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/caller.h"

#include "sim/simulate/internal/messages.h"
#include "sim/simulate/internal/stages.h"

namespace foreshard::sim {
namespace {

using engine::Activity;
using engine::ActivityId;
using internal::BuildInputs;
using internal::Issued;
using internal::TaskGraph;
using internal::TaskPlan;
using internal::TaskPlans;
using program::Communication;

// The last stage (internal/stages.h): writes the nodes as activities.
class Writer {
 public:
  Writer(const BuildInputs& inputs, const Issued& issued, const Resources& resources,
         const TaskPlans& plans, const TaskGraph& graph, engine::Workload& workload)
      : in_(inputs),
        issued_(issued),
        resources_(resources),
        plans_(plans),
        graph_(graph),
        workload_(workload),
        first_(graph.nodes.size()),
        last_(graph.nodes.size()) {
    if (inputs.granularity == Granularity::kStepwise) messages_.emplace(workload, resources.links);
    // Most instances follow one on their own stream and, now and then, one on another stream.
    workload.reserve(graph.nodes.size(), 2 * graph.members.size());
    carried_begin_.reserve(graph.nodes.size() + 1);
    carried_.reserve(graph.members.size());
  }

  Status write(std::size_t n) {
    const ClassInstance& node = graph_.nodes[n].first;
    const auto c = static_cast<std::size_t>(node.device_class);
    const program::Role& role =
        in_.program.roles[static_cast<std::size_t>(issued_.role_of_class[c])];
    const program::Instance& instance = instance_of(node);
    const TaskPlan& what = plans_.of(c, role, instance);
    Activity activity{.shape = what.shape,
                      .latency = what.latency,
                      .work = what.is_kernel ? graph_.nodes[n].work : what.work,
                      .release_from = {},
                      .release_lag = {}};
    release(n, activity);
    if (what.communicator >= 0 && in_.granularity == Granularity::kStepwise) {
      const auto& task = program::task_of(in_.program, role, instance);
      return write_messages(n, activity, what.communicator, std::get<Communication>(task.body));
    }
    const ActivityId id = workload_.add_activity(activity);
    join(n, activity.release_from, id, id);
    return {};
  }

  void finish(BuiltWorkload& built) {
    pad_carried();
    built.carried_begin = std::move(carried_begin_);
    built.carried = std::move(carried_);
    built.begin = std::move(first_);
    built.end = std::move(last_);
  }

 private:
  const program::Instance& instance_of(const ClassInstance& one) const {
    return issued_.expansions[static_cast<std::size_t>(one.device_class)]
        ->instances[static_cast<std::size_t>(one.instance)];
  }
  std::span<const ClassInstance> members(std::size_t n) const {
    return std::span(graph_.members)
        .subspan(graph_.members_begin[n], graph_.members_begin[n + 1] - graph_.members_begin[n]);
  }
  ActivityId end_of(std::int32_t device_class, std::int32_t instance) const {
    const auto n = graph_.node_of_instance(static_cast<std::size_t>(device_class), instance);
    return last_[static_cast<std::size_t>(n)];
  }

  // Sets the latest release of all members: one release is the activity's own, the others need an
  // activity each.
  void release(std::size_t n, Activity& activity) {
    extra_predecessors_.clear();
    bool first = true;
    for (const ClassInstance& one : members(n)) {
      const program::Instance& instance = instance_of(one);
      const ActivityId from =
          instance.host_sync < 0 ? ActivityId{} : end_of(one.device_class, instance.host_sync);
      if (first) {
        activity.release_from = from;
        activity.release_lag = instance.host_offset;
        first = false;
      } else if (from == activity.release_from) {
        activity.release_lag = std::max(activity.release_lag, instance.host_offset);
      } else {
        extra_predecessors_.push_back(
            workload_.add_activity({.shape = resources_.host_shape,
                                    .latency = {},
                                    .work = 0,
                                    .release_from = from,
                                    .release_lag = instance.host_offset}));
        pad_carried();
      }
    }
  }

  // For an activity that carries no instance.
  void pad_carried() { carried_begin_.push_back(static_cast<std::uint32_t>(carried_.size())); }

  // The activity waits for its `release_from` anyway, without an edge.
  void join(std::size_t n, ActivityId release_from, ActivityId begins, ActivityId ends) {
    first_[n] = begins;
    last_[n] = ends;
    for (const ActivityId before : extra_predecessors_) workload_.add_edge(before, begins);
    pad_carried();
    for (const ClassInstance& one : members(n)) {
      carried_.push_back(one);
      const auto c = static_cast<std::size_t>(one.device_class);
      for (const std::int32_t before :
           issued_.expansions[c]->predecessors(static_cast<std::size_t>(one.instance))) {
        const ActivityId from = end_of(one.device_class, before);
        if (from != release_from) workload_.add_edge(from, begins);
      }
    }
  }

  // A stepwise collective consists of a start, which waits for all members and takes the delay
  // before bytes flow, the flows of its messages, and an end.
  Status write_messages(std::size_t n, Activity start, std::int32_t group_class,
                        const Communication& what) {
    const auto communicator = static_cast<std::size_t>(
        in_.folding.communicator_representative[static_cast<std::size_t>(group_class)]);
    start.shape = resources_.host_shape;
    start.latency = in_.forms.idle(communicator, what.bytes).delay;
    const ActivityId begins = workload_.add_activity(start);
    ActivityId ends = begins;
    const Communicator& group = in_.communicators.all[communicator];
    if (group.ranks.size() > 1 || program::is_with_host(group.kind)) {
      FORESHARD_ASSIGN(const auto written,
                       messages_->write({communicator, what.bytes.in_base()}, begins, [&] {
                         return internal::operation_of(in_.cluster, in_.program, in_.communicators,
                                                       in_.forms, communicator, what.bytes);
                       }));
      ends = written;
    }
    join(n, start.release_from, begins, ends);
    for (std::size_t id = begins.index() + 1; id < workload_.activity_count(); ++id) pad_carried();
    return {};
  }

  const BuildInputs& in_;
  const Issued& issued_;
  const Resources& resources_;
  const TaskPlans& plans_;
  const TaskGraph& graph_;
  engine::Workload& workload_;
  std::optional<internal::MessageWriter> messages_;  // stepwise
  std::vector<ActivityId> first_;                    // per node
  std::vector<ActivityId> last_;
  std::vector<ActivityId> extra_predecessors_;  // predecessors of the node that is being written
  std::vector<std::uint32_t> carried_begin_;    // as in BuiltWorkload
  std::vector<ClassInstance> carried_;
};

}  // namespace

Result<BuiltWorkload> build_workload(const ClusterView& cluster, const program::Program& program,
                                     const Communicators& communicators,
                                     const CommunicatorForms& forms, const Folding& folding,
                                     Granularity granularity, bool coalesce,
                                     const disturbance::Plan* plan) {
  const BuildInputs inputs{.cluster = cluster,
                           .program = program,
                           .communicators = communicators,
                           .forms = forms,
                           .folding = folding,
                           .granularity = granularity,
                           .coalesce = coalesce,
                           .plan = plan};
  BuiltWorkload built;
  Issued issued = internal::issued_by(inputs);
  built.resources = internal::add_resources(inputs, built.workload);
  const TaskPlans plans = internal::plan_tasks(inputs, issued, built.resources);
  TaskGraph graph = internal::join_tasks(inputs, issued, plans);
  FORESHARD_ASSIGN(const auto order, internal::order_of(issued, graph));
  Writer writer(inputs, issued, built.resources, plans, graph, built.workload);
  EndPoll poll;
  for (const std::int32_t n : order) {
    poll();
    FORESHARD_TRY(writer.write(static_cast<std::size_t>(n)));
  }
  writer.finish(built);
  built.expansions = std::move(issued.expansions);
  built.role_of_class = std::move(issued.role_of_class);
  built.heads = std::move(graph.heads);
  built.node = std::move(graph.node_of);
  built.part = std::move(graph.part);
  return built;
}

// Start and end of a task instance. A task in a chain of kernels (internal/task_graph.cc) has a
// part of the chain's activity, from which its times follow in proportion.

Seconds start_of(const BuiltWorkload& built, const engine::Timeline& times,
                 std::size_t device_class, std::size_t instance) {
  const Seconds start = times.start[first_activity(built, device_class, instance).index()];
  const double part = built.part[device_class][instance].begin;
  if (part == 0) return start;
  const Seconds finish = times.finish[last_activity(built, device_class, instance).index()];
  return part == 1 ? finish : start + part * (finish - start);
}

Seconds end_of(const BuiltWorkload& built, const engine::Timeline& times, std::size_t device_class,
               std::size_t instance) {
  const Seconds finish = times.finish[last_activity(built, device_class, instance).index()];
  const double part = built.part[device_class][instance].end;
  if (part == 1) return finish;
  const Seconds start = times.start[first_activity(built, device_class, instance).index()];
  return start + part * (finish - start);
}

}  // namespace foreshard::sim
