/// \file
/// The cluster resource view (R4.3): devices, NICs, switches and the directed links between them,
/// as a Boost.Graph. It hides how a cluster is wired; every device has its own type, every link its
/// own bandwidth, latency and state. Built link by link (cluster_builder.h) by node and fabric
/// builders, which read YAML (cluster_config.h).
///
/// **Routes** are shortest paths by this metric, over links that are up:
///
///     NVLink 1, between switches `Link::hops`, PCIe (and NVLink to a CPU) 100, between sockets
///     1,000, a host's port 100,000
///
/// so that NVLink is preferred to PCIe, PCIe to crossing sockets, and all of these to leaving the
/// host; a device leaves by the NIC that is nearest to it, however many switches lie behind. A path
/// never passes through a device, and never through a host that is neither its source nor its
/// target: hosts do not forward. `Routing` may widen or narrow this between switches.
///
/// **Host memory** (`host_route()`) lies behind the socket that is nearest to the device, by the
/// same metric (ties: the one added first). Where the host says how fast its memory is, a link of
/// its own leads from each socket to it, which what is read and what is written share.
///
/// **Relays** over NVLink are one exception: where the GPUs of a node have links of their own (a
/// mesh) but two of them none in common, a GPU with links to both passes on what they send each
/// other, the one whose slower link is the fastest (ties: the first). Such a route passes one
/// device of the host. Source: NCCL 2.28 (src/graph/paths.cc: PATH_NVB). Not modelled: NCCL takes
/// only GPUs of the communicator as relays.
///
/// **PXN** (`Pxn`) is the other: where the sender's NIC is on another rail than the receiver's, the
/// flow first goes over NVLink to a GPU of the sender's host whose own NIC is on the receiver's
/// rail, and leaves by that NIC. Such a route passes exactly one device, of the sender's host. A
/// host without such a GPU sends as without PXN; a GPU that a CPU socket separates from its NIC
/// (but for a CPU joined to it by NVLink) passes on only what has no other way. (The rail of a NIC
/// is its place among those of its host; that of a device, of the NIC that is nearest to it.)
/// Source: NCCL 2.28 (src/graph/paths.cc, src/graph/search.cc: NCCL_P2P_PXN_LEVEL=2, which is for
/// sends and receives alone; channels of rings and trees keep the NICs of their graph).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"

#include "topology/device_type.h"
#include "topology/transport.h"

namespace foreshard {

using DeviceId = Id<struct DeviceTag>;
using DeviceTypeId = Id<struct DeviceTypeTag>;
using LinkId = Id<struct LinkTag>;      ///< One direction of one cable or bus.
using VertexId = Id<struct VertexTag>;  ///< Anything that links end at.

enum class VertexKind : std::uint8_t {
  kDevice,
  kNvSwitch,
  kPcieSwitch,
  kSocket,
  kNic,
  kSwitch,
  kMemory  ///< Of a socket.
};
enum class LinkKind : std::uint8_t { kNvLink, kPcie, kSocket, kNetwork, kMemory };

struct Vertex {
  VertexKind kind = VertexKind::kDevice;
  std::string name;        ///< For example "node3/gpu5", "leaf2", "spine0".
  std::int32_t node = -1;  ///< Index of the node (host) it is in; -1 outside of any.
  DeviceId device;         ///< Of a kDevice.
};

struct Link {
  VertexId from;
  VertexId to;
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;  ///< Payload rate that a long transfer reaches. Invariant: > 0.
  Seconds latency;           ///< Of a message's first byte. Invariant: >= 0.
  bool up = true;
  /// Bandwidth over the nominal rate, which is what libraries read from the hardware. Invariant: >
  /// 0.
  double efficiency = 1;

  BytesPerSecond nominal() const { return bandwidth / efficiency; }
  /// Between switches: how many hops it counts as when routes are compared. More than 1 for the
  /// global cables of dragonflies, so that one of them and two local ones beat two of them.
  /// Invariant: >= 1.
  std::int32_t hops = 1;
};

/// What the machine around some devices costs, whatever framework drives them.
struct Host {
  Seconds launch_time{};  ///< Of the host thread, to launch one kernel. Invariant: >= 0.
  Transport transport{};  ///< Of its network adapters.
  double speed = 1;       ///< Of the host thread, as HostConfig::speed. Invariant: > 0.

  /// What it takes to launch a kernel for which a framework does what takes `host_time` on a host
  /// of speed 1.
  Seconds launching(Seconds host_time) const { return launch_time + host_time / speed; }
};

struct Device {
  DeviceTypeId type;
  VertexId vertex;
  std::int32_t node = 0;
  /// Every kernel takes 1 / speed of its type's time (`degraded:` in the cluster file): what a
  /// power or thermal limit, or a bad unit, leaves. Invariant: > 0.
  double speed = 1;
  bool up = true;  ///< Whether it works (`down:`); if not, its links are down as well.
};

/// A flow's way from one device to another: which part of it crosses each link.
struct RoutedLink {
  LinkId link;
  double share = 1;  ///< In (0, 1]. Less than 1 where equal-cost paths share the flow.
  bool operator==(const RoutedLink&) const = default;
};
struct Route {
  std::vector<RoutedLink> links;  ///< Ascending LinkId. Empty only from a device to itself.
  Seconds latency;                ///< Sum along one path (the longest, if they differ).
  LinkKind widest_kind = LinkKind::kNvLink;  ///< kNetwork if any link of it is, else kSocket, ...
  /// Routing::kAdaptive: the links and shares of the flow while queues are even, and its latency
  /// then. Empty where they are those of `links`.
  std::vector<RoutedLink> minimal{};
  Seconds minimal_latency{};

  /// The links of a flow of which the part `detour` is spread as `links`, the rest as `minimal`.
  /// \pre 0 <= detour <= 1
  std::vector<RoutedLink> taken(double detour) const;
};

/// A way between a device and the memory of its host.
enum class HostWay : std::uint8_t {
  kToHost,    ///< The device's data, written to host memory.
  kFromHost,  ///< Read from host memory to the device.
  kInHost,    ///< What the device's CPU socket reads and writes in its memory.
};

/// Which paths between two switches a flow takes. Paths outside of the fabric do not depend on it.
enum class Routing : std::uint8_t {
  /// Equal-cost shortest paths carry equal parts of every flow: equal per path, not per hop, so
  /// that three cables of which two lead to the same switch carry a third each.
  kSpread,
  kEcmpHash,  ///< Each flow takes one of them, chosen by a hash of (seed, from, to, flow).
  /// Equal spread over the shortest *legal* paths: first up, then down, never up again; such routes
  /// cannot deadlock. Up is away from the switches that have NICs where that orders every cable and
  /// joins all of them (a Clos: the same as kSpread); else towards the root of a breadth-first
  /// tree, ties by VertexId. Source: Schroeder et al., "Autonet: a high-speed, self-configuring
  /// local area network using point-to-point links", IEEE J. Sel. Areas Commun. 9(8), 1991.
  kUpDown,
  /// Minimal ways (as kSpread) while queues are even (Route::minimal); as far as they are not, an
  /// ideal spread over minimal and non-minimal ways: parts in inverse proportion to the length of a
  /// way, the point at which UGAL's products of queue and length are equal. How large a part of a
  /// flow is spread so, its collective decides by what all its flows put on the links (LoadSum).
  ///   Dragonflies: between groups, the direct way (1 global hop) and one through each other group
  ///   (2 global hops): of g groups, 2/g and 1/g each; over all cables between two groups equally.
  ///   Tori: in a dimension of size k with the target d <= k/2 steps away, (k-d)/k go the short way
  ///   round and d/k the long one, dimensions independently.
  ///   Any other fabric: as kSpread. A way that has no working path is left out and its part shared
  ///   out; without any way left, as kSpread.
  /// Source: Singh, "Load-balanced routing in interconnection networks", PhD thesis, Stanford 2005
  /// (UGAL; GOAL's choice of direction); Kim et al., "Technology-driven, highly-scalable dragonfly
  /// topology", ISCA 2008.
  kAdaptive,
};

/// Which messages reach a NIC of another rail over NVLink.
enum class Pxn : std::uint8_t {
  kNever,
  kPeers,   ///< Sends and receives, all-to-alls among them: peer_route().
  kAlways,  ///< All messages.
};

class ClusterView {
 public:
  class Builder;
  ~ClusterView();
  ClusterView(ClusterView&&) noexcept;
  ClusterView& operator=(ClusterView&&) noexcept;

  const std::string& name() const;
  std::span<const Device> devices() const;
  std::span<const Link> links() const;
  std::span<const Vertex> vertices() const;
  std::span<const DeviceType> device_types() const;
  const DeviceType& type_of(DeviceId device) const;
  std::int32_t node_count() const;
  const Host& host(std::int32_t node) const;
  Routing routing() const;
  std::uint64_t seed() const;  ///< For kEcmpHash.
  /// Its switches add up what passes through them (SHARP).
  bool reduces_in_network() const;
  bool pxn() const;  ///< Whether all messages take PXN.

  /// The route of a flow. `flow` tells flows between the same devices apart (kEcmpHash).
  /// Cost: a search of both hosts (tens of vertices) the first time that a device is asked for; of
  /// the fabric's switches the first time that a switch is entered, but nothing of the kind on
  /// intact tori, meshes and dragonflies; then time proportional to the links of the route
  /// (adaptive: of all its ways). Not thread-safe on one object.
  /// \return kInfeasible if there is no path; the message names both devices and what is down.
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;
  /// The route of a send to its receive, which PXN is for.
  /// \return As route.
  Result<Route> peer_route(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;
  /// Between a device and the memory of the socket that is nearest to it. Equal paths within the
  /// host share the flow. Cost: as `route` within a host.
  /// \return kInfeasible where no socket can be reached or, of kInHost, the host does not say how
  ///     fast its memory is.
  Result<Route> host_route(DeviceId device, HostWay way) const;

 private:
  struct State;
  explicit ClusterView(std::unique_ptr<State> state);
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow, bool peers) const;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard
