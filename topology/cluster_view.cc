#include "topology/cluster_view.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/caller.h"
#include "base/check.h"
#include "base/hash.h"

#include "topology/cluster_builder.h"
#include "topology/fabric_shape.h"
#include "topology/internal/router.h"

namespace foreshard::internal {
namespace {

// Numbers that look random and are the same on every machine.

// A number in [0, 1) that depends on all of `keys` and their order.
constexpr double unit_hash(std::initializer_list<std::uint64_t> keys) {
  std::uint64_t state = 0;
  for (const auto key : keys) state = mixed(state ^ key);
  return static_cast<double>(state >> 11) * 0x1p-53;
}

}  // namespace

}  // namespace foreshard::internal

namespace foreshard {

/// What a builder sets, and what a copy takes over.
struct ClusterParts {
  std::string name;
  std::vector<DeviceType> types;
  std::vector<Host> hosts;  ///< One per node.
  std::vector<Device> devices;
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  Routing routing = Routing::kSpread;
  std::uint64_t seed = 0;
  bool reduces_in_network = false;
  Pxn pxn = Pxn::kNever;
  bool nvlink_relays = false;
  FabricShape shape;
};

struct ClusterView::State : ClusterParts {
  std::optional<internal::Router> router;  ///< Made by build().
};

namespace {

constexpr std::size_t kMaxNamedFaults = 6;

// "node0/nic0, leaf1 -> spine0 and 3 more": vertices all of whose links are down, then other
// links.
std::string what_is_down(std::span<const Vertex> vertices, std::span<const Link> links) {
  std::vector<bool> touched(vertices.size(), false);
  std::vector<bool> alive(vertices.size(), false);
  for (const auto& link : links) {
    for (const auto end : {link.from.index(), link.to.index()}) {
      touched[end] = true;
      if (link.up) alive[end] = true;
    }
  }
  const auto dead = [&](std::size_t vertex) { return touched[vertex] && !alive[vertex]; };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (dead(i)) names.push_back(vertices[i].name);
  for (const auto& link : links) {
    if (link.up || dead(link.from.index()) || dead(link.to.index())) continue;
    names.push_back(vertices[link.from.index()].name + " -> " + vertices[link.to.index()].name);
  }
  if (names.empty()) return "nothing is down: the cluster does not connect them";
  std::string text = "down: ";
  for (std::size_t i = 0; i < names.size() && i < kMaxNamedFaults; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamedFaults)
    text += " and " + std::to_string(names.size() - kMaxNamedFaults) + " more";
  return text;
}

}  // namespace

ClusterView::ClusterView(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClusterView::~ClusterView() = default;
ClusterView::ClusterView(ClusterView&&) noexcept = default;
ClusterView& ClusterView::operator=(ClusterView&&) noexcept = default;

const std::string& ClusterView::name() const {
  return state_->name;
}
std::span<const Device> ClusterView::devices() const {
  return state_->devices;
}
std::span<const Link> ClusterView::links() const {
  return state_->links;
}
std::span<const Vertex> ClusterView::vertices() const {
  return state_->vertices;
}
std::span<const DeviceType> ClusterView::device_types() const {
  return state_->types;
}
const DeviceType& ClusterView::type_of(DeviceId device) const {
  return state_->types[state_->devices[device.index()].type.index()];
}
std::int32_t ClusterView::node_count() const {
  return static_cast<std::int32_t>(state_->hosts.size());
}
const Host& ClusterView::host(std::int32_t node) const {
  FORESHARD_CHECK(node >= 0 && node < node_count());
  return state_->hosts[static_cast<std::size_t>(node)];
}
Routing ClusterView::routing() const {
  return state_->routing;
}
std::uint64_t ClusterView::seed() const {
  return state_->seed;
}
bool ClusterView::reduces_in_network() const {
  return state_->reduces_in_network;
}

bool ClusterView::pxn() const {
  return state_->pxn == Pxn::kAlways;
}

std::vector<RoutedLink> Route::taken(double detour) const {
  FORESHARD_CHECK(detour >= 0 && detour <= 1);
  if (minimal.empty()) return links;
  std::map<LinkId, double> shares;
  for (const auto& [link, share] : minimal) shares[link] += (1 - detour) * share;
  for (const auto& [link, share] : links) shares[link] += detour * share;
  std::vector<RoutedLink> both;
  for (const auto& [link, share] : shares)
    if (share > 0) both.push_back({link, share});
  return both;
}

Result<Route> ClusterView::route(DeviceId from, DeviceId to, std::uint64_t flow) const {
  return route(from, to, flow, false);
}
Result<Route> ClusterView::peer_route(DeviceId from, DeviceId to, std::uint64_t flow) const {
  return route(from, to, flow, true);
}

Result<Route> ClusterView::route(DeviceId from, DeviceId to, std::uint64_t flow, bool peers) const {
  FORESHARD_CHECK(from.valid() && from.index() < state_->devices.size());
  FORESHARD_CHECK(to.valid() && to.index() < state_->devices.size());
  if (from == to) return Route{};
  thread_local EndPoll poll;  // an all-to-all of thousands of devices asks for millions of routes
  poll();
  std::optional<double> choice;
  if (state_->routing == Routing::kEcmpHash)
    choice = internal::unit_hash({state_->seed, static_cast<std::uint64_t>(from.value()),
                                  static_cast<std::uint64_t>(to.value()), flow});
  const bool pxn = state_->pxn == Pxn::kAlways || (peers && state_->pxn == Pxn::kPeers);
  if (auto route = state_->router->route(from, to, choice, pxn)) return *std::move(route);
  const auto name = [this](DeviceId device) {
    return state_->vertices[state_->devices[device.index()].vertex.index()].name;
  };
  return Error{Error::Code::kInfeasible, "no route from " + name(from) + " to " + name(to) + "; " +
                                             what_is_down(state_->vertices, state_->links)};
}

Result<Route> ClusterView::host_route(DeviceId device, HostWay way) const {
  FORESHARD_CHECK(device.valid() && device.index() < state_->devices.size());
  if (auto route = state_->router->host_route(device, way)) return *std::move(route);
  const std::string name = state_->vertices[state_->devices[device.index()].vertex.index()].name;
  if (way == HostWay::kInHost)
    return Error{Error::Code::kInfeasible,
                 "work on the CPU beside " + name +
                     " takes the time of its memory, which the node does not give: add cpu: "
                     "{memory_bandwidth: ...} to the node, what all channels of one socket carry"};
  return Error{
      Error::Code::kInfeasible,
      "no route between " + name +
          " and the memory of its host: the node has no CPU "
          "socket that it reaches (pcie: {sockets: ...}, or cpu: {link: {bandwidth: ...}}); " +
          what_is_down(state_->vertices, state_->links)};
}

ClusterView::Builder::Builder(std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
}
ClusterView::Builder ClusterView::Builder::copy_of(const ClusterView& cluster) {
  Builder copy({});
  static_cast<ClusterParts&>(*copy.state_) = *cluster.state_;
  return copy;
}
ClusterView::Builder::~Builder() = default;
ClusterView::Builder::Builder(Builder&&) noexcept = default;
ClusterView::Builder& ClusterView::Builder::operator=(Builder&&) noexcept = default;

DeviceTypeId ClusterView::Builder::add_device_type(DeviceType type) {
  state_->types.push_back(std::move(type));
  return DeviceTypeId(static_cast<std::int64_t>(state_->types.size()) - 1);
}

std::int32_t ClusterView::Builder::add_node(const Host& host) {
  FORESHARD_CHECK(host.launch_time >= Seconds() && host.speed > 0);
  state_->hosts.push_back(host);
  return static_cast<std::int32_t>(state_->hosts.size()) - 1;
}

VertexId ClusterView::Builder::add_vertex(VertexKind kind, std::string name, std::int32_t node) {
  FORESHARD_CHECK(node < static_cast<std::int32_t>(state_->hosts.size()));
  state_->vertices.push_back({kind, std::move(name), node, DeviceId()});
  return VertexId(static_cast<std::int64_t>(state_->vertices.size()) - 1);
}

DeviceId ClusterView::Builder::add_device(DeviceTypeId type, std::string name, std::int32_t node) {
  FORESHARD_CHECK(node >= 0 && type.valid() && type.index() < state_->types.size());
  const DeviceId id(static_cast<std::int64_t>(state_->devices.size()));
  const VertexId vertex = add_vertex(VertexKind::kDevice, std::move(name), node);
  state_->vertices[vertex.index()].device = id;
  state_->devices.push_back({type, vertex, node});
  return id;
}

LinkId ClusterView::Builder::connect(VertexId a, VertexId b, const DuplexLink& link) {
  const LinkId id =
      add_link({a, b, link.kind, link.bandwidth, link.latency, true, link.efficiency, link.hops});
  add_link({b, a, link.kind, link.bandwidth, link.latency, true, link.efficiency, link.hops});
  return id;
}

LinkId ClusterView::Builder::add_link(const Link& link) {
  FORESHARD_CHECK(link.from.valid() && link.from.index() < state_->vertices.size());
  FORESHARD_CHECK(link.to.valid() && link.to.index() < state_->vertices.size());
  FORESHARD_CHECK(link.from != link.to);
  FORESHARD_CHECK(link.bandwidth > BytesPerSecond() && link.latency >= Seconds());
  FORESHARD_CHECK(link.efficiency > 0);
  FORESHARD_CHECK(link.hops >= 1);
  state_->links.push_back(link);
  return LinkId(static_cast<std::int64_t>(state_->links.size()) - 1);
}

VertexId ClusterView::Builder::vertex_of(DeviceId device) const {
  return state_->devices[device.index()].vertex;
}
std::span<const Vertex> ClusterView::Builder::vertices() const {
  return state_->vertices;
}
std::span<const Link> ClusterView::Builder::links() const {
  return state_->links;
}
void ClusterView::Builder::take_down(LinkId link) {
  state_->links[link.index()].up = false;
}
void ClusterView::Builder::take_down(DeviceId device) {
  state_->devices[device.index()].up = false;
}
void ClusterView::Builder::slow_down(DeviceId device, double factor) {
  FORESHARD_CHECK(factor > 0 && factor <= 1);
  state_->devices[device.index()].speed *= factor;
}

void ClusterView::Builder::set_speed(DeviceId device, double speed) {
  FORESHARD_CHECK(speed > 0);
  state_->devices[device.index()].speed = speed;
}

void ClusterView::Builder::degrade(LinkId link, double factor) {
  FORESHARD_CHECK(factor > 0 && factor <= 1);
  Link& slowed = state_->links[link.index()];
  slowed.bandwidth = factor * slowed.bandwidth;
  slowed.efficiency *= factor;
}
void ClusterView::Builder::set_efficiency(LinkId link, double efficiency) {
  FORESHARD_CHECK(efficiency > 0);
  state_->links[link.index()].efficiency = efficiency;
}
void ClusterView::Builder::set_reduces_in_network(bool reduces) {
  state_->reduces_in_network = reduces;
}
void ClusterView::Builder::set_routing(Routing routing, std::uint64_t seed, Pxn pxn) {
  state_->routing = routing;
  state_->seed = seed;
  state_->pxn = pxn;
}
void ClusterView::Builder::allow_nvlink_relays() {
  state_->nvlink_relays = true;
}
void ClusterView::Builder::set_shape(FabricShape shape) {
  state_->shape = std::move(shape);
}

ClusterView ClusterView::Builder::build() && {
  FORESHARD_CHECK(state_ != nullptr);
  State& state = *state_;
  state.router.emplace(state.vertices, state.links, state.devices,
                       static_cast<std::int32_t>(state.hosts.size()), state.routing,
                       state.nvlink_relays, state.shape);
  return ClusterView(std::move(state_));
}

}  // namespace foreshard
