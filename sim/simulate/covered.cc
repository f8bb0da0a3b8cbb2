#include "sim/simulate/covered.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace foreshard::sim {
namespace {

// Relative difference up to which sums of bandwidths count as equal.
constexpr double kRounding = 1e-12;

// Links by one of their ends, in CSR form.
struct LinksAt {
  std::vector<std::size_t> begin;
  std::vector<std::int32_t> links;

  LinksAt(const ClusterView& cluster, bool heads) : begin(cluster.vertices().size() + 1, 0) {
    const auto end_of = [heads](const Link& link) { return (heads ? link.to : link.from).index(); };
    for (const Link& link : cluster.links()) ++begin[end_of(link) + 1];
    for (std::size_t v = 1; v < begin.size(); ++v) begin[v] += begin[v - 1];
    links.resize(cluster.links().size());
    auto next = begin;
    for (std::size_t l = 0; l < links.size(); ++l)
      links[next[end_of(cluster.links()[l])]++] = static_cast<std::int32_t>(l);
  }
};

// Number of links between the nearest device and each vertex, by vertex.
std::vector<std::int32_t> distances(const ClusterView& cluster, const LinksAt& out) {
  std::vector<std::int32_t> distance(cluster.vertices().size(), -1);
  std::vector<std::size_t> reached;
  for (const Device& device : cluster.devices()) {
    distance[device.vertex.index()] = 0;
    reached.push_back(device.vertex.index());
  }
  for (std::size_t head = 0; head < reached.size(); ++head) {
    const std::size_t at = reached[head];
    for (std::size_t i = out.begin[at]; i < out.begin[at + 1]; ++i) {
      const auto to = cluster.links()[static_cast<std::size_t>(out.links[i])].to.index();
      if (distance[to] >= 0) continue;
      distance[to] = distance[at] + 1;
      reached.push_back(to);
    }
  }
  return distance;
}

}  // namespace

std::vector<LinkRole> link_roles(const ClusterView& cluster, const Communicators& communicators,
                                 const CommunicatorForms& forms, const std::vector<bool>& special,
                                 const std::vector<bool>& left_out) {
  const auto links = cluster.links();
  std::vector<LinkRole> role(links.size(), LinkRole::kUnused);
  std::vector<double> of_feeders(links.size(), 0);
  std::vector<double> of_drains(links.size(), 0);
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    if (!left_out.empty() && left_out[c]) continue;
    for (const LinkUse& use : forms.uses(c)) {
      const std::size_t l = forms.link_of(c, use).index();
      role[l] = LinkRole::kNeeded;
      of_feeders[l] = std::max(of_feeders[l], use.of_feeders);
      of_drains[l] = std::max(of_drains[l], use.of_drains);
    }
  }
  for (std::size_t l = 0; l < special.size(); ++l) {
    if (special[l]) role[l] = LinkRole::kNeeded;
  }

  const LinksAt out(cluster, false);
  const LinksAt in(cluster, true);
  const auto capacity_of = [&](const LinksAt& at, VertexId vertex, std::size_t without) {
    double sum = 0;
    for (std::size_t i = at.begin[vertex.index()]; i < at.begin[vertex.index() + 1]; ++i) {
      const auto other = static_cast<std::size_t>(at.links[i]);
      if (other == without || role[other] == LinkRole::kUnused) continue;
      if (role[other] == LinkRole::kCovered || (!special.empty() && special[other]))
        return std::numeric_limits<double>::infinity();
      sum += links[other].bandwidth.in_base();
    }
    return sum;
  };

  // From the top of the fabric down, so that the links that cover a link are still there.
  const auto distance = distances(cluster, out);
  std::vector<std::pair<std::int32_t, std::int32_t>> order;
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (role[l] != LinkRole::kNeeded || (!special.empty() && special[l])) continue;
    const std::int32_t height =
        std::min(distance[links[l].from.index()], distance[links[l].to.index()]);
    if (height > 0) order.emplace_back(-height, static_cast<std::int32_t>(l));
  }
  std::ranges::sort(order);
  for (const auto& [height, index] : order) {
    const auto l = static_cast<std::size_t>(index);
    const auto opposite = opposite_of(cluster, LinkId{index});
    const std::size_t without = opposite ? opposite->index() : links.size();
    const double capacity = links[l].bandwidth.in_base() * (1 + kRounding);
    if (of_feeders[l] * capacity_of(in, links[l].from, without) <= capacity ||
        of_drains[l] * capacity_of(out, links[l].to, without) <= capacity)
      role[l] = LinkRole::kCovered;
  }
  return role;
}

}  // namespace foreshard::sim
