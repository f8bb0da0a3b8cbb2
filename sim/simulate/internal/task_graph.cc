// The stages that join the instances of all classes into one graph, and put it in order.
#include "base/check.h"

#include "sim/simulate/internal/stages.h"

namespace foreshard::sim::internal {
namespace {

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
  for (std::size_t next = 0; next < order.size(); ++next) {
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
