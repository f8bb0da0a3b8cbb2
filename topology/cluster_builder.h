/// \file
/// Makes a ClusterView vertex by vertex and link by link:
///
///     ClusterView::Builder builder("pair");
///     const auto type = builder.add_device_type(a100);
///     const auto node = builder.add_node();
///     const auto a = builder.add_device(type, "node0/gpu0", node);
///     const auto b = builder.add_device(type, "node0/gpu1", node);
///     builder.connect(builder.vertex_of(a), builder.vertex_of(b),
///                     {.kind = LinkKind::kNvLink, .bandwidth = 200_GB_s, .latency = 1_us});
///     ClusterView cluster = std::move(builder).build();
#pragma once

#include <string>

#include "topology/cluster_view.h"
#include "topology/fabric_shape.h"

namespace foreshard {

/// Both directions of one cable or bus.
struct DuplexLink {
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;  ///< Rate of each direction. Invariant: > 0.
  Seconds latency;           ///< Invariant: >= 0.
  double efficiency = 1;     ///< Bandwidth over the nominal rate. Invariant: > 0.
  std::int32_t hops = 1;     ///< See Link::hops.
};

class ClusterView::Builder {
 public:
  explicit Builder(std::string name);
  ~Builder();
  /// A builder that starts as a copy of `cluster`, to change parts of it. Ids stay the same.
  static Builder copy_of(const ClusterView& cluster);
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;

  DeviceTypeId add_device_type(DeviceType type);
  /// \return the index of the new node.
  std::int32_t add_node(const Host& host = {});
  /// Anything but a device.
  /// \param node  -1 for a vertex of the fabric.
  VertexId add_vertex(VertexKind kind, std::string name, std::int32_t node = -1);
  DeviceId add_device(DeviceTypeId type, std::string name, std::int32_t node);
  /// \return the link a -> b; the link b -> a has the next id.
  LinkId connect(VertexId a, VertexId b, const DuplexLink& link);
  LinkId add_link(const Link& link);  ///< One direction alone.

  VertexId vertex_of(DeviceId device) const;
  std::span<const Vertex> vertices() const;
  std::span<const Link> links() const;
  void take_down(LinkId link);
  /// Takes down the device alone; its links are taken down one by one.
  void take_down(DeviceId device);
  /// \pre 0 < factor <= 1
  void degrade(LinkId link, double factor);
  /// Multiplies its speed.
  /// \pre 0 < factor <= 1
  void slow_down(DeviceId device, double factor);
  void set_speed(DeviceId device, double speed);  ///< \pre speed > 0
  /// Keeps the bandwidth. \pre efficiency > 0
  void set_efficiency(LinkId link, double efficiency);
  void set_reduces_in_network(bool reduces);
  void set_routing(Routing routing, std::uint64_t seed, Pxn pxn = Pxn::kNever);
  /// Lets devices relay, over NVLink, what two devices of their host that NVLink does not join send
  /// each other.
  void allow_nvlink_relays();
  /// Declares the regular structure of the fabric, from which its routes follow. kAdaptive needs
  /// it; other routing is faster with it.
  void set_shape(FabricShape shape);

  ClusterView build() &&;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace foreshard
