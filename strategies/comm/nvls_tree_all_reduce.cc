// NVLS tree: all-reduce of B bytes among N nodes, each on its own NVLink switch. Inside a node the
// switch adds and copies, as in nvls.cc; between nodes the H heads send their B/H along two binary
// trees, each on its own rail.
//
//     time   = latency_in + 2 depth latency_out
//              + B / min(bandwidth_in x H/(H+1), bandwidth_out x H/2); with more than 8 heads also
//              a latency for each further one, and a part of a round for each hop over the network
//              (heads_beyond_fit)
//     rate   <= channels x network_channel_rate: a channel passes on one chunk of one head after
//              another, each in the same time; from four nodes on chunks are half as long
//     volume = out of each member (H+1)/H B into the switch; out of each head at most 2/H B into
//              the network
//
// Source: NVIDIA/nccl v2.28.9, src/graph/connect.cc (heads on trees), src/graph/tuning.cc.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/double_tree.h"
#include "strategies/comm/internal/switch_sums.h"

namespace foreshard::comm {
namespace {

// NCCL's chunk is 128 KiB, from four nodes on 64 KiB, and half of that while an operation has fewer
// than four rounds (src/enqueue.cc, v2.28: NCCL_NVLSTREE_MAX_CHUNKSIZE).
constexpr std::size_t kNodesOfHalfChunk = 4;
constexpr double kTreeRoundsForFullChunk = 4;

// The longest path from a head to the root and back, in the tree of one rail.
internal::Path longest_way(const std::vector<std::int32_t>& rail, std::int32_t tree,
                           const internal::Traffic& traffic) {
  const auto count = static_cast<std::int32_t>(rail.size());
  internal::Path longest;
  for (std::int32_t node = 0; node < count; ++node) {
    internal::Path path;
    std::int32_t at = node;
    for (std::int32_t up = internal::node_parent(tree, at, count); up >= 0;
         up = internal::node_parent(tree, at, count)) {
      const std::int32_t below = rail[static_cast<std::size_t>(at)];
      const std::int32_t above = rail[static_cast<std::size_t>(up)];
      path.add(traffic.hop(below, above));
      path.add(traffic.hop(above, below));
      at = up;
    }
    if (internal::longer(path, longest)) longest = path;
  }
  return longest;
}

}  // namespace

Result<Pattern> nvls_tree_all_reduce(const Participants& group) {
  FORESHARD_ASSIGN(const auto nodes, internal::nodes_on_switches("nvls_tree", group));
  if (nodes.size() < 2)
    return Error{Error::Code::kUnsupported, "nvls_tree: all members are on one node"};
  FORESHARD_ASSIGN(const auto heads, internal::heads_of(group, nodes));
  const auto count = static_cast<std::int32_t>(nodes.size());
  const double part = 1 / static_cast<double>(heads.size());
  internal::Traffic traffic(group);
  for (const auto& rail : heads) {
    for (std::int32_t tree = 0; tree < internal::kTrees; ++tree) {
      for (std::int32_t node = 0; node < count; ++node) {
        const std::int32_t parent = internal::node_parent(tree, node, count);
        if (parent < 0) continue;
        const std::int32_t below = rail[static_cast<std::size_t>(node)];
        const std::int32_t above = rail[static_cast<std::size_t>(parent)];
        traffic.add(below, above, part / internal::kTrees);
        traffic.add(above, below, part / internal::kTrees);
      }
    }
  }
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  internal::LoadSum loads;
  loads.add(traffic.take_loads(pattern.detour));
  FORESHARD_ASSIGN(const auto inside,
                   internal::add_switch_sums(group, nodes, heads, {1, 1}, {part, part}, &loads));
  for (const auto& rail : heads) {
    for (std::int32_t tree = 0; tree < internal::kTrees; ++tree) {
      const internal::Path path = longest_way(rail, tree, traffic);
      if (internal::longer(path, pattern.path)) pattern.path = path;
    }
  }
  const double more = internal::heads_beyond_fit(heads);
  pattern.in_rounds = true;
  pattern.rounds = more > 0 ? pattern.path.network / kTreeRoundsForFullChunk : 0;
  pattern.channel_part = nodes.size() < kNodesOfHalfChunk ? 1 : 0.5;
  pattern.chunks = more * kTreeRoundsForFullChunk * pattern.channel_part;
  pattern.path.add(inside);
  pattern.path.nvlink += more;
  pattern.ways = static_cast<double>(heads.size());
  pattern.sent_per_member = 1 + part + 2 * part * (count - 1.0) / count;
  pattern.message = part;
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

}  // namespace foreshard::comm
