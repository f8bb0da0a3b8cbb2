// CollNet: all-reduce of B bytes among N nodes whose network switches add up (SHARP). H members of
// each node are heads, one for each part of the bytes; the network adds the parts of the heads at
// the same place on every node.
//
//     chain    each part goes along a chain of the node's members to its head and back
//     direct   each member gives every head its part at once, and gets the sum from it
//     time     latency + max((k-1)/k x 2 B / bandwidth_in, B/H / bandwidth_out), k members a node
//     volume   out of each head B/H into the network, whatever the number of nodes
//
// Source: Graham et al., "Scalable hierarchical aggregation protocol (SHARP): a hardware
// architecture for efficient data reduction", COM-HPC 2016; NVIDIA/nccl v2.28.9,
// src/graph/connect.cc, src/graph/tuning.cc.
// Not modelled: all-gather and reduce-scatter over CollNet; limits of the switches' memory; groups
// that share the switches' adders.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/switch_sums.h"

namespace foreshard::comm {
namespace {

Status fault_in_network(std::string_view name, const Participants& group,
                        const internal::NodeMembers& nodes) {
  if (nodes.size() < 2)
    return Error{Error::Code::kUnsupported, std::string(name) + ": all members are on one node"};
  return internal::no_sums_in_network(name, group);
}

// Completes the pattern: adds the heads' sums in the network to the traffic inside the nodes.
Result<Pattern> finished(const internal::NodeMembers& heads, internal::Traffic* traffic) {
  const double part = 1 / static_cast<double>(heads.size());
  for (const auto& rail : heads) internal::add_network_sums(rail, part, traffic);
  FORESHARD_TRY(traffic->route());
  Pattern pattern;
  pattern.path = internal::network_sum_path(heads, *traffic);
  pattern.ways = static_cast<double>(heads.size());
  pattern.message = part;
  pattern.loads = traffic->take_loads(pattern.detour);
  return pattern;
}

}  // namespace

Result<Pattern> collnet_chain_all_reduce(const Participants& group) {
  const auto nodes = internal::members_by_node(group);
  FORESHARD_TRY(fault_in_network("collnet_chain", group, nodes));
  FORESHARD_ASSIGN(const auto heads, internal::heads_of(group, nodes));
  const double part = 1 / static_cast<double>(heads.size());
  internal::Traffic traffic(group);
  double sent = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto& members = nodes[node];
    const std::size_t count = members.size();
    for (const auto& rail : heads) {
      const auto head =
          static_cast<std::size_t>(std::ranges::find(members, rail[node]) - members.begin());
      for (std::size_t i = 0; i + 1 < count; ++i) {
        const std::int32_t near = members[(head + i) % count];
        const std::int32_t far = members[(head + i + 1) % count];
        traffic.add(far, near, part);
        traffic.add(near, far, part);
        sent += 2 * part;
      }
    }
  }
  FORESHARD_ASSIGN(Pattern pattern, finished(heads, &traffic));
  internal::Path longest;
  for (const auto& members : nodes) {
    internal::Path path;
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
      path.add(traffic.hop(members[i + 1], members[i]));
      path.add(traffic.hop(members[i], members[i + 1]));
    }
    if (internal::longer(path, longest)) longest = path;
  }
  pattern.fill_chunks = longest.nvlink + longest.pcie;
  pattern.path.add(longest);
  pattern.sent_per_member = sent / static_cast<double>(group.devices.size()) + part;
  return pattern;
}

Result<Pattern> collnet_direct_all_reduce(const Participants& group) {
  const auto nodes = internal::members_by_node(group);
  FORESHARD_TRY(fault_in_network("collnet_direct", group, nodes));
  FORESHARD_ASSIGN(const auto heads, internal::heads_of(group, nodes));
  const double part = 1 / static_cast<double>(heads.size());
  internal::Traffic traffic(group);
  double sent = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const auto& rail : heads) {
      for (const std::int32_t member : nodes[node]) {
        if (member == rail[node]) continue;
        traffic.add(member, rail[node], part);
        traffic.add(rail[node], member, part);
        sent += 2 * part;
      }
    }
  }
  FORESHARD_ASSIGN(Pattern pattern, finished(heads, &traffic));
  internal::Path longest;
  for (const auto& members : nodes) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      internal::Path path;
      path.add(traffic.hop(members[i], members[0]));
      path.add(traffic.hop(members[0], members[i]));
      if (internal::longer(path, longest)) longest = path;
    }
  }
  pattern.path.add(longest);
  pattern.sent_per_member = sent / static_cast<double>(group.devices.size()) + part;
  return pattern;
}

}  // namespace foreshard::comm
