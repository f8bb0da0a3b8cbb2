#include "strategies/comm/nccl/local_node.h"

#include <algorithm>
#include <cmath>

#include "strategies/comm/internal/traffic.h"
#include "topology/node_config.h"

namespace foreshard::comm::nccl {
namespace {

constexpr std::int64_t kOldestPcie = 3;

class Reader {
 public:
  Reader(const Participants& group, const std::vector<std::int32_t>& members, const Tables& tables,
         LocalNode& node)
      : cluster_(*group.cluster),
        group_(group),
        tables_(tables),
        node_(node),
        pcie_total_(members.size(), 0) {
    for (std::size_t i = 0; i < members.size(); ++i)
      member_at_.emplace(cluster_.devices()[device_of(members[i]).index()].vertex, i);
  }

  double largest_total() const {
    double largest = 0;
    for (std::size_t i = 0; i < pcie_total_.size(); ++i)
      largest = std::max({largest, pcie_total_[i], node_.nvlink_total[i]});
    return largest;
  }

  Result<LocalHop> hop(std::int32_t from, std::int32_t to) {
    FORESHARD_ASSIGN(const auto route, internal::route_between(group_, from, to));
    const std::int32_t home = cluster_.devices()[device_of(from).index()].node;
    LocalHop hop{.uses = {}, .kind = route.widest_kind};
    const bool through_socket =
        std::any_of(route.links.begin(), route.links.end(), [&](const RoutedLink& routed) {
          const Link& link = cluster_.links()[routed.link.index()];
          return kind_of(link.from) == VertexKind::kSocket;
        });
    for (const RoutedLink& routed : route.links)
      add(routed, home, through_socket ? tables_.pcie_through_socket : 1, &hop);
    hop.relayed = std::ranges::count_if(route.links, [&](const RoutedLink& routed) {
                    return kind_of(cluster_.links()[routed.link.index()].to) == VertexKind::kDevice;
                  }) > 1;
    return hop;
  }

  /// The part of a route between nodes that is in node `home`.
  Result<LocalHop> half(std::int32_t from, std::int32_t to, std::int32_t home,
                        std::vector<VertexId>* nics) {
    FORESHARD_ASSIGN(const auto route, internal::route_between(group_, from, to));
    LocalHop hop;
    for (const RoutedLink& routed : route.links) {
      const Link& link = cluster_.links()[routed.link.index()];
      if (vertex(link.from).node != home && vertex(link.to).node != home) continue;
      add(routed, home, 1, &hop);
      if (link.kind != LinkKind::kNetwork) hop.kind = std::max(hop.kind, link.kind);
      for (const VertexId end : {link.from, link.to})
        if (kind_of(end) == VertexKind::kNic && vertex(end).node == home) nics->push_back(end);
    }
    std::sort(nics->begin(), nics->end());
    nics->erase(std::unique(nics->begin(), nics->end()), nics->end());
    return hop;
  }

 private:
  const Vertex& vertex(VertexId id) const { return cluster_.vertices()[id.index()]; }
  VertexKind kind_of(VertexId id) const { return vertex(id).kind; }
  DeviceId device_of(std::int32_t member) const {
    return group_.devices[static_cast<std::size_t>(member)];
  }

  void add(const RoutedLink& routed, std::int32_t home, double factor, LocalHop* hop) {
    const Link& link = cluster_.links()[routed.link.index()];
    if (vertex(link.from).node != home && vertex(link.to).node != home) return;
    const auto [place, is_new] = index_.try_emplace(routed.link, node_.capacity.size());
    if (is_new) {
      node_.capacity.push_back(capacity_of(link));
      count(link, node_.capacity.back());
    }
    const bool over_pcie = link.kind == LinkKind::kPcie || link.kind == LinkKind::kSocket;
    hop->uses.push_back({place->second, routed.share * (over_pcie ? factor : 1)});
  }

  // Adds the link to the totals of the member that it starts from.
  void count(const Link& link, double capacity) {
    const auto member = member_at_.find(link.from);
    if (member == member_at_.end()) return;
    if (link.kind == LinkKind::kNvLink) node_.nvlink_total[member->second] += capacity;
    if (link.kind == LinkKind::kPcie)
      pcie_total_[member->second] = std::max(pcie_total_[member->second], capacity);
  }

  // The link's bandwidth in GB/s, as NCCL counts it.
  double capacity_of(const Link& link) const {
    switch (link.kind) {
      case LinkKind::kNvLink: {
        const Generation& generation = tables_.generation_of(capability_at(link));
        const double links = std::max(1.0, std::round(link.nominal() / generation.nvlink_nominal));
        return links * generation.nvlink / 1_GB_s;
      }
      case LinkKind::kPcie:
        return std::exp2(std::round(std::log2(link.nominal() / pcie_bandwidth(kOldestPcie)))) *
               tables_.pcie_3 / 1_GB_s;
      case LinkKind::kSocket:
      case LinkKind::kNetwork:
      case LinkKind::kMemory:
        return link.nominal() / 1_GB_s;
    }
    return 0;
  }

  std::int64_t capability_at(const Link& link) const {
    for (const VertexId end : {link.from, link.to})
      if (kind_of(end) == VertexKind::kDevice)
        return *cluster_.type_of(vertex(end).device).compute_capability;
    return *cluster_.type_of(group_.devices.front()).compute_capability;
  }

  const ClusterView& cluster_;
  const Participants& group_;
  const Tables& tables_;
  LocalNode& node_;
  std::vector<double> pcie_total_;
  std::map<LinkId, std::size_t> index_;
  std::map<VertexId, std::size_t> member_at_;
};

// Whether a switch joins every two members: two NVLinks lead from one to the other, and they do not
// meet in a third GPU, which relays in an NVLink mesh (topology/cluster_view.h, Relays).
bool joined_by_switch(const LocalNode& node) {
  for (std::size_t from = 0; from < node.members; ++from) {
    for (std::size_t to = 0; to < node.members; ++to) {
      const LocalHop& hop = node.hop[from][to];
      if (from != to && (hop.kind != LinkKind::kNvLink || hop.uses.size() != 2 || hop.relayed))
        return false;
    }
  }
  return node.members > 1;
}

}  // namespace

Result<LocalNode> local_node(const Participants& group, const std::vector<std::int32_t>& members,
                             const std::vector<std::int32_t>& peers, const Tables& tables) {
  LocalNode node;
  node.members = members.size();
  node.hop.assign(members.size(), std::vector<LocalHop>(members.size()));
  node.nvlink_total.assign(members.size(), 0);
  Reader reader(group, members, tables, node);
  for (std::size_t from = 0; from < members.size(); ++from) {
    for (std::size_t to = 0; to < members.size(); ++to) {
      if (from == to) continue;
      FORESHARD_ASSIGN(auto hop, reader.hop(members[from], members[to]));
      node.hop[from][to] = std::move(hop);
    }
  }
  if (!peers.empty()) {
    const auto device = group.devices[static_cast<std::size_t>(members.front())];
    const std::int32_t home = group.cluster->devices()[device.index()].node;
    for (std::size_t i = 0; i < members.size(); ++i) {
      auto& nics = node.nics.emplace_back();
      FORESHARD_ASSIGN(auto out, reader.half(members[i], peers[i], home, &nics));
      FORESHARD_ASSIGN(auto in, reader.half(peers[i], members[i], home, &nics));
      node.to_nic.push_back(std::move(out));
      node.from_nic.push_back(std::move(in));
    }
  }
  node.total = reader.largest_total();
  node.has_nvswitch = joined_by_switch(node);
  return node;
}

}  // namespace foreshard::comm::nccl
