#include "strategies/comm/internal/switch_sums.h"

#include <algorithm>
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

NodeMembers heads_of(const NodeMembers& nodes) {
  NodeMembers heads(rails_of(nodes));
  for (std::size_t head = 0; head < heads.size(); ++head)
    for (const auto& members : nodes) heads[head].push_back(members[head]);
  return heads;
}

Result<Hop> add_switch_sums(const Participants& group, const std::vector<std::int32_t>& members,
                            std::size_t heads, const SwitchVolume& each, const SwitchVolume& head,
                            LoadSum* loads) {
  Hop longest{LinkKind::kNvLink, 0_s};
  for (std::size_t i = 0; i < members.size(); ++i) {
    // The way to the next member is this one's link up and that one's link down.
    const std::size_t next = (i + 1) % members.size();
    FORESHARD_ASSIGN(const auto route, route_between(group, members[i], members[next]));
    longest.wire = std::max(longest.wire, route.latency);
    for (const RoutedLink& routed : route.links) {
      const Link& link = group.cluster->links()[routed.link.index()];
      const bool is_up = group.cluster->vertices()[link.from.index()].kind == VertexKind::kDevice;
      const double volume =
          is_up ? each.up + (i < heads ? head.up : 0) : each.down + (next < heads ? head.down : 0);
      Route single;
      single.links = {routed};
      loads->add(single, volume);
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
