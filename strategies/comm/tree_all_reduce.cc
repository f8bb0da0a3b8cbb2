// Double binary tree all-reduce of B bytes over N nodes of k members, p >= 2 in all: two trees over
// the nodes, each with half the bytes, where every node is a leaf of one tree and inside the other;
// and a chain inside each node (where identical links join every two members, one chain from each
// member, so that all chains together use every link). The bytes are summed up the trees and sent
// down again, in chunks that follow one another.
//
//     time   = 2 (k-1) latency_in + 2 depth latency_out + B / min(bandwidth_in, bandwidth_out) x 2
//              + (hops - 1) chunk times,   depth <= ceil(log2(N+1))
//     volume = 2 (p-1)/p B per member on average, 2 (p-1) B in total; a node sends at most 2 B
//
// The latency grows with log N; a ring's with N.
// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", Parallel Computing 35(12), 2009; Jeaugey, "Massively scale your deep learning training
// with NCCL 2.4", NVIDIA developer blog,
// 2019. Not modelled: NCCL attaches a node's two children to two of its members; here each channel
// uses one.
#include <algorithm>
#include <numeric>

#include "base/check.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/double_tree.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {
namespace {

using Nodes = std::vector<std::vector<std::int32_t>>;

using internal::kTrees;
using internal::node_parent;

// The members of one node as a chain, each the child of the one before, starting at `first`.
std::vector<std::int32_t> chain_from(const std::vector<std::int32_t>& node, std::size_t first,
                                     bool on_all_links) {
  if (on_all_links) return internal::chain_on_all_links(node, first);
  std::vector<std::int32_t> chain = node;
  std::rotate(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(first), chain.end());
  return chain;
}

// member -> parent; -1: the root. Channel c connects the nodes' trees at each node's member c.
std::vector<std::int32_t> member_parents(const Nodes& nodes, std::size_t members, std::int32_t tree,
                                         std::size_t channel, bool on_all_links) {
  std::vector<std::int32_t> parent(members, -1);
  const auto count = static_cast<std::int32_t>(nodes.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const auto& node = nodes[static_cast<std::size_t>(i)];
    const auto chain = chain_from(node, channel % node.size(), on_all_links);
    for (std::size_t k = 1; k < chain.size(); ++k)
      parent[static_cast<std::size_t>(chain[k])] = chain[k - 1];
    const std::int32_t above = node_parent(tree, i, count);
    if (above < 0) continue;
    const auto& up = nodes[static_cast<std::size_t>(above)];
    parent[static_cast<std::size_t>(chain.front())] = up[channel % up.size()];
  }
  return parent;
}

// The members in an order that has children before their parents.
std::vector<std::int32_t> leaves_first(const std::vector<std::int32_t>& parent) {
  std::vector<std::int32_t> depth(parent.size(), -1);
  std::vector<std::int32_t> way;
  for (std::size_t start = 0; start < parent.size(); ++start) {
    auto at = static_cast<std::int32_t>(start);
    while (at >= 0 && depth[static_cast<std::size_t>(at)] < 0) {
      way.push_back(at);
      at = parent[static_cast<std::size_t>(at)];
      FORESHARD_CHECK(way.size() <= parent.size());
    }
    std::int32_t above = at < 0 ? -1 : depth[static_cast<std::size_t>(at)];
    for (; !way.empty(); way.pop_back()) depth[static_cast<std::size_t>(way.back())] = ++above;
  }
  std::vector<std::int32_t> order(parent.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return depth[static_cast<std::size_t>(a)] > depth[static_cast<std::size_t>(b)];
  });
  return order;
}

// tree -> member -> parent, with two trees per channel.
Result<std::vector<std::vector<std::int32_t>>> trees_of(const Participants& group) {
  const Nodes nodes = internal::members_by_node(group);
  const bool on_all_links = internal::has_chains_on_all_links(group, nodes);
  std::size_t channels = on_all_links ? internal::rails_of(nodes) : 1;
  if (nodes.size() > 1) {
    FORESHARD_ASSIGN(channels, internal::rings_over(group, nodes));
  }
  std::vector<std::vector<std::int32_t>> trees;
  for (std::size_t channel = 0; channel < channels; ++channel)
    for (std::int32_t tree = 0; tree < kTrees; ++tree)
      trees.push_back(member_parents(nodes, group.devices.size(), tree, channel, on_all_links));
  return trees;
}

// The longest path from a member up to the root and down again.
internal::Path longest_way(const internal::Traffic& traffic,
                           const std::vector<std::int32_t>& parent) {
  std::vector<internal::Path> to_root(parent.size());
  internal::Path longest;
  const auto order = leaves_first(parent);
  for (auto member = order.rbegin(); member != order.rend(); ++member) {
    const auto at = static_cast<std::size_t>(*member);
    if (parent[at] < 0) continue;
    to_root[at] = to_root[static_cast<std::size_t>(parent[at])];
    to_root[at].add(traffic.hop(*member, parent[at]));
    to_root[at].add(traffic.hop(parent[at], *member));
    if (internal::longer(to_root[at], longest)) longest = to_root[at];
  }
  return longest;
}

}  // namespace

Result<Pattern> tree_all_reduce(const Participants& group) {
  FORESHARD_ASSIGN(const auto trees, trees_of(group));
  internal::Traffic traffic(group);
  for (const auto& parent : trees) {
    for (std::size_t member = 0; member < parent.size(); ++member) {
      if (parent[member] < 0) continue;
      const double share = 1.0 / static_cast<double>(trees.size());
      traffic.add(static_cast<std::int32_t>(member), parent[member], share);
      traffic.add(parent[member], static_cast<std::int32_t>(member), share);
    }
  }
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (const auto& parent : trees) {
    const internal::Path path = longest_way(traffic, parent);
    if (internal::longer(path, pattern.path)) pattern.path = path;
  }
  pattern.fill_chunks = pattern.path.nvlink + pattern.path.pcie + pattern.path.network - 1;
  pattern.ways = static_cast<double>(trees.size()) / kTrees;
  pattern.sent_per_member = 2 * (static_cast<double>(group.devices.size()) - 1) /
                            static_cast<double>(group.devices.size());
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> tree_all_reduce_steps(const Participants& group) {
  FORESHARD_ASSIGN(const auto trees, trees_of(group));
  const std::size_t members = group.devices.size();
  const auto chunks = static_cast<std::int32_t>(trees.size());
  FORESHARD_TRY(internal::too_many_messages("tree", 2.0 * chunks * static_cast<double>(members)));

  StepwiseCollective result{
      .algorithm = "tree", .chunks = chunks, .pipelined = true, .messages = {}};
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    const auto& parent = trees[static_cast<std::size_t>(chunk)];
    std::vector<std::vector<std::int32_t>> arrived(members);
    const auto send = [&](std::int32_t from, std::int32_t to, bool reduces) -> Status {
      FORESHARD_ASSIGN(const auto route, internal::route_between(group, from, to));
      arrived[static_cast<std::size_t>(to)].push_back(
          static_cast<std::int32_t>(result.messages.size()));
      result.messages.push_back({.from = from,
                                 .to = to,
                                 .part = 1.0 / chunks,
                                 .latency = route.latency,
                                 .after = arrived[static_cast<std::size_t>(from)],
                                 .first_chunk = chunk,
                                 .chunk_count = 1,
                                 .reduces = reduces});
      return {};
    };
    const auto order = leaves_first(parent);
    for (const std::int32_t member : order) {
      const std::int32_t above = parent[static_cast<std::size_t>(member)];
      if (above < 0) continue;
      FORESHARD_TRY(send(member, above, true));
    }
    for (auto member = order.rbegin(); member != order.rend(); ++member) {
      const std::int32_t above = parent[static_cast<std::size_t>(*member)];
      if (above < 0) continue;
      FORESHARD_TRY(send(above, *member, false));
    }
  }
  return result;
}

}  // namespace foreshard::comm
