#include "topology/internal/router.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace foreshard::internal {
namespace {

/// Upper bound of what the searches of the fabric keep in memory; beyond it all are forgotten.
constexpr std::size_t kMaxFabricSearchBytes = std::size_t{256} << 20;

}  // namespace

Metric link_metric(const Link& link, std::span<const Vertex> vertices) {
  switch (link.kind) {
    case LinkKind::kNvLink:
      return 1;
    case LinkKind::kPcie:
      return 100;
    case LinkKind::kSocket:
      return 1000;
    case LinkKind::kNetwork:
      break;
  }
  const bool in_fabric = vertices[link.from.index()].node < 0 && vertices[link.to.index()].node < 0;
  return in_fabric ? link.hops : 100'000;
}

struct Router::Passage {
  const Port* out = nullptr;
  const Port* in = nullptr;
  double paths = 0;
};

Router::Router(std::span<const Vertex> vertices, std::span<const Link> links,
               std::span<const Device> devices, std::int32_t nodes)
    : vertices_(vertices),
      links_(links),
      devices_(devices),
      fabric_(static_cast<std::size_t>(nodes)) {
  members_.resize(fabric_ + 1);
  inner_links_.resize(fabric_ + 1);
  out_ports_.resize(fabric_);
  in_ports_.resize(fabric_);
  domains_.resize(fabric_ + 1);
  outward_.resize(devices.size());
  inward_.resize(devices.size());
  local_.resize(vertices.size());
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    auto& members = members_[domain_of(VertexId(static_cast<std::int64_t>(i)))];
    local_[i] = static_cast<std::int32_t>(members.size());
    members.emplace_back(static_cast<std::int64_t>(i));
  }
  fabric_searches_.resize(members_[fabric_].size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!links[i].up) continue;
    const LinkId id(static_cast<std::int64_t>(i));
    const auto from = domain_of(links[i].from);
    const auto to = domain_of(links[i].to);
    if (from == to) {
      inner_links_[from].push_back(id);
      continue;
    }
    if (from != fabric_) out_ports_[from].push_back(id);
    if (to != fabric_) in_ports_[to].push_back(id);
  }
}

std::size_t Router::domain_of(VertexId vertex) const {
  const auto node = vertices_[vertex.index()].node;
  return node < 0 ? fabric_ : static_cast<std::size_t>(node);
}

const Domain& Router::domain(std::size_t index) {
  auto& slot = domains_[index];
  if (!slot) {
    std::vector<bool> passable;
    passable.reserve(members_[index].size());
    for (const auto vertex : members_[index])
      passable.push_back(vertices_[vertex.index()].kind != VertexKind::kDevice);
    std::vector<Domain::Edge> edges;
    edges.reserve(inner_links_[index].size());
    for (const auto id : inner_links_[index]) {
      const Link& link = links_[id.index()];
      edges.push_back({local_[link.from.index()], local_[link.to.index()], id,
                       link_metric(link, vertices_), link.latency});
    }
    slot.emplace(std::move(passable), std::move(edges));
  }
  return *slot;
}

const Router::Reach& Router::reach(DeviceId device, bool inbound) {
  auto& slot = (inbound ? inward_ : outward_)[device.index()];
  if (slot) return *slot;
  const auto vertex = devices_[device.index()].vertex;
  const auto host = domain_of(vertex);
  const auto start = local_[vertex.index()];
  slot.emplace();
  slot->search = inbound ? domain(host).search_to(start) : domain(host).search_from(start);
  for (const auto id : (inbound ? in_ports_ : out_ports_)[host]) {
    const Link& link = links_[id.index()];
    const auto inside = local_[(inbound ? link.to : link.from).index()];
    const auto at = static_cast<std::size_t>(inside);
    const bool through_device =
        vertices_[members_[host][at].index()].kind == VertexKind::kDevice && inside != start;
    if (slot->search.paths[at] == 0 || through_device) continue;
    slot->ports.push_back({id, inside, inbound ? link.from : link.to,
                           slot->search.distance[at] + link_metric(link, vertices_),
                           slot->search.paths[at], slot->search.latency[at] + link.latency});
  }
  std::ranges::stable_sort(slot->ports, {}, &Port::metric);
  return *slot;
}

const Search& Router::fabric_search(std::int32_t start) {
  auto& slot = fabric_searches_[static_cast<std::size_t>(start)];
  if (slot) return *slot;
  constexpr std::size_t kBytesPerVertex = sizeof(Metric) + sizeof(double) + sizeof(Seconds);
  if ((fabric_searches_held_ + 1) * fabric_searches_.size() * kBytesPerVertex >
      kMaxFabricSearchBytes) {
    for (auto& search : fabric_searches_) search.reset();
    fabric_searches_held_ = 0;
  }
  ++fabric_searches_held_;
  slot = domain(fabric_).search_from(start);
  return *slot;
}

std::optional<Route> Router::route(DeviceId from, DeviceId to, std::optional<double> choice) {
  if (devices_[from.index()].node == devices_[to.index()].node)
    if (auto inside = within(from, to, choice)) return inside;
  return between(from, to, choice);
}

std::optional<Route> Router::within(DeviceId from, DeviceId to, std::optional<double> choice) {
  const auto host = domain_of(devices_[from.index()].vertex);
  const auto target = local_[devices_[to.index()].vertex.index()];
  const Search& search = reach(from, false).search;
  const double paths = search.paths[static_cast<std::size_t>(target)];
  if (paths == 0) return std::nullopt;
  std::vector<RoutedLink> links;
  if (choice) {
    domain(host).pick(search, false, target, std::floor(*choice * paths), links);
  } else {
    domain(host).spread(search, false, target, 1.0, links);
  }
  return finish(std::move(links), search.latency[static_cast<std::size_t>(target)]);
}

std::optional<Route> Router::between(DeviceId from, DeviceId to, std::optional<double> choice) {
  const Reach& source = reach(from, false);
  const Reach& target = reach(to, true);
  if (source.ports.empty() || target.ports.empty()) return std::nullopt;

  // Both lists ascend and the fabric adds nothing negative, so the loops may stop at the best.
  Metric best = kUnreachable;
  std::vector<Passage> passages;
  for (const Port& out : source.ports) {
    if (best != kUnreachable && out.metric + target.ports.front().metric > best) break;
    const bool enters_fabric = domain_of(out.outside) == fabric_;
    for (const Port& in : target.ports) {
      if (best != kUnreachable && out.metric + in.metric > best) break;
      Metric metric = out.metric + in.metric;
      double paths = out.paths * in.paths;
      if (!enters_fabric) {  // A cable from host to host is both ports at once.
        if (out.link != in.link) continue;
        metric -= link_metric(links_[out.link.index()], vertices_);
      } else {
        if (domain_of(in.outside) != fabric_) continue;
        const Search& across = fabric_search(local_[out.outside.index()]);
        const auto exit = static_cast<std::size_t>(local_[in.outside.index()]);
        if (across.paths[exit] == 0) continue;
        metric += across.distance[exit];
        paths *= across.paths[exit];
      }
      if (metric > best) continue;
      if (metric < best) passages.clear();
      best = metric;
      passages.push_back({&out, &in, paths});
    }
  }
  if (passages.empty()) return std::nullopt;

  double total = 0;
  for (const auto& passage : passages) total += passage.paths;
  double chosen = choice ? std::floor(*choice * total) : 0;
  Domain const& source_host = domain(domain_of(devices_[from.index()].vertex));
  Domain const& target_host = domain(domain_of(devices_[to.index()].vertex));
  std::vector<RoutedLink> links;
  Seconds latency;
  for (const auto& [out, in, paths] : passages) {
    const bool direct = out->link == in->link;
    if (choice && chosen >= paths) {
      chosen -= paths;
      continue;
    }
    const double share = choice ? 1.0 : paths / total;
    links.push_back({out->link, share});
    if (!direct) links.push_back({in->link, share});
    Seconds way = out->latency + in->latency;
    if (direct) way -= links_[out->link.index()].latency;
    const auto enter = local_[out->outside.index()];
    const auto exit = local_[in->outside.index()];
    const Search* across = direct ? nullptr : &fabric_search(enter);
    if (across != nullptr) way += across->latency[static_cast<std::size_t>(exit)];
    latency = std::max(latency, way);
    if (!choice) {
      source_host.spread(source.search, false, out->inside, share, links);
      target_host.spread(target.search, true, in->inside, share, links);
      if (across != nullptr) domain(fabric_).spread(*across, false, exit, share, links);
      continue;
    }
    // The index of the path, digit by digit: way out, way in, way across.
    const double way_out = std::fmod(chosen, out->paths);
    chosen = std::floor(chosen / out->paths);
    const double way_in = std::fmod(chosen, in->paths);
    chosen = std::floor(chosen / in->paths);
    source_host.pick(source.search, false, out->inside, way_out, links);
    target_host.pick(target.search, true, in->inside, way_in, links);
    if (across != nullptr) domain(fabric_).pick(*across, false, exit, chosen, links);
    break;
  }
  return finish(std::move(links), latency);
}

Route Router::finish(std::vector<RoutedLink> links, Seconds latency) const {
  std::ranges::sort(links, {}, &RoutedLink::link);
  Route route;
  route.latency = latency;
  for (const auto& part : links) {
    if (!route.links.empty() && route.links.back().link == part.link) {
      route.links.back().share += part.share;
    } else {
      route.links.push_back(part);
    }
    route.widest_kind = std::max(route.widest_kind, links_[part.link.index()].kind);
  }
  return route;
}

}  // namespace foreshard::internal
