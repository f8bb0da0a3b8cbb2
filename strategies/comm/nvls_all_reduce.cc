// All-reduce of B bytes among p members of one NVLink switch that sums and copies by itself. Each
// member looks after B/p bytes: it asks the switch for their sum, which the switch draws from all
// members, and hands the result back to the switch, which copies it to all.
//
//     time   = latency + (p+1)/p B / bandwidth
//     volume = (p+1)/p B out of each member (its part of every sum, and one result), as much into
//     it
//
// Source: NVIDIA, "NVLink-Network Switch: NVIDIA's switch chip for high communication-bandwidth
// SuperPODs", Hot Chips 34, 2022 (SHARP); NVIDIA/nccl v2.28, src/graph/search.cc (each channel
// loads every link once and its head's link twice).
// Not modelled: several nodes; data types that the switch cannot add (8-bit integers).
#include "strategies/comm/algorithms.h"

namespace foreshard::comm {
namespace {

// The NVLink switch in the middle of a route; an invalid id if there is none.
VertexId switch_of(const ClusterView& cluster, const Route& route) {
  if (route.links.size() != 2) return {};
  for (const RoutedLink& routed : route.links) {
    const Link& link = cluster.links()[routed.link.index()];
    if (link.kind != LinkKind::kNvLink) return {};
    if (cluster.vertices()[link.to.index()].kind == VertexKind::kNvSwitch) return link.to;
  }
  return {};
}

}  // namespace

Result<Pattern> nvls_all_reduce(const Participants& group) {
  const auto members = static_cast<std::int32_t>(group.devices.size());
  const double load = (members + 1.0) / members;
  Pattern pattern;
  internal::LoadSum loads;
  VertexId common;
  for (std::int32_t i = 0; i < members; ++i) {
    // The way to the next member is this one's link up and that one's link down.
    const auto route = internal::route_between(group, i, (i + 1) % members);
    if (!route) return route.error();
    const VertexId middle = switch_of(*group.cluster, *route);
    if (!middle.valid() || (common.valid() && middle != common))
      return Error{Error::Code::kUnsupported, "nvls: the members do not share an NVLink switch"};
    common = middle;
    loads.add(*route, load);
    internal::Path path;
    path.add(internal::Hop{route->widest_kind, route->latency});
    if (i == 0 || internal::longer(path, pattern.path)) pattern.path = path;
  }
  pattern.sent_per_member = load;
  pattern.loads = loads.take();
  return pattern;
}

Result<StepwiseCollective> nvls_all_reduce_steps(const Participants&) {
  return Error{Error::Code::kUnsupported,
               "nvls: the switch itself sends; there are no messages between members"};
}

}  // namespace foreshard::comm
