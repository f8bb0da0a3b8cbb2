#include "sim/simulate/build.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/check.h"

#include "sim/simulate/internal/messages.h"
#include "sim/simulate/internal/shapes.h"
#include "strategies/program/ir/group.h"

namespace foreshard::sim {
namespace {

using engine::Activity;
using engine::ActivityId;
using engine::ResourceId;
using engine::Shape;
using engine::ShapeId;
using program::Communication;
using program::Program;
using program::Task;

// A node of the task graph before it becomes an activity: an instance of one class, or one
// communication that instances of several classes join in.
struct Node {
  std::int32_t device_class = 0;
  std::int32_t instance = 0;  // of that class; of a communication: of its first member
  double work = 0;            // of a chain of kernels, all of it
};

// What a class does when it runs one task of one block: looked up once, used for every instance.
struct TaskPlan {
  ShapeId shape{};
  Seconds latency{};
  double work = 0;
  std::int32_t communicator = -1;  // a communicator class, if it is a communication
  std::int32_t operations = -1;    // the list of operations that it continues
  std::int32_t count = -1;         // the counter of its place in that list
  bool is_kernel = false;
  bool is_optimizer = false;
};

class Builder {
 public:
  Builder(const ClusterView& cluster, const Program& program, const Communicators& communicators,
          const CommunicatorForms& forms, const Folding& folding, Granularity granularity,
          bool coalesce, const disturbance::Plan* plan)
      : cluster_(cluster),
        program_(program),
        communicators_(communicators),
        forms_(forms),
        folding_(folding),
        granularity_(granularity),
        coalesce_(coalesce),
        plan_(plan) {}

  Result<BuiltWorkload> run() {
    expand();
    add_resources();
    make_kernel_times();
    make_plans();
    make_nodes();
    if (auto fault = add_in_order()) return *std::move(fault);
    built_.sm = std::move(sm_);
    built_.compute_shape = std::move(compute_shape_);
    built_.links = std::move(links_);
    built_.communication_shape = std::move(communication_shape_);
    return std::move(built_);
  }

 private:
  std::size_t classes() const { return folding_.rank_representative.size(); }
  const program::Role& role(std::size_t c) const {
    return program_.roles[static_cast<std::size_t>(built_.role_of_class[c])];
  }
  const Task& task(std::size_t c, const program::Instance& instance) const {
    return program::task_of(program_, role(c), instance);
  }

  void expand() {
    const program::Expander expander(program_);
    std::vector<std::int32_t> role_of_rank(static_cast<std::size_t>(program_.ranks()));
    for (std::size_t r = 0; r < program_.roles.size(); ++r) {
      for (const std::int32_t rank : program_.roles[r].ranks)
        role_of_rank[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(r);
    }
    for (const std::int32_t rank : folding_.rank_representative) {
      const std::int32_t r = role_of_rank[static_cast<std::size_t>(rank)];
      built_.role_of_class.push_back(r);
      built_.expansions.push_back(
          expander.expand(static_cast<std::size_t>(r), program_.launch_time_of(rank)));
    }
  }

  const TaskPlan& plan(std::size_t c, const program::Instance& instance) const {
    const auto b = role(c).calls[static_cast<std::size_t>(instance.call)].block.index();
    return plans_[c][block_begin_[b] + static_cast<std::size_t>(instance.task)];
  }

  void make_plans() {
    block_begin_.push_back(0);
    for (const program::Block& block : program_.blocks)
      block_begin_.push_back(block_begin_.back() + block.tasks.size());
    std::map<std::string, std::int32_t> tags;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> lists;
    for (std::size_t c = 0; c < classes(); ++c) {
      auto& plans = plans_.emplace_back(block_begin_.back());
      std::vector<bool> used(program_.blocks.size());
      for (const program::Call& call : role(c).calls) used[call.block.index()] = true;
      // A class may meet several communicators of one class, each with its own count.
      std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::int32_t> counters;
      for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
        if (!used[b]) continue;
        for (std::size_t t = 0; t < program_.blocks[b].tasks.size(); ++t) {
          const Task& what = program_.blocks[b].tasks[t];
          TaskPlan& plan = plans[block_begin_[b] + t];
          if (std::holds_alternative<Kernel>(what.body)) {
            plan.is_kernel = true;
            plan.is_optimizer = what.optimizer;
            plan.shape = compute_shape_[c];
            plan.work = kernel_time_[type_of_class_[c]][b][t].in_base() / speed_of_class_[c];
          } else if (const auto* communication = std::get_if<Communication>(&what.body)) {
            const auto rank = static_cast<std::size_t>(folding_.rank_representative[c]);
            const auto endpoint = static_cast<std::size_t>(communicators_.endpoint_of_task[b][t]);
            const std::int32_t communicator = communicators_.of_rank[endpoint][rank];
            const std::int32_t tag =
                tags.try_emplace(program::tag_of(what), static_cast<std::int32_t>(tags.size()))
                    .first->second;
            plan_communication(plan, *communication, communicator);
            plan.operations =
                lists.try_emplace({plan.communicator, tag}, static_cast<std::int32_t>(lists.size()))
                    .first->second;
            plan.count = counters
                             .try_emplace({communicator, tag, sends(communicator, rank)},
                                          static_cast<std::int32_t>(counters.size()))
                             .first->second;
          } else {
            plan.shape = host_shape_;
            if (const auto* work = std::get_if<program::HostWork>(&what.body))
              plan.latency = work->time;
          }
        }
      }
      counters_.push_back(counters.size());
    }
    operations_.resize(lists.size());
  }

  void plan_communication(TaskPlan& plan, const Communication& what,
                          std::int32_t communicator) const {
    plan.communicator = folding_.class_of_communicator[static_cast<std::size_t>(communicator)];
    if (granularity_ == Granularity::kStepwise) return;
    const auto& [shape, limited] =
        communication_shape_.at({plan.communicator, what.bytes.in_base()});
    const auto representative = static_cast<std::size_t>(
        folding_.communicator_representative[static_cast<std::size_t>(plan.communicator)]);
    plan.shape = shape;
    plan.latency = forms_.idle(representative, what.bytes).delay;
    plan.work = limited ? what.bytes.in_base() : 0;
  }

  // The n-th communication with one tag of a communicator class is one node, for all classes that
  // its representative's members belong to (program.h, rule 5).
  void make_nodes() {
    node_of_.resize(classes());
    built_.part.resize(classes());
    built_.head.resize(classes());
    for (std::size_t c = 0; c < classes(); ++c) {
      const auto& expansion = built_.expansions[c];
      std::vector<ChainItem> items;
      items.reserve(expansion.instances.size());
      for (const program::Instance& instance : expansion.instances) {
        const TaskPlan& what = plan(c, instance);
        const double factor =
            what.is_kernel ? kernel_factor(plan_, folding_.rank_representative[c], items.size())
                           : 1;
        items.push_back({what.work * factor, what.is_kernel, what.is_optimizer});
      }
      Chains chains = coalesce_ ? find_chains(expansion, items) : no_chains(items);
      node_of_[c].resize(items.size());
      std::vector<std::size_t> seen(counters_[c], 0);
      for (std::size_t i = 0; i < items.size(); ++i) {
        const auto head = static_cast<std::size_t>(chains.head[i]);
        if (head != i) {
          node_of_[c][i] = node_of_[c][head];
          continue;
        }
        const TaskPlan& what = plan(c, expansion.instances[i]);
        const Node node{static_cast<std::int32_t>(c), static_cast<std::int32_t>(i), chains.work[i]};
        if (what.operations < 0) {
          node_of_[c][i] = static_cast<std::int32_t>(nodes_.size());
          nodes_.push_back(node);
          continue;
        }
        auto& list = operations_[static_cast<std::size_t>(what.operations)];
        const std::size_t n = seen[static_cast<std::size_t>(what.count)]++;
        if (n == list.size()) {
          list.push_back(static_cast<std::int32_t>(nodes_.size()));
          nodes_.push_back(node);
        }
        FORESHARD_CHECK(n < list.size());
        node_of_[c][i] = list[n];
      }
      built_.part[c] = std::move(chains.part);
      built_.head[c] = std::move(chains.head);
    }
  }

  bool sends(std::int32_t communicator, std::size_t rank) const {
    const Communicator& of = communicators_.all[static_cast<std::size_t>(communicator)];
    return of.kind == program::CollectiveKind::kSend &&
           of.ranks.front() == static_cast<std::int32_t>(rank);
  }

  void add_resources() {
    for (std::size_t c = 0; c < classes(); ++c) {
      sm_.push_back(built_.workload.add_resource(
          1.0, "rank " + std::to_string(folding_.rank_representative[c])));
      compute_shape_.push_back(built_.workload.add_shape(
          Shape{.usages = {{.resource = sm_.back()}}, .occupations = {}}));
    }
    host_shape_ = built_.workload.add_shape(Shape{});
    for (const LinkId link : folding_.link_representative) {
      const Link& what = cluster_.links()[link.index()];
      links_.push_back(built_.workload.add_resource(
          what.bandwidth.in_base(), cluster_.vertices()[what.from.index()].name + " -> " +
                                        cluster_.vertices()[what.to.index()].name));
    }
    if (granularity_ == Granularity::kFlat)
      add_communication_shapes();
    else
      messages_.emplace(built_.workload, links_);
  }

  void add_communication_shapes() {
    for (auto& [key, shape] :
         internal::communication_shapes(cluster_, communicators_, forms_, folding_, links_, sm_)) {
      const bool unlimited = shape.usages.empty() && !std::isfinite(shape.rate_cap);
      communication_shape_[key] = {built_.workload.add_shape(std::move(shape)), !unlimited};
    }
  }

  void make_kernel_times() {
    // Per device type: times of every task of every block.
    kernel_time_.resize(cluster_.device_types().size());
    for (std::size_t c = 0; c < classes(); ++c) {
      const DeviceId device = device_of(program_, folding_.rank_representative[c]);
      const auto type = cluster_.devices()[device.index()].type.index();
      type_of_class_.push_back(type);
      speed_of_class_.push_back(cluster_.devices()[device.index()].speed);
      auto& times = kernel_time_[type];
      if (!times.empty()) continue;
      CachedOperatorTime cache(cluster_.device_types()[type]);
      for (const program::Block& block : program_.blocks) {
        auto& of_block = times.emplace_back();
        for (const Task& t : block.tasks) {
          const auto* kernel = std::get_if<Kernel>(&t.body);
          of_block.push_back(kernel == nullptr ? 0_s : cache(*kernel));
        }
      }
    }
  }

  // Kahn's order: an activity is added when all that it waits for have been.
  std::optional<Error> add_in_order() {
    std::vector<std::uint32_t> begin(nodes_.size() + 1, 0);
    const auto each_edge = [&](auto&& visit) {
      for (std::size_t c = 0; c < classes(); ++c) {
        const auto& expansion = built_.expansions[c];
        const auto& node_of = node_of_[c];
        for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
          if (!heads(c, i)) continue;
          for (const std::int32_t before : expansion.predecessors(i))
            visit(node_of[static_cast<std::size_t>(before)], node_of[i]);
          const std::int32_t sync = expansion.instances[i].host_sync;
          if (sync >= 0) visit(node_of[static_cast<std::size_t>(sync)], node_of[i]);
        }
      }
    };
    std::vector<std::uint32_t> waits_for(nodes_.size(), 0);
    each_edge([&](std::int32_t from, std::int32_t to) {
      ++begin[static_cast<std::size_t>(from) + 1];
      ++waits_for[static_cast<std::size_t>(to)];
    });
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::int32_t> successors(begin.back());
    auto cursor = begin;
    each_edge([&](std::int32_t from, std::int32_t to) {
      successors[cursor[static_cast<std::size_t>(from)]++] = to;
    });
    carry_instances();
    built_.workload.reserve(nodes_.size(), successors.size());
    built_.carried.reserve(carried_.size());
    built_.carried_begin.reserve(nodes_.size() + 1);

    std::vector<std::int32_t> ready;
    ready.reserve(nodes_.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (waits_for[n] == 0) ready.push_back(static_cast<std::int32_t>(n));
    }
    first_.resize(nodes_.size());
    last_.resize(nodes_.size());
    for (std::size_t head = 0; head < ready.size(); ++head) {
      const auto n = static_cast<std::size_t>(ready[head]);
      if (auto fault = add(n)) return fault;
      for (std::uint32_t s = begin[n]; s < begin[n + 1]; ++s) {
        if (--waits_for[static_cast<std::size_t>(successors[s])] == 0)
          ready.push_back(successors[s]);
      }
    }
    if (ready.size() != nodes_.size()) {
      return Error{Error::Code::kInvalidInput,
                   "the program deadlocks: some of its communications wait for each other"};
    }
    built_.begin.resize(classes());
    built_.end.resize(classes());
    for (std::size_t c = 0; c < classes(); ++c) {
      for (const std::int32_t n : node_of_[c]) {
        built_.begin[c].push_back(first_[static_cast<std::size_t>(n)]);
        built_.end[c].push_back(last_[static_cast<std::size_t>(n)]);
      }
    }
    return std::nullopt;
  }

  // Whether the instance begins its activity: all do but the later ones of a chain.
  bool heads(std::size_t c, std::size_t i) const { return is_head(built_, c, i); }

  void carry_instances() {
    carried_begin_.assign(nodes_.size() + 1, 0);
    const auto each_head = [&](auto&& visit) {
      for (std::size_t c = 0; c < classes(); ++c) {
        for (std::size_t i = 0; i < node_of_[c].size(); ++i) {
          if (heads(c, i)) visit(static_cast<std::size_t>(node_of_[c][i]), c, i);
        }
      }
    };
    each_head([&](std::size_t n, std::size_t, std::size_t) { ++carried_begin_[n + 1]; });
    for (std::size_t n = 1; n < carried_begin_.size(); ++n)
      carried_begin_[n] += carried_begin_[n - 1];
    carried_.resize(carried_begin_.back());
    auto cursor = carried_begin_;
    each_head([&](std::size_t n, std::size_t c, std::size_t i) {
      carried_[cursor[n]++] = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(i)};
    });
  }

  std::optional<Error> add(std::size_t n) {
    const Node& node = nodes_[n];
    const auto c = static_cast<std::size_t>(node.device_class);
    const program::Instance& instance =
        built_.expansions[c].instances[static_cast<std::size_t>(node.instance)];
    const TaskPlan& what = plan(c, instance);
    Activity activity{.shape = what.shape,
                      .latency = what.latency,
                      .work = what.is_kernel ? node.work : what.work,
                      .release_from = {},
                      .release_lag = {}};
    release(n, activity);
    if (what.communicator >= 0 && granularity_ == Granularity::kStepwise) {
      return add_messages(n, activity, what.communicator,
                          std::get<Communication>(task(c, instance).body));
    }
    const ActivityId id = built_.workload.add_activity(activity);
    finish_node(n, id, id);
    return std::nullopt;
  }

  // The latest release of all members: one is the activity's own, others need an activity each.
  void release(std::size_t n, Activity& activity) {
    extra_predecessors_.clear();
    bool first = true;
    for (std::uint32_t i = carried_begin_[n]; i < carried_begin_[n + 1]; ++i) {
      const auto c = static_cast<std::size_t>(carried_[i].device_class);
      const program::Instance& instance =
          built_.expansions[c].instances[static_cast<std::size_t>(carried_[i].instance)];
      const ActivityId from = instance.host_sync < 0
                                  ? ActivityId{}
                                  : last_[static_cast<std::size_t>(
                                        node_of_[c][static_cast<std::size_t>(instance.host_sync)])];
      if (first) {
        activity.release_from = from;
        activity.release_lag = instance.host_offset;
        first = false;
      } else if (from == activity.release_from) {
        activity.release_lag = std::max(activity.release_lag, instance.host_offset);
      } else {
        extra_predecessors_.push_back(
            built_.workload.add_activity({.shape = host_shape_,
                                          .latency = {},
                                          .work = 0,
                                          .release_from = from,
                                          .release_lag = instance.host_offset}));
        pad_carried();
      }
    }
  }

  // An activity that carries no instance.
  void pad_carried() {
    built_.carried_begin.push_back(static_cast<std::uint32_t>(built_.carried.size()));
  }

  void finish_node(std::size_t n, ActivityId begins, ActivityId ends) {
    first_[n] = begins;
    last_[n] = ends;
    for (const ActivityId before : extra_predecessors_) built_.workload.add_edge(before, begins);
    built_.carried_begin.push_back(static_cast<std::uint32_t>(built_.carried.size()));
    for (std::uint32_t i = carried_begin_[n]; i < carried_begin_[n + 1]; ++i) {
      const ClassInstance& one = carried_[i];
      built_.carried.push_back(one);
      const auto c = static_cast<std::size_t>(one.device_class);
      const auto index = static_cast<std::size_t>(one.instance);
      for (const std::int32_t before : built_.expansions[c].predecessors(index)) {
        built_.workload.add_edge(
            last_[static_cast<std::size_t>(node_of_[c][static_cast<std::size_t>(before)])], begins);
      }
    }
  }

  std::optional<Error> add_messages(std::size_t n, Activity start, std::int32_t group_class,
                                    const Communication& what);

  const ClusterView& cluster_;
  const Program& program_;
  const Communicators& communicators_;
  const CommunicatorForms& forms_;
  const Folding& folding_;
  Granularity granularity_;
  bool coalesce_;
  const disturbance::Plan* plan_;
  BuiltWorkload built_;

  std::vector<std::size_t> block_begin_;               // of a block's tasks in a class's plans
  std::vector<std::vector<TaskPlan>> plans_;           // per class
  std::vector<std::size_t> counters_;                  // per class, how many its plans use
  std::vector<std::vector<std::int32_t>> operations_;  // nodes of each list, in order
  std::vector<Node> nodes_;
  std::vector<std::vector<std::int32_t>> node_of_;  // per class, per instance
  std::vector<std::uint32_t> carried_begin_;        // per node
  std::vector<ClassInstance> carried_;
  std::vector<ActivityId> first_;  // per node
  std::vector<ActivityId> last_;
  std::vector<ActivityId> extra_predecessors_;
  std::vector<ResourceId> sm_;  // per class
  std::vector<ShapeId> compute_shape_;
  ShapeId host_shape_;
  std::vector<ResourceId> links_;  // per link class
  // (communicator class, bytes) -> shape, and whether anything limits its rate.
  std::map<std::pair<std::int32_t, double>, std::pair<ShapeId, bool>> communication_shape_;
  std::optional<internal::MessageWriter> messages_;  // stepwise
  std::vector<std::size_t> type_of_class_;
  std::vector<double> speed_of_class_;
  std::vector<std::vector<std::vector<Seconds>>> kernel_time_;  // device type, block, task
};

// A stepwise collective is a start that waits for all members and for what passes before bytes
// flow, the flows of its messages, and an end.
std::optional<Error> Builder::add_messages(std::size_t n, Activity start, std::int32_t group_class,
                                           const Communication& what) {
  const auto communicator = static_cast<std::size_t>(
      folding_.communicator_representative[static_cast<std::size_t>(group_class)]);
  start.shape = host_shape_;
  start.latency = forms_.idle(communicator, what.bytes).delay;
  const ActivityId begins = built_.workload.add_activity(start);
  ActivityId ends = begins;
  if (communicators_.all[communicator].ranks.size() > 1) {
    const auto written = messages_->write({communicator, what.bytes.in_base()}, begins, [&] {
      return internal::operation_of(cluster_, program_, communicators_, forms_, communicator,
                                    what.bytes);
    });
    if (!written) return written.error();
    ends = *written;
  }
  finish_node(n, begins, ends);
  for (std::size_t id = begins.index() + 1; id < built_.workload.activity_count(); ++id)
    pad_carried();
  return std::nullopt;
}

}  // namespace

Result<BuiltWorkload> build_workload(const ClusterView& cluster, const Program& program,
                                     const Communicators& communicators,
                                     const CommunicatorForms& forms, const Folding& folding,
                                     Granularity granularity, bool coalesce,
                                     const disturbance::Plan* plan) {
  auto built =
      Builder(cluster, program, communicators, forms, folding, granularity, coalesce, plan).run();
  if (built) {
    BuiltWorkload result = *std::move(built);
    result.carried_begin.push_back(static_cast<std::uint32_t>(result.carried.size()));
    return result;
  }
  return built;
}

}  // namespace foreshard::sim
