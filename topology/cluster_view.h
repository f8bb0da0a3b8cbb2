/// \file
/// The cluster resource view (R4.3): devices, NICs, switches and the directed links between them,
/// as a Boost.Graph. It hides how a cluster is wired; every device has its own type, every link its
/// own bandwidth, latency and state. Built by fabric builders (fabric.h) from YAML (cluster_file.h).
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

namespace foreshard {

using DeviceId = Id<struct DeviceTag>;
using DeviceTypeId = Id<struct DeviceTypeTag>;
using LinkId = Id<struct LinkTag>;      ///< One direction of one cable or bus.
using VertexId = Id<struct VertexTag>;  ///< Anything that links end at.

enum class VertexKind : std::uint8_t { kDevice, kNvSwitch, kPcieSwitch, kSocket, kNic, kSwitch };
enum class LinkKind : std::uint8_t { kNvLink, kPcie, kSocket, kNetwork };

struct Vertex {
  VertexKind kind = VertexKind::kDevice;
  std::string name;         ///< For example "node3/gpu5", "leaf2", "spine0".
  std::int32_t node = -1;   ///< Index of the node (host) it is in; -1 outside of any.
  DeviceId device;          ///< Of a kDevice.
};

struct Link {
  VertexId from;
  VertexId to;
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;  ///< Payload rate that a long transfer reaches. Invariant: > 0.
  Seconds latency;           ///< Of a message's first byte. Invariant: >= 0.
  bool up = true;
};

struct Device {
  DeviceTypeId type;
  VertexId vertex;
  std::int32_t node = 0;
};

/// A flow's way from one device to another: which part of it crosses each link.
struct RoutedLink {
  LinkId link;
  double share = 1;  ///< In (0, 1]. Less than 1 where equal-cost paths share the flow.
};
struct Route {
  std::vector<RoutedLink> links;  ///< Ascending LinkId. Empty only from a device to itself.
  Seconds latency;                ///< Sum along one path (the longest, if they differ).
  LinkKind widest_kind = LinkKind::kNvLink;  ///< kNetwork if any link of it is, else kSocket, ...
};

enum class Routing : std::uint8_t {
  kSpread,    ///< Equal-cost shortest paths carry equal parts of every flow.
  kEcmpHash,  ///< Each flow takes one of them, chosen by a hash of (seed, from, to, flow).
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
  Routing routing() const;

  /// Shortest path by link metric (fabric.h says which), over links that are up; never through a
  /// device. `flow` tells flows between the same devices apart (kEcmpHash).
  /// Cost: a search from `from` the first time, then a look-up. Not thread-safe on one object.
  /// \return kInfeasible if there is no path; the message names both devices and what is down.
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;

 private:
  struct State;
  explicit ClusterView(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace foreshard
