/// \file
/// The cluster resource view (R4.3): devices, NICs, switches and the directed links between them,
/// as a Boost.Graph. It hides how a cluster is wired; every device has its own type, every link its
/// own bandwidth, latency and state. Node and fabric builders, which read YAML (cluster_config.h),
/// build it link by link (cluster_builder.h).
///
/// **Routes** are shortest paths by this metric, over links that are up:
///
///     NVLink 1, between switches `Link::hops`, PCIe (and NVLink to a CPU) 100, between sockets
///     1,000, a host's port 100,000
///
/// so that NVLink is preferred to PCIe, PCIe to crossing sockets, and all of these to leaving the
/// host; a device sends through its nearest NIC, however many switches lie behind that NIC. A path
/// never passes through a device, and never through a host that is neither its source nor its
/// target: hosts do not forward. Between switches, `Routing` may allow more or fewer paths than the
/// shortest ones.
///
/// **Host memory** (`host_route()`) is reached through the socket that is nearest to the device, by
/// the same metric (ties: the socket added first). Where the node gives the rate of its memory,
/// each socket has an extra link to its memory, which reads and writes share.
///
/// **Relays** over NVLink are one exception. In a node whose GPUs form an NVLink mesh, two GPUs
/// without a common link send to each other through a GPU that has links to both: the one whose
/// slower link is the fastest (ties: the first). Such a route passes one device of the host.
/// Source: NCCL 2.28 (src/graph/paths.cc: PATH_NVB). Not modelled: NCCL takes only GPUs of the
/// communicator as relays.
///
/// **PXN** (`Pxn`) is the other exception: where the sender's NIC is on another rail than the
/// receiver's, the flow first goes over NVLink to a GPU of the sender's host whose own NIC is on
/// the receiver's rail, and leaves by that NIC. Such a route passes exactly one device, of the
/// sender's host. A host without such a GPU sends as without PXN. A GPU that a CPU socket separates
/// from its NIC (unless NVLink joins the GPU to that CPU) relays only flows that have no other way.
/// (The rail of a NIC is its index among the NICs of its host; the rail of a device is the rail of
/// its nearest NIC.)
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
  kMemory  ///< Memory of one socket.
};
enum class LinkKind : std::uint8_t { kNvLink, kPcie, kSocket, kNetwork, kMemory };

struct Vertex {
  VertexKind kind = VertexKind::kDevice;
  std::string name;        ///< Examples: "node3/gpu5", "pod0/leaf2", "spine0".
  std::int32_t node = -1;  ///< Index of the node (host) it is in; -1 outside of any.
  DeviceId device;         ///< The device of a kDevice; else invalid.
};

struct Link {
  VertexId from;
  VertexId to;
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;  ///< Payload rate that a long transfer reaches. Invariant: > 0.
  Seconds latency;           ///< Latency of a message's first byte. Invariant: >= 0.
  bool up = true;
  /// Bandwidth / nominal rate; libraries read the nominal rate from the hardware. Invariant: > 0.
  double efficiency = 1;

  BytesPerSecond nominal() const { return bandwidth / efficiency; }
  /// For a link between switches: the number of hops it counts as when routes are compared. More
  /// than 1 for the global cables of dragonflies, so that one global and two local cables beat two
  /// global cables.
  /// Invariant: >= 1.
  std::int32_t hops = 1;
};

/// The host of some devices: its costs, whatever framework drives the devices.
struct Host {
  Seconds launch_time{};  ///< Time of the host thread to launch one kernel. Invariant: >= 0.
  Transport transport{};  ///< How its network adapters are driven.
  double speed = 1;       ///< Speed of the host thread: HostConfig::speed. Invariant: > 0.

  /// Time to launch a kernel whose framework work takes `host_time` on a host of speed 1.
  Seconds launching(Seconds host_time) const { return launch_time + host_time / speed; }
};

struct Device {
  DeviceTypeId type;
  VertexId vertex;
  std::int32_t node = 0;
  /// Every kernel takes 1 / speed times as long as on the device's type (`degraded:` in the cluster
  /// file), for example under a power or thermal limit, or on a bad unit. Invariant: > 0.
  double speed = 1;
  bool up = true;  ///< Whether it works (`down:`); if not, its links are down as well.
};

/// A link of a route, with the share of the flow that crosses it.
struct RoutedLink {
  LinkId link;
  double share = 1;  ///< Range (0, 1]; below 1 where equal-cost paths share the flow.
  bool operator==(const RoutedLink&) const = default;
};
/// The route of a flow from one device to another.
struct Route {
  std::vector<RoutedLink> links;  ///< Ascending LinkId. Empty only from a device to itself.
  Seconds latency;                ///< Sum along one path (the longest, if they differ).
  /// Highest kind among its links, in the order of the enum: kNetwork if any link is, else kSocket,
  /// ... (kMemory on routes to host memory).
  LinkKind widest_kind = LinkKind::kNvLink;
  /// Routing::kAdaptive: the links and shares of the flow while queues are even, and its latency in
  /// that case. Empty where they equal `links`.
  std::vector<RoutedLink> minimal{};
  Seconds minimal_latency{};

  /// The links of a flow whose part `detour` is spread as in `links`, and the rest as in `minimal`.
  /// \pre 0 <= detour <= 1
  std::vector<RoutedLink> taken(double detour) const;
};

/// The direction of a transfer between a device and the memory of its host.
enum class HostWay : std::uint8_t {
  kToHost,    ///< The device's data, written to host memory.
  kFromHost,  ///< Read from host memory to the device.
  kInHost,    ///< Reads and writes of the device's CPU socket in its memory.
};

/// Which paths between two switches a flow takes. Paths outside of the fabric do not depend on it.
enum class Routing : std::uint8_t {
  /// Equal-cost shortest paths carry equal parts of every flow: equal per path, not per hop. Three
  /// cables, two of which lead to the same switch, thus carry a third each.
  kSpread,
  kEcmpHash,  ///< Each flow takes one equal-cost path, by a hash of (seed, from, to, flow).
  /// Equal spread over the shortest *legal* paths: first up, then down, never up again; such routes
  /// cannot deadlock. Up is away from the switches that have NICs, if that orders every cable and
  /// legal paths then join all these switches (a Clos: the same as kSpread). Otherwise up is
  /// towards the root of a breadth-first tree, ties by VertexId. Source: Schroeder et al.,
  /// "Autonet: a high-speed, self-configuring local area network using point-to-point links", IEEE
  /// J. Sel. Areas Commun. 9(8), 1991.
  kUpDown,
  /// Minimal paths (as kSpread) while queues are even (Route::minimal). As far as queues are
  /// uneven, an ideal spread over minimal and non-minimal paths: the share of a path is inversely
  /// proportional to its length, the point at which UGAL's products of queue and length are equal.
  /// The collective decides which part of its flows is spread like this, by the load that all its
  /// flows put on the links (LoadSum).
  ///   Dragonflies: between groups, the direct path (1 global hop) and one path through each other
  ///   group (2 global hops). With g groups, these carry 2/g and 1/g each. A path through another
  ///   group uses all cables between two groups equally.
  ///   Tori: in a dimension of size k, with the target d <= k/2 steps away, (k-d)/k of the flow go
  ///   the short way round and d/k the long way; dimensions are independent.
  ///   Any other fabric: as kSpread. Broken paths are left out, and the others take over their
  ///   share; if none is left, as kSpread.
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
  std::uint64_t seed() const;  ///< Seed of kEcmpHash.
  /// Whether the network's switches reduce data in flight (SHARP).
  bool reduces_in_network() const;
  bool pxn() const;  ///< Whether all messages take PXN.

  /// The route of a flow. `flow` tells flows between the same devices apart (kEcmpHash).
  /// Cost: the first call for a device searches its host (tens of vertices), and the first route
  /// that enters the fabric by a switch searches the fabric from there (intact tori, meshes and
  /// dragonflies need no such search). After that, time is proportional to the links of the route
  /// (adaptive: of all its paths). Not thread-safe on one object.
  /// \return kInfeasible if there is no path; the message names both devices and what is down.
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;
  /// The route of a send to its receive, a message that Pxn::kPeers applies to.
  /// \return as `route`.
  Result<Route> peer_route(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;
  /// The route between a device and the memory of its nearest socket. Equal paths within the host
  /// share the flow. Cost: as `route` within a host.
  /// \return kInfeasible where no socket can be reached or, for kInHost, where the node does not
  ///     give the rate of its memory.
  Result<Route> host_route(DeviceId device, HostWay way) const;

 private:
  struct State;
  explicit ClusterView(std::unique_ptr<State> state);
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow, bool peers) const;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard
