// The bisection bandwidth of summary.h: the maximum flow between the halves of a cluster.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>

#include "topology/summary.h"

namespace foreshard {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, long long,
        boost::property<boost::edge_residual_capacity_t, long long,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void add_arc(FlowGraph& graph, std::size_t from, std::size_t to, long long capacity) {
  const auto forward = add_edge(from, to, graph).first;
  const auto backward = add_edge(to, from, graph).first;
  put(boost::edge_capacity, graph, forward, capacity);
  put(boost::edge_capacity, graph, backward, 0);
  put(boost::edge_reverse, graph, forward, backward);
  put(boost::edge_reverse, graph, backward, forward);
}

}  // namespace

std::optional<BytesPerSecond> bisection_bandwidth(const ClusterView& cluster) {
  const auto vertices = cluster.vertices();
  const auto devices = cluster.devices();
  if (devices.size() < 2) return std::nullopt;
  const bool by_node = cluster.node_count() > 1;
  const auto half_nodes = cluster.node_count() / 2;
  const auto half_devices = static_cast<std::int32_t>(devices.size() / 2);
  const auto sends = [&](DeviceId device) {
    return by_node ? devices[device.index()].node < half_nodes : device.value() < half_devices;
  };

  const std::size_t source = vertices.size();
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  long long all = 0;
  for (const auto& link : cluster.links()) {
    if (!link.up) continue;
    const Vertex& from = vertices[link.from.index()];
    const Vertex& to = vertices[link.to.index()];
    if (from.kind == VertexKind::kDevice && !sends(from.device)) continue;
    if (to.kind == VertexKind::kDevice && sends(to.device)) continue;
    if (by_node && from.node != to.node) {  // Hosts do not forward.
      if (from.node >= half_nodes) continue;
      if (to.node >= 0 && to.node < half_nodes) continue;
    }
    const long long capacity = std::llround(link.bandwidth.in_base());
    all += capacity;
    add_arc(graph, link.from.index(), link.to.index(), capacity);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto vertex = devices[i].vertex.index();
    if (sends(DeviceId(static_cast<std::int64_t>(i)))) {
      add_arc(graph, source, vertex, all);
    } else {
      add_arc(graph, vertex, sink, all);
    }
  }
  const long long flow = boost::push_relabel_max_flow(graph, source, sink);
  return BytesPerSecond::from_base(static_cast<double>(flow));
}

}  // namespace foreshard
