#include "topology/internal/router.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace foreshard::internal {

namespace {

/// A path inside a host with a smaller metric uses NVLink alone.
constexpr Metric kLeastBesidesNvlink = 100;

}  // namespace

Metric link_metric(const Link& link, std::span<const Vertex> vertices) {
  const auto is_socket = [&](VertexId end) {
    return vertices[end.index()].kind == VertexKind::kSocket;
  };
  switch (link.kind) {
    case LinkKind::kNvLink:  // chip to chip: as PCIe
      return is_socket(link.from) || is_socket(link.to) ? kLeastBesidesNvlink : 1;
    case LinkKind::kPcie:
      return kLeastBesidesNvlink;
    case LinkKind::kMemory:  // leads nowhere else
      return 1;
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
               std::span<const Device> devices, std::int32_t nodes, Routing routing,
               bool nvlink_relays, const FabricShape& shape)
    : vertices_(vertices),
      links_(links),
      devices_(devices),
      fabric_(static_cast<std::size_t>(nodes)),
      devices_of_(fabric_),
      routing_(routing),
      nvlink_relays_(nvlink_relays),
      shape_(&shape) {
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
  rail_.resize(vertices.size(), -1);
  for (std::size_t host = 0; host < fabric_; ++host) {
    std::int32_t rail = 0;
    for (const auto vertex : members_[host])
      if (vertices[vertex.index()].kind == VertexKind::kNic) rail_[vertex.index()] = rail++;
  }
  for (std::size_t i = 0; i < devices.size(); ++i)
    devices_of_[domain_of(devices[i].vertex)].emplace_back(static_cast<std::int64_t>(i));
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
  for (const auto& port : slot->ports) {
    if (port.metric > slot->ports.front().metric) break;
    const auto nic = members_[host][static_cast<std::size_t>(port.inside)];
    slot->rails.push_back(rail_[nic.index()]);
  }
  std::ranges::sort(slot->rails);
  slot->behind_socket = !inbound && is_behind_socket(device, *slot);
  return *slot;
}

bool Router::is_behind_socket(DeviceId device, const Reach& reach) {
  if (reach.ports.empty()) return false;
  const auto host = domain_of(devices_[device.index()].vertex);
  std::vector<RoutedLink> way;
  domain(host).pick(reach.search, false, reach.ports.front().inside, 0, way);
  return std::ranges::any_of(way, [&](const RoutedLink& part) {
    const Link& link = links_[part.link.index()];
    return link.kind == LinkKind::kPcie && link.from != devices_[device.index()].vertex &&
           vertices_[link.to.index()].kind == VertexKind::kSocket;
  });
}

FabricGraph Router::fabric_graph() const {
  FabricGraph graph{.vertices = members_[fabric_].size(), .edges = {}, .has_nics = {}};
  graph.has_nics.resize(graph.vertices, false);
  for (const auto id : inner_links_[fabric_]) {
    const Link& link = links_[id.index()];
    graph.edges.push_back({local_[link.from.index()], local_[link.to.index()], id,
                           link_metric(link, vertices_), link.latency});
  }
  for (const auto& link : links_) {
    const bool from_fabric = domain_of(link.from) == fabric_;
    const bool to_fabric = domain_of(link.to) == fabric_;
    if (from_fabric && to_fabric && !link.up) graph.all_up = false;
    if (from_fabric != to_fabric)
      graph
          .has_nics[static_cast<std::size_t>(local_[(from_fabric ? link.from : link.to).index()])] =
          true;
  }
  return graph;
}

std::unique_ptr<FabricPaths> Router::make_fabric_paths(bool adaptive) const {
  const FabricGraph graph = fabric_graph();
  if (routing_ == Routing::kUpDown) return up_down_paths(graph);
  const auto locals = [&](const std::vector<VertexId>& switches) {
    std::vector<std::int32_t> result;
    result.reserve(switches.size());
    for (const auto vertex : switches) result.push_back(local_[vertex.index()]);
    return result;
  };
  if (adaptive || graph.all_up) {
    if (const auto* grid = std::get_if<SwitchGrid>(shape_))
      return grid_paths(graph, grid->dims, locals(grid->switches), grid->wraps, adaptive);
    if (const auto* dragonfly = std::get_if<SwitchGroups>(shape_)) {
      std::vector<std::vector<std::int32_t>> groups;
      groups.reserve(dragonfly->groups.size());
      for (const auto& group : dragonfly->groups) groups.push_back(locals(group));
      return group_paths(graph, std::move(groups), adaptive);
    }
  }
  return searched_paths(graph);
}

FabricPaths& Router::fabric_paths(bool adaptive) {
  auto& slot = adaptive ? adaptive_paths_ : fabric_paths_;
  if (!slot) slot = make_fabric_paths(adaptive);
  return *slot;
}

std::span<const std::int32_t> Router::rails(DeviceId device, bool inbound) {
  return reach(device, inbound).rails;
}

std::optional<DeviceId> Router::relay(DeviceId from, DeviceId to, bool any) {
  const auto wanted = rails(to, true);
  const auto serves = [&](DeviceId device) {
    return std::ranges::any_of(rails(device, false), [&](std::int32_t rail) {
      return std::ranges::find(wanted, rail) != wanted.end();
    });
  };
  if (wanted.empty() || serves(from)) return std::nullopt;
  // Senders that share their rails take the relays in turn.
  const auto host = domain_of(devices_[from.index()].vertex);
  const std::vector<std::int32_t> own(rails(from, false).begin(), rails(from, false).end());
  std::vector<DeviceId> relays;
  std::size_t turn = 0;
  for (const auto device : devices_of_[host]) {
    if (device < from && std::ranges::equal(rails(device, false), own)) ++turn;
    if (device == from || !serves(device) || (!any && reach(device, false).behind_socket)) continue;
    const auto place = static_cast<std::size_t>(local_[devices_[device.index()].vertex.index()]);
    if (reach(from, false).search.distance[place] < kLeastBesidesNvlink) relays.push_back(device);
  }
  if (relays.empty()) return std::nullopt;
  return relays[turn % relays.size()];
}

std::optional<Route> Router::route(DeviceId from, DeviceId to, std::optional<double> choice,
                                   bool pxn) {
  if (devices_[from.index()].node == devices_[to.index()].node) {
    auto inside = within(from, to, choice);
    if (nvlink_relays_ && (!inside || inside->widest_kind != LinkKind::kNvLink))
      if (auto relayed_one = relayed(from, to)) return relayed_one;
    if (inside) return inside;
  }
  const bool adaptive = routing_ == Routing::kAdaptive;
  auto route = outside(from, to, choice, pxn, adaptive);
  if (!route || !adaptive) return route;
  auto minimal = outside(from, to, choice, pxn, false);
  if (minimal && minimal->links != route->links) {
    route->minimal = std::move(minimal->links);
    route->minimal_latency = minimal->latency;
  }
  return route;
}

std::optional<Route> Router::over_relay(DeviceId from, DeviceId to, std::optional<double> choice,
                                        bool any, bool adaptive) {
  const auto device = relay(from, to, any);
  if (!device) return std::nullopt;
  auto first = within(from, *device, choice);
  auto second = between(*device, to, choice, adaptive);
  if (!first || !second) return std::nullopt;
  second->links.insert(second->links.end(), first->links.begin(), first->links.end());
  return finish(std::move(second->links), first->latency + second->latency);
}

std::optional<Route> Router::outside(DeviceId from, DeviceId to, std::optional<double> choice,
                                     bool pxn, bool adaptive) {
  const bool from_elsewhere = pxn && devices_[from.index()].node != devices_[to.index()].node;
  if (from_elsewhere)
    if (auto route = over_relay(from, to, choice, false, adaptive)) return route;
  auto direct = between(from, to, choice, adaptive);
  return direct || !from_elsewhere ? direct : over_relay(from, to, choice, true, adaptive);
}

std::optional<Route> Router::relayed(DeviceId from, DeviceId to) {
  const auto host = domain_of(devices_[from.index()].vertex);
  std::optional<Route> best;
  BytesPerSecond fastest;
  for (const DeviceId device : devices_of_[host]) {
    if (device == from || device == to) continue;
    auto first = within(from, device, {});
    const auto second = within(device, to, {});
    if (!first || !second || first->links.size() != 1 || second->links.size() != 1) continue;
    const Link& in = links_[first->links.front().link.index()];
    const Link& out = links_[second->links.front().link.index()];
    const BytesPerSecond rate = std::min(in.bandwidth, out.bandwidth);
    if (in.kind != LinkKind::kNvLink || out.kind != LinkKind::kNvLink || !(rate > fastest))
      continue;
    fastest = rate;
    first->links.push_back(second->links.front());
    best = finish(std::move(first->links), first->latency + second->latency);
  }
  return best;
}

std::optional<VertexId> Router::nearest_socket(DeviceId device, bool inbound) {
  const Search& search = reach(device, inbound).search;
  const auto& inside = members_[domain_of(devices_[device.index()].vertex)];
  std::optional<VertexId> nearest;
  Metric least = kUnreachable;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (vertices_[inside[i].index()].kind != VertexKind::kSocket || search.paths[i] == 0 ||
        search.distance[i] >= least)
      continue;
    nearest = inside[i];
    least = search.distance[i];
  }
  return nearest;
}

std::optional<Route> Router::host_route(DeviceId device, HostWay way) {
  const bool inbound = way == HostWay::kFromHost;
  const auto socket = nearest_socket(device, inbound);
  if (!socket) return std::nullopt;
  const auto host = domain_of(devices_[device.index()].vertex);
  const auto place = local_[socket->index()];
  std::vector<RoutedLink> links;
  Seconds latency;
  if (way != HostWay::kInHost) {
    const Search& search = reach(device, inbound).search;
    domain(host).spread(search, inbound, place, 1.0, links);
    latency = search.latency[static_cast<std::size_t>(place)];
  }
  for (const LinkId id : inner_links_[host]) {
    const Link& link = links_[id.index()];
    if (link.kind != LinkKind::kMemory || link.from != *socket) continue;
    links.push_back({id, 1.0});
    latency += link.latency;
  }
  if (links.empty()) return std::nullopt;
  return finish(std::move(links), latency);
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

std::optional<Route> Router::between(DeviceId from, DeviceId to, std::optional<double> choice,
                                     bool adaptive) {
  const Reach& source = reach(from, false);
  const Reach& target = reach(to, true);
  if (source.ports.empty() || target.ports.empty()) return std::nullopt;

  // Both lists ascend and the fabric adds nothing negative, so the loops may stop beyond the best.
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
        const Crossing across =
            fabric_paths(adaptive).measure(local_[out.outside.index()], local_[in.outside.index()]);
        if (across.paths == 0) continue;
        metric += across.distance;
        paths *= across.paths;
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
    if (!direct) way += fabric_paths(adaptive).measure(enter, exit).latency;
    latency = std::max(latency, way);
    if (!choice) {
      source_host.spread(source.search, false, out->inside, share, links);
      target_host.spread(target.search, true, in->inside, share, links);
      if (!direct) fabric_paths(adaptive).spread(enter, exit, share, links);
      continue;
    }
    // The index of the path, digit by digit: way out, way in, way across.
    const double way_out = std::fmod(chosen, out->paths);
    chosen = std::floor(chosen / out->paths);
    const double way_in = std::fmod(chosen, in->paths);
    chosen = std::floor(chosen / in->paths);
    source_host.pick(source.search, false, out->inside, way_out, links);
    target_host.pick(target.search, true, in->inside, way_in, links);
    if (!direct) fabric_paths(adaptive).pick(enter, exit, chosen, links);
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
