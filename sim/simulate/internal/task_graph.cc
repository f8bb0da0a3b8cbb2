// The stages that join the instances of all classes into one graph, and put it in order.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/caller.h"
#include "base/check.h"

#include "sim/simulate/internal/stages.h"
#include "strategies/program/ir/expand.h"

namespace foreshard::sim::internal {
namespace {

// Properties of an instance that decide whether it can be in a chain.
struct ChainItem {
  double work = 0;  // Seconds alone.
  bool is_kernel = false;
  // Whether it is an optimizer kernel: it is accounted separately and thus never in one chain with
  // other kernels.
  bool is_optimizer = false;
};

struct Chains {
  // instance -> the first one of its chain; itself if it is in none.
  std::vector<std::int32_t> head;
  std::vector<ProgressRange> part;  // One entry per instance.
  // One entry per instance: a head has the work of the whole chain, any other its own.
  std::vector<double> work;
};

// Chains in which every instance stands alone.
Chains no_chains(std::span<const ChainItem> items) {
  Chains chains;
  chains.part.resize(items.size());
  chains.head.resize(items.size());
  chains.work.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    chains.head[i] = static_cast<std::int32_t>(i);
    chains.work[i] = items[i].work;
  }
  return chains;
}

// Number of instances that wait for each instance; 2 means more than one.
std::vector<std::uint8_t> count_dependents(const program::Expansion& expansion) {
  std::vector<std::uint8_t> count(expansion.instances.size(), 0);
  for (const std::int32_t before : expansion.flat) {
    auto& of = count[static_cast<std::size_t>(before)];
    of = static_cast<std::uint8_t>(std::min(of + 1, 2));
  }
  return count;
}

// Chains: kernels that follow one another undisturbed, so that the engine can run them as one
// activity.
//
// A kernel continues the chain of the previous kernel if nothing can come between them:
// - it waits for the previous kernel alone, and nothing else waits for that kernel;
// - its launch is sure to be done by then: the launches since the chain's first kernel take no
//   longer than the chain's work so far, the first kernel started no earlier than its own launch,
//   and no kernel runs faster than alone.
//
// Then start and end of the chain are exact whatever else runs. Within it, time is divided in
// proportion to work: this is exact unless something else on the device slowed a part of the
// chain.
//
// A Sync that waits for one task alone, with nothing launched since, takes no time of its own: it
// ends when that task ends, and begins no activity either.
class ChainFinder {
 public:
  ChainFinder(const program::Expansion& expansion, std::span<const ChainItem> items)
      : expansion_(expansion),
        items_(items),
        dependents_(count_dependents(expansion)),
        chains_(no_chains(items)) {}

  Chains run() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (is_end_of_another(i)) {
        chains_.head[i] = chains_.head[static_cast<std::size_t>(expansion_.predecessors(i)[0])];
        chains_.part[i].begin = 1;
      }
      if (!items_[i].is_kernel) continue;
      if (continues(i)) {
        chains_.head[i] = static_cast<std::int32_t>(members_.front());
        chains_.part[i].begin = work_;  // a time, until the chain is closed
      } else {
        close();
      }
      members_.push_back(i);
      work_ += items_[i].work;
    }
    close();
    return std::move(chains_);
  }

 private:
  bool is_end_of_another(std::size_t i) const {
    const program::Instance& sync = expansion_.instances[i];
    const auto before = expansion_.predecessors(i);
    if (sync.stream >= 0 || before.size() != 1) return false;
    const program::Instance& task = expansion_.instances[static_cast<std::size_t>(before[0])];
    return task.host_sync == sync.host_sync && task.host_offset >= sync.host_offset;
  }

  bool continues(std::size_t i) const {
    if (members_.empty()) return false;
    const auto before = expansion_.predecessors(i);
    const std::size_t previous = members_.back();
    if (before.size() != 1 || static_cast<std::size_t>(before[0]) != previous) return false;
    if (dependents_[previous] != 1) return false;
    const program::Instance& head = expansion_.instances[members_.front()];
    const program::Instance& instance = expansion_.instances[i];
    return items_[i].is_optimizer == items_[members_.front()].is_optimizer &&
           instance.stream == head.stream && instance.host_sync == head.host_sync &&
           (instance.host_offset - head.host_offset).in_base() <= work_;
  }

  void close() {
    if (members_.size() > 1 && work_ > 0) {
      chains_.work[members_.front()] = work_;
      for (std::size_t k = 1; k < members_.size(); ++k) {
        ProgressRange& part = chains_.part[members_[k]];
        part.begin /= work_;
        chains_.part[members_[k - 1]].end = part.begin;
      }
    }
    members_.clear();
    work_ = 0;
  }

  const program::Expansion& expansion_;
  std::span<const ChainItem> items_;
  std::vector<std::uint8_t> dependents_;
  Chains chains_;
  std::vector<std::size_t> members_;  // members of the chain that may continue
  double work_ = 0;
};

// `items`: one per instance of the expansion.
Chains find_chains(const program::Expansion& expansion, std::span<const ChainItem> items) {
  return ChainFinder(expansion, items).run();
}

// The input of find_chains: the instances of a class with the time that each takes alone.
std::vector<ChainItem> items_of(const BuildInputs& inputs, std::size_t c,
                                const program::Expansion& expansion, const program::Role& role,
                                const TaskPlans& plans) {
  std::vector<ChainItem> items;
  items.reserve(expansion.instances.size());
  for (const program::Instance& instance : expansion.instances) {
    const TaskPlan& what = plans.of(c, role, instance);
    const double factor =
        what.is_kernel ? kernel_factor(inputs.plan, inputs.rank(c), items.size()) : 1;
    items.push_back({what.work * factor, what.is_kernel, what.is_optimizer});
  }
  return items;
}

// Calls `visit` with the node, class and index of each instance that begins its node's activity.
template <class Visit>
void each_head(const TaskGraph& graph, Visit visit) {
  for (std::size_t c = 0; c < graph.heads.size(); ++c) {
    end_if_asked();
    for (const std::int32_t head : graph.heads[c])
      visit(static_cast<std::size_t>(graph.node_of_instance(c, head)), c,
            static_cast<std::size_t>(head));
  }
}

void collect_members(TaskGraph& graph) {
  graph.members_begin.assign(graph.nodes.size() + 1, 0);
  auto& begin = graph.members_begin;
  each_head(graph, [&](std::size_t n, std::size_t, std::size_t) { ++begin[n + 1]; });
  for (std::size_t n = 1; n < begin.size(); ++n) begin[n] += begin[n - 1];
  graph.members.resize(begin.back());
  auto cursor = begin;
  each_head(graph, [&](std::size_t n, std::size_t c, std::size_t i) {
    graph.members[cursor[n]++] = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(i)};
  });
}

}  // namespace

// The n-th communication with one tag in a communicator class is one node, for all classes to which
// the representative's members belong (program.h, rule 5).
TaskGraph join_tasks(const BuildInputs& inputs, const Issued& issued, const TaskPlans& plans) {
  TaskGraph graph;
  // the nodes of each list, in order
  std::vector<std::vector<std::int32_t>> operations(plans.lists);
  for (std::size_t c = 0; c < inputs.classes(); ++c) {
    end_if_asked();
    const program::Expansion& expansion = *issued.expansions[c];
    const program::Role& role =
        inputs.program.roles[static_cast<std::size_t>(issued.role_of_class[c])];
    const auto items = items_of(inputs, c, expansion, role, plans);
    Chains chains = inputs.coalesce ? find_chains(expansion, items) : no_chains(items);
    auto& heads = graph.heads.emplace_back();
    auto& node_of = graph.node_of.emplace_back(items.size());
    std::vector<std::size_t> seen(plans.counters[c], 0);
    const auto new_node = [&](std::size_t i) {
      graph.nodes.push_back(
          {{static_cast<std::int32_t>(c), static_cast<std::int32_t>(i)}, chains.work[i]});
      return static_cast<std::int32_t>(graph.nodes.size()) - 1;
    };
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto head = static_cast<std::size_t>(chains.head[i]);
      if (head != i) {
        node_of[i] = node_of[head];
        continue;
      }
      heads.push_back(static_cast<std::int32_t>(i));
      const TaskPlan& what = plans.of(c, role, expansion.instances[i]);
      if (what.operations < 0) {
        node_of[i] = new_node(i);
        continue;
      }
      auto& list = operations[static_cast<std::size_t>(what.operations)];
      const std::size_t n = seen[static_cast<std::size_t>(what.count)]++;
      if (n == list.size()) list.push_back(new_node(i));
      FORESHARD_CHECK(n < list.size());
      node_of[i] = list[n];
    }
    graph.part.push_back(std::move(chains.part));
  }
  collect_members(graph);
  return graph;
}

Result<std::vector<std::int32_t>> order_of(const Issued& issued, const TaskGraph& graph) {
  const auto each_edge = [&](auto&& visit) {
    each_head(graph, [&](std::size_t n, std::size_t c, std::size_t i) {
      const program::Expansion& expansion = *issued.expansions[c];
      for (const std::int32_t before : expansion.predecessors(i))
        visit(graph.node_of_instance(c, before), n);
      const std::int32_t sync = expansion.instances[i].host_sync;
      if (sync >= 0) visit(graph.node_of_instance(c, sync), n);
    });
  };
  std::vector<std::uint32_t> begin(graph.nodes.size() + 1, 0);
  std::vector<std::uint32_t> waits_for(graph.nodes.size(), 0);
  each_edge([&](std::int32_t from, std::size_t to) {
    ++begin[static_cast<std::size_t>(from) + 1];
    ++waits_for[to];
  });
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<std::int32_t> successors(begin.back());
  auto cursor = begin;
  each_edge([&](std::int32_t from, std::size_t to) {
    successors[cursor[static_cast<std::size_t>(from)]++] = static_cast<std::int32_t>(to);
  });

  std::vector<std::int32_t> order;
  order.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (waits_for[n] == 0) order.push_back(static_cast<std::int32_t>(n));
  }
  EndPoll poll;
  for (std::size_t next = 0; next < order.size(); ++next) {
    poll();
    const auto n = static_cast<std::size_t>(order[next]);
    for (std::uint32_t s = begin[n]; s < begin[n + 1]; ++s) {
      if (--waits_for[static_cast<std::size_t>(successors[s])] == 0) order.push_back(successors[s]);
    }
  }
  if (order.size() == graph.nodes.size()) return order;
  return Error{Error::Code::kInvalidInput,
               "the program deadlocks: some of its communications wait for each other"};
}

}  // namespace foreshard::sim::internal
