#include "strategies/comm/internal/switch_sums.h"

#include <algorithm>
#include <map>
#include <string>

#include "strategies/comm/internal/rings.h"

namespace foreshard::comm::internal {
namespace {

// The NVLink switch in the middle of a route; an invalid id if there is none.
VertexId switch_of(const ClusterView& cluster, const Route& route) {
  if (route.links.size() != 2) return {};
  for (const RoutedLink& routed : route.links) {
    const Link& link = cluster.links()[routed.link.index()];
    if (link.kind != LinkKind::kNvLink) return {};
    if (cluster.vertices()[link.to.index()].kind == VertexKind::kNvSwitch) return link.to;
  }
  return {};
}

// The adapters of node `home` by which a route between nodes leaves it.
std::vector<VertexId> adapters_of(const ClusterView& cluster, const Route& route,
                                  std::int32_t home) {
  std::vector<VertexId> adapters;
  for (const RoutedLink& routed : route.links) {
    const VertexId to = cluster.links()[routed.link.index()].to;
    const Vertex& vertex = cluster.vertices()[to.index()];
    if (vertex.kind == VertexKind::kNic && vertex.node == home) adapters.push_back(to);
  }
  std::ranges::sort(adapters);
  return adapters;
}

Error unsupported(std::string_view algorithm, const std::string& why) {
  return {Error::Code::kUnsupported, std::string(algorithm) + ": " + why};
}

}  // namespace

Result<NodeMembers> nodes_on_switches(std::string_view algorithm, const Participants& group) {
  NodeMembers nodes = members_by_node(group);
  for (const auto& members : nodes) {
    if (members.size() < 2) return unsupported(algorithm, "a member is alone on its node");
    VertexId common;
    for (std::size_t i = 0; i < members.size(); ++i) {
      FORESHARD_ASSIGN(const auto route,
                       route_between(group, members[i], members[(i + 1) % members.size()]));
      const VertexId middle = switch_of(*group.cluster, route);
      if (!middle.valid() || (common.valid() && middle != common))
        return unsupported(algorithm, "the members do not share an NVLink switch");
      common = middle;
    }
  }
  return nodes;
}

Status no_sums_in_network(std::string_view algorithm, const Participants& group) {
  if (group.cluster->reduces_in_network()) return {};
  return unsupported(algorithm,
                     "the network's switches do not add up (set sharp: true if they do)");
}

Result<NodeMembers> heads_of(const Participants& group, const NodeMembers& nodes) {
  NodeMembers heads;
  // adapters of a member -> members with the same ones
  std::map<std::vector<VertexId>, std::size_t> heads_on;
  const std::size_t most = std::ranges::min(nodes, {}, &std::vector<std::int32_t>::size).size();
  for (std::size_t place = 0; place < most && heads.size() < kMostHeads; ++place) {
    if (nodes.size() > 1) {
      const std::int32_t member = nodes[0][place];
      FORESHARD_ASSIGN(const auto route, route_between(group, member, nodes[1][place]));
      const DeviceId device = group.devices[static_cast<std::size_t>(member)];
      const auto adapters =
          adapters_of(*group.cluster, route, group.cluster->devices()[device.index()].node);
      if (++heads_on[adapters] > std::max<std::size_t>(1, adapters.size())) continue;
    }
    heads.emplace_back();
    for (const auto& members : nodes) heads.back().push_back(members[place]);
  }
  return heads;
}

double heads_beyond_fit(const NodeMembers& heads) {
  constexpr std::size_t kHeadsOfFit = 8;
  return static_cast<double>(std::max(heads.size(), kHeadsOfFit) - kHeadsOfFit);
}

Result<Hop> add_switch_sums(const Participants& group, const NodeMembers& nodes,
                            const NodeMembers& heads, const SwitchVolume& each,
                            const SwitchVolume& head, LoadSum* loads) {
  std::vector<char> is_head(group.devices.size(), 0);
  for (const auto& rail : heads)
    for (const std::int32_t member : rail) is_head[static_cast<std::size_t>(member)] = 1;
  const auto of_head = [&](std::int32_t member, double volume) {
    return is_head[static_cast<std::size_t>(member)] != 0 ? volume : 0;
  };
  Hop longest{LinkKind::kNvLink, 0_s};
  for (const auto& members : nodes) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      // The route to the next member is this member's link up and the next member's link down.
      const std::int32_t next = members[(i + 1) % members.size()];
      FORESHARD_ASSIGN(const auto route, route_between(group, members[i], next));
      longest.wire = std::max(longest.wire, route.latency);
      for (const RoutedLink& routed : route.links) {
        const Link& link = group.cluster->links()[routed.link.index()];
        const bool is_up = group.cluster->vertices()[link.from.index()].kind == VertexKind::kDevice;
        Route single;
        single.links = {routed};
        loads->add(single, is_up ? each.up + of_head(members[i], head.up)
                                 : each.down + of_head(next, head.down));
      }
    }
  }
  return longest;
}

void add_network_sums(const std::vector<std::int32_t>& members, double part, Traffic* traffic) {
  for (std::size_t i = 0; i < members.size(); ++i)
    traffic->add(members[i], members[(i + 1) % members.size()], part);
}

Path network_sum_path(const NodeMembers& rails, const Traffic& traffic) {
  Path longest;
  for (const auto& members : rails) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      Path path;
      path.add(traffic.hop(members[i], members[(i + 1) % members.size()]));
      if (longer(path, longest)) longest = path;
    }
  }
  return longest;
}

}  // namespace foreshard::comm::internal
