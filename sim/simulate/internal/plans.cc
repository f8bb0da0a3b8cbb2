// The stages that look things up: what each host issues, the resources, and the plan of each task.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/caller.h"

#include "sim/engine/workload.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/internal/stages.h"
#include "strategies/program/ir/group.h"

namespace foreshard::sim::internal {
namespace {

// Flat communications as shapes of the engine.

// (communicator class, bytes in the base unit) -> shape.
using CommunicationShapes = std::map<std::pair<std::int32_t, double>, engine::Shape>;

// Whether the communicator's shape names no links and instead has the rate of idle links.
bool has_links_for_itself(const Folding& folding, std::size_t communicator) {
  return !folding.meets_alone.empty() && folding.meets_alone[communicator];
}

// Load of a class of communicators on a link.
struct Sum {
  double weight = 0;  // largest load of one communicator
  double total = 0;   // sum over all of them
};
// (communicator class, bytes) -> link class -> load.
using Loads = std::map<std::pair<std::int32_t, double>, std::map<std::int32_t, Sum>>;

// The load of each class of communicators on one link of each class of links: adds up the loads of
// all users of the representative links.
Loads loads_of_classes(const ClusterView& cluster, const Communicators& communicators,
                       const CommunicatorForms& forms, const Folding& folding) {
  // Link -> its class, if it is that class's representative.
  std::vector<std::int32_t> class_if_first(cluster.links().size(), -1);
  for (std::size_t l = 0; l < folding.link_representative.size(); ++l)
    class_if_first[folding.link_representative[l].index()] = static_cast<std::int32_t>(l);
  Loads loads;
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    end_if_asked();
    for (const auto& [bytes, form] : forms.of(c)) {
      auto& of = loads[{folding.class_of_communicator[c], bytes}];
      if (has_links_for_itself(folding, c)) continue;
      const double fraction = form.bandwidth_fraction;
      forms.each_load(c, form, [&](LinkId link, double bytes_per_byte) {
        const std::int32_t link_class = class_if_first[link.index()];
        if (link_class < 0) return;
        Sum& sum = of[link_class];
        const double weight = bytes_per_byte / fraction;
        sum.weight = std::max(sum.weight, weight);
        sum.total += weight;
      });
    }
  }
  return loads;
}

// An activity's share of a link depends on its largest load (workload.h). If the link with the
// largest load was left out, the connections compensate for it.
double part_of_largest_load(const comm::FlatCollective& form, const engine::Shape& shape) {
  double largest = 0;
  for (const comm::LinkLoad& load : form.loads)
    largest = std::max(largest, load.bytes_per_byte / form.bandwidth_fraction);
  double kept = 0;
  for (const engine::Usage& usage : shape.usages) kept = std::max(kept, usage.weight);
  return kept > 0 ? kept / largest : 1;
}

// The shape of each class of communicators for each size that it communicates.
// \param links  class of links -> its resource.
// \param sm  class of ranks -> the SMs of its device.
// Cost: O(loads of all communicators).
CommunicationShapes communication_shapes(const ClusterView& cluster,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         std::span<const engine::ResourceId> links,
                                         std::span<const engine::ResourceId> sm) {
  CommunicationShapes shapes;
  for (const auto& [key, loads] : loads_of_classes(cluster, communicators, forms, folding)) {
    const auto representative = static_cast<std::size_t>(
        folding.communicator_representative[static_cast<std::size_t>(key.first)]);
    const comm::FlatCollective& form = forms.of(representative).at(key.second);
    engine::Shape shape{.usages = {}, .occupations = {}};
    shape.connections = form.connections;
    const bool alone = has_links_for_itself(folding, representative);
    shape.rate_cap = (alone ? form.idle_rate(cluster) : form.rate_cap).in_base();
    for (const auto& [link_class, sum] : loads) {
      shape.usages.push_back({.resource = links[static_cast<std::size_t>(link_class)],
                              .weight = sum.weight,
                              .multiplicity = sum.total / sum.weight});
    }
    shape.connections *= part_of_largest_load(form, shape);
    if (form.sm_share > 0) {
      std::map<std::int32_t, int> members;
      for (const std::int32_t rank : communicators.all[representative].ranks)
        members[folding.class_of_rank[static_cast<std::size_t>(rank)]] = 1;
      for (const auto& [device_class, one] : members) {
        shape.occupations.push_back(
            {.resource = sm[static_cast<std::size_t>(device_class)], .amount = form.sm_share});
      }
    }
    shapes[key] = std::move(shape);
  }
  return shapes;
}

using program::Communication;
using program::Task;

// block -> task -> its time on one type of device at full speed; nothing if it is no kernel.
using KernelTimes = std::vector<std::vector<Seconds>>;

KernelTimes kernel_times(const program::Program& program, const DeviceType& type) {
  KernelTimes times;
  CachedOperatorTime cache(type);
  for (const program::Block& block : program.blocks) {
    auto& of_block = times.emplace_back();
    for (const Task& task : block.tasks) {
      const auto* kernel = std::get_if<Kernel>(&task.body);
      of_block.push_back(kernel == nullptr ? 0_s : cache(*kernel));
    }
  }
  return times;
}

bool sends(const Communicator& of, std::int32_t rank) {
  return of.kind == program::CollectiveKind::kSend && of.ranks.front() == rank;
}

// Makes the plans class by class. Lists of operations are counted over all classes: the n-th
// communication with one tag in a communicator class is one operation for all ranks that take part.
class Planner {
 public:
  Planner(const BuildInputs& inputs, const Resources& resources)
      : in_(inputs), resources_(resources), times_(inputs.cluster.device_types().size()) {}

  void plan(std::size_t c, const program::Role& role, TaskPlans& plans) {
    end_if_asked();
    auto& own = plans.tasks.emplace_back(plans.block_begin.back());
    std::vector<bool> used(in_.program.blocks.size());
    for (const program::Call& call : role.calls) used[call.block.index()] = true;
    counters_.clear();
    for (std::size_t b = 0; b < used.size(); ++b) {
      if (!used[b]) continue;
      for (std::size_t t = 0; t < in_.program.blocks[b].tasks.size(); ++t)
        own[plans.block_begin[b] + t] = planned(c, b, t);
    }
    plans.counters.push_back(counters_.size());
    plans.lists = lists_.size();
  }

 private:
  TaskPlan planned(std::size_t c, std::size_t b, std::size_t t) {
    const Task& task = in_.program.blocks[b].tasks[t];
    if (std::holds_alternative<Kernel>(task.body)) return kernel(c, b, t);
    if (const auto* what = std::get_if<Communication>(&task.body))
      return communication(c, in_.communicators.endpoint_of_task[b][t], task, *what);
    const auto* work = std::get_if<program::HostWork>(&task.body);
    return {.shape = resources_.host_shape, .latency = work == nullptr ? Seconds{} : work->time};
  }

  TaskPlan kernel(std::size_t c, std::size_t b, std::size_t t) {
    const Device& device = in_.cluster.devices()[device_of(in_.program, in_.rank(c)).index()];
    KernelTimes& times = times_[device.type.index()];
    if (times.empty())
      times = kernel_times(in_.program, in_.cluster.device_types()[device.type.index()]);
    return {.shape = resources_.compute_shape[c],
            .work = times[b][t].in_base() / device.speed,
            .is_kernel = true,
            .is_optimizer = in_.program.blocks[b].tasks[t].optimizer};
  }

  TaskPlan communication(std::size_t c, std::int32_t endpoint, const Task& task,
                         const Communication& what) {
    const std::int32_t communicator =
        in_.communicators
            .of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(in_.rank(c))];
    TaskPlan plan{.communicator =
                      in_.folding.class_of_communicator[static_cast<std::size_t>(communicator)]};
    if (in_.granularity == Granularity::kFlat) take_form(plan, what);
    const std::int32_t tag = number_of(tags_, program::tag_of(task));
    plan.operations = number_of(lists_, {plan.communicator, tag});
    const Communicator& members = in_.communicators.all[static_cast<std::size_t>(communicator)];
    plan.count = number_of(counters_, {communicator, tag, sends(members, in_.rank(c))});
    return plan;
  }

  void take_form(TaskPlan& plan, const Communication& what) const {
    const auto& [shape, limited] =
        resources_.communication_shape.at({plan.communicator, what.bytes.in_base()});
    const auto representative = static_cast<std::size_t>(
        in_.folding.communicator_representative[static_cast<std::size_t>(plan.communicator)]);
    plan.shape = shape;
    plan.latency = in_.forms.idle(representative, what.bytes).delay;
    plan.work = limited ? what.bytes.in_base() : 0;
  }

  // Numbers keys in the order in which they occur.
  template <class Key>
  static std::int32_t number_of(std::map<Key, std::int32_t>& numbers, const Key& key) {
    return numbers.try_emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
  }

  const BuildInputs& in_;
  const Resources& resources_;
  std::vector<KernelTimes> times_;  // device type -> its times, once a class has that type
  std::map<std::string, std::int32_t> tags_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> lists_;
  // For the current class, which may have several communicators of one class, each with its own
  // count.
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::int32_t> counters_;
};

}  // namespace

Issued issued_by(const BuildInputs& inputs) {
  const program::Program& program = inputs.program;
  const program::Expander expander(program);
  std::vector<std::int32_t> role_of_rank(static_cast<std::size_t>(program.ranks()));
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    for (const std::int32_t rank : program.roles[r].ranks)
      role_of_rank[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(r);
  }
  Issued issued;
  std::map<std::pair<std::int32_t, Seconds>, std::shared_ptr<const program::Expansion>> known;
  for (const std::int32_t rank : inputs.folding.rank_representative) {
    end_if_asked();
    const std::int32_t r = role_of_rank[static_cast<std::size_t>(rank)];
    const Seconds launch_time = program.launch_time_of(rank);
    auto& expansion = known[{r, launch_time}];
    if (!expansion)
      expansion = std::make_shared<const program::Expansion>(
          expander.expand(static_cast<std::size_t>(r), launch_time));
    issued.role_of_class.push_back(r);
    issued.expansions.push_back(expansion);
  }
  return issued;
}

Resources add_resources(const BuildInputs& inputs, engine::Workload& workload) {
  Resources made;
  for (std::size_t c = 0; c < inputs.classes(); ++c) {
    made.sm.push_back(workload.add_resource(1.0, "rank " + std::to_string(inputs.rank(c))));
    made.compute_shape.push_back(workload.add_shape(
        engine::Shape{.usages = {{.resource = made.sm.back()}}, .occupations = {}}));
  }
  made.host_shape = workload.add_shape(engine::Shape{});
  const auto name_of = [&](VertexId id) { return inputs.cluster.vertices()[id.index()].name; };
  for (const LinkId link : inputs.folding.link_representative) {
    const Link& what = inputs.cluster.links()[link.index()];
    made.links.push_back(workload.add_resource(what.bandwidth.in_base(),
                                               name_of(what.from) + " -> " + name_of(what.to)));
  }
  if (inputs.granularity == Granularity::kStepwise) return made;
  for (auto& [key, shape] : communication_shapes(inputs.cluster, inputs.communicators, inputs.forms,
                                                 inputs.folding, made.links, made.sm)) {
    const bool limited = !shape.usages.empty() || std::isfinite(shape.rate_cap);
    made.communication_shape[key] = {workload.add_shape(std::move(shape)), limited};
  }
  return made;
}

TaskPlans plan_tasks(const BuildInputs& inputs, const Issued& issued, const Resources& resources) {
  TaskPlans plans;
  plans.block_begin.push_back(0);
  for (const program::Block& block : inputs.program.blocks)
    plans.block_begin.push_back(plans.block_begin.back() + block.tasks.size());
  Planner planner(inputs, resources);
  for (std::size_t c = 0; c < inputs.classes(); ++c)
    planner.plan(c, inputs.program.roles[static_cast<std::size_t>(issued.role_of_class[c])], plans);
  return plans;
}

}  // namespace foreshard::sim::internal
