// Two levels: inside the nodes, and between the members at the same place on all nodes (a rail).
// There are p >= 2 members; groups that do not fit the two levels are not supported.
//
// All-reduce of B bytes on N nodes of k members: reduce-scatter in each node, all-reduce of each
// rail's B/k bytes, all-gather in each node, all by rings.
//
//     time   = 2 (k-1) latency_in + 2 (N-1) latency_out
//              + 2 (k-1)/k B / bandwidth_in + 2 (N-1)/(N k) B / bandwidth_out
//     volume = 2 (p-1)/p B per member
//
// All-to-all: a member sends each neighbour on its node the data for that neighbour's rail (N of
// the p parts); along the rail the data go on to their nodes (k parts in one message).
//
//     volume = (k-1)/k B inside nodes, (N-1)/N B between nodes: more bytes, p/k times fewer
//     messages
//
// Source: Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash",
// arXiv:1811.05233 (2-D all-reduce); Hwang et al., "Tutel: adaptive mixture-of-experts at scale",
// MLSys 2023, section 3.4 (2-D all-to-all). NCCL does not have them.
// Not modelled: phases that overlap; the copies that put parts for one node side by side.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/rounds.h"

namespace foreshard::comm {
namespace {

using Nodes = std::vector<std::vector<std::int32_t>>;

// The members of each node; kUnsupported unless there are several nodes with equally many members,
// at least two.
Result<Nodes> equal_nodes(const Participants& group) {
  Nodes nodes = internal::members_by_node(group);
  const bool equal = std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    return node.size() == nodes.front().size();
  });
  if (nodes.size() > 1 && nodes.front().size() > 1 && equal) return nodes;
  return Error{Error::Code::kUnsupported,
               "hierarchical: needs several nodes with as many members each"};
}

// Adds a ring all-gather among `ring` to the rounds, from the first round on. Member i starts with
// `count` chunks from first_chunk + i x count on.
void add_ring(const std::vector<std::int32_t>& ring, std::int32_t first_chunk, std::int32_t count,
              internal::Rounds* rounds) {
  const auto members = static_cast<std::int32_t>(ring.size());
  if (rounds->rounds.size() + 1 < ring.size()) rounds->rounds.resize(ring.size() - 1);
  for (std::int32_t step = 0; step + 1 < members; ++step)
    for (std::int32_t i = 0; i < members; ++i)
      rounds->rounds[static_cast<std::size_t>(step)].push_back(
          {.from = ring[static_cast<std::size_t>(i)],
           .to = ring[static_cast<std::size_t>((i + 1) % members)],
           .first_chunk = first_chunk + (i + members - step) % members * count,
           .chunk_count = count});
}

internal::Rounds all_reduce(const Nodes& nodes) {
  const auto count = static_cast<std::int32_t>(nodes.size());
  const auto per_node = static_cast<std::int32_t>(nodes.front().size());
  internal::Rounds inside{.chunks = count * per_node, .rounds = {}};
  internal::Rounds across = inside;
  for (const auto& node : nodes) add_ring(node, 0, count, &inside);
  for (std::int32_t place = 0; place < per_node; ++place) {
    std::vector<std::int32_t> rail;
    for (const auto& node : nodes) rail.push_back(node[static_cast<std::size_t>(place)]);
    add_ring(rail, place * count, 1, &across);
  }
  auto rounds = internal::joined(internal::reversed(inside), internal::reversed(across));
  return internal::joined(internal::joined(std::move(rounds), across), inside);
}

}  // namespace

Result<Pattern> hierarchical_all_reduce(const Participants& group) {
  FORESHARD_ASSIGN(const auto nodes, equal_nodes(group));
  return internal::pattern_of(group, all_reduce(nodes));
}

Result<StepwiseCollective> hierarchical_all_reduce_steps(const Participants& group) {
  FORESHARD_ASSIGN(const auto nodes, equal_nodes(group));
  return internal::steps_of("hierarchical", group, all_reduce(nodes));
}

Result<Pattern> hierarchical_all_to_all(const Participants& group) {
  FORESHARD_ASSIGN(const auto nodes, equal_nodes(group));
  const auto count = static_cast<double>(nodes.size());
  const auto per_node = static_cast<double>(nodes.front().size());
  internal::Traffic traffic(group);
  Nodes rails(nodes.front().size());
  for (const auto& node : nodes)
    for (std::size_t place = 0; place < node.size(); ++place) rails[place].push_back(node[place]);
  const auto exchange = [&](const Nodes& groups, double part) {
    for (const auto& members : groups)
      for (const std::int32_t from : members)
        for (const std::int32_t to : members)
          if (from != to) traffic.add(from, to, part);
  };
  exchange(nodes, 1 / per_node);
  exchange(rails, 1 / count);
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  const auto longest_of = [&](const Nodes& groups) {
    internal::Path longest;
    for (const auto& members : groups) {
      for (const std::int32_t from : members) {
        internal::Path starts;
        Seconds wire;
        for (const std::int32_t to : members) {
          if (from == to) continue;
          const internal::Hop& hop = traffic.hop(from, to);
          starts.add(internal::Hop{hop.kind, 0_s});
          wire = std::max(wire, hop.wire);
        }
        starts.wire = wire;
        if (internal::longer(starts, longest)) longest = starts;
      }
    }
    return longest;
  };
  pattern.path.add(longest_of(nodes));
  pattern.path.add(longest_of(rails));
  pattern.message = 1 / count;
  pattern.sent_per_member = (per_node - 1) / per_node + (count - 1) / count;
  pattern.kept_per_member = 1 / per_node + 1 / count;
  pattern.copies_by_chunk = true;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

}  // namespace foreshard::comm
