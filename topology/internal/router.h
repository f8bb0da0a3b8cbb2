/// \file
/// Routes through a whole cluster, put together from the shortest paths of its domains:
///
///     between hosts   source host ... port -> fabric ... -> port ... target host
///     within a host   the host's own links; only if they do not connect the two, as between hosts
///     host memory     the host's own links to the nearest socket, and that to its memory
///     PXN             within the source host by NVLink to another device, from there between hosts
///     relay           within the host by NVLink to another device, and on by NVLink from there
///
/// Without PXN, relays and non-minimal routing the result is the shortest path of the whole graph
/// under the rules of cluster_view.h; a test compares it with an exhaustive search.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topology/cluster_view.h"
#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {

/// Metric of a link by the table in cluster_view.h.
Metric link_metric(const Link& link, std::span<const Vertex> vertices);

class Router {
 public:
  /// The spans and the shape must stay valid.
  Router(std::span<const Vertex> vertices, std::span<const Link> links,
         std::span<const Device> devices, std::int32_t nodes, Routing routing, bool nvlink_relays,
         const FabricShape& shape);

  /// \param choice  position in [0, 1) of the one path among all paths; empty: spread over all.
  /// \param pxn     whether the flow may use PXN.
  /// \return nothing if no path exists.
  /// \pre from != to
  std::optional<Route> route(DeviceId from, DeviceId to, std::optional<double> choice, bool pxn);
  /// The route between a device and the memory of its nearest socket.
  /// \return nothing if there is no such way.
  std::optional<Route> host_route(DeviceId device, HostWay way);

 private:
  /// A link between a host and the fabric (or another host), and the way to it inside the host.
  struct Port {
    LinkId link;
    std::int32_t inside = 0;  ///< Local vertex of the host.
    VertexId outside;
    Metric metric = 0;  ///< Metric from or to the device, this link included.
    double paths = 0;
    Seconds latency;
  };
  struct Reach {  ///< The ports that one device can reach, in one direction.
    Search search;
    std::vector<Port> ports;          ///< Ascending metric.
    std::vector<std::int32_t> rails;  ///< Rails of the nearest ports, ascending.
    /// Outward: whether a socket, reached over PCIe, lies before the nearest port.
    bool behind_socket = false;
  };
  struct Passage;  ///< One way between two devices: a port out, a port in, the fabric between.

  std::size_t domain_of(VertexId vertex) const;
  const Domain& domain(std::size_t index);
  const Reach& reach(DeviceId device, bool inbound);
  std::optional<VertexId> nearest_socket(DeviceId device, bool inbound);
  /// \param adaptive  the paths of kAdaptive while queues are uneven.
  FabricPaths& fabric_paths(bool adaptive);
  FabricGraph fabric_graph() const;
  std::unique_ptr<FabricPaths> make_fabric_paths(bool adaptive) const;
  bool is_behind_socket(DeviceId device, const Reach& reach);
  std::span<const std::int32_t> rails(DeviceId device, bool inbound);
  /// The PXN relay: the device that the flow goes through first. Nothing if the flow needs none or
  /// there is none.
  /// \param any  also take a device that a socket separates from its NIC.
  std::optional<DeviceId> relay(DeviceId from, DeviceId to, bool any);
  std::optional<Route> over_relay(DeviceId from, DeviceId to, std::optional<double> choice,
                                  bool any, bool adaptive);
  /// A route that leaves the host.
  std::optional<Route> outside(DeviceId from, DeviceId to, std::optional<double> choice, bool pxn,
                               bool adaptive);
  /// The route between two devices of a host that NVLink does not join: through the device with the
  /// fastest direct NVLinks to both. Nothing if no device has links to both. Ties: the first.
  std::optional<Route> relayed(DeviceId from, DeviceId to);
  std::optional<Route> within(DeviceId from, DeviceId to, std::optional<double> choice);
  std::optional<Route> between(DeviceId from, DeviceId to, std::optional<double> choice,
                               bool adaptive);
  Route finish(std::vector<RoutedLink> links, Seconds latency) const;

  std::span<const Vertex> vertices_;
  std::span<const Link> links_;
  std::span<const Device> devices_;
  std::size_t fabric_ = 0;           ///< Domain of the fabric; the domains before it are hosts.
  std::vector<std::int32_t> local_;  ///< vertex -> index in its domain.
  std::vector<std::int32_t> rail_;   ///< NIC vertex -> index among its host's NICs; else -1.
  std::vector<std::vector<VertexId>> members_;    ///< domain -> vertices.
  std::vector<std::vector<LinkId>> inner_links_;  ///< domain -> links inside it that are up.
  std::vector<std::vector<LinkId>> out_ports_;    ///< host -> links that leave it.
  std::vector<std::vector<LinkId>> in_ports_;
  std::vector<std::optional<Domain>> domains_;  ///< Made when first needed.
  std::vector<std::optional<Reach>> outward_;   ///< device -> ports; made when first needed.
  std::vector<std::optional<Reach>> inward_;
  std::vector<std::vector<DeviceId>> devices_of_;  ///< host -> devices.
  std::unique_ptr<FabricPaths> fabric_paths_;      ///< Made when first needed.
  std::unique_ptr<FabricPaths> adaptive_paths_;    ///< Made when first needed.
  Routing routing_ = Routing::kSpread;
  bool nvlink_relays_ = false;
  const FabricShape* shape_ = nullptr;
};

}  // namespace foreshard::internal
