#include "topology/select.h"

#include <algorithm>

#include "topology/internal/selector.h"

namespace foreshard {

std::vector<LinkId> select_links(std::string_view selector, const ClusterView& cluster) {
  return internal::select_links(selector, cluster.vertices(), cluster.links());
}

std::vector<VertexId> select_vertices(std::string_view selector, std::span<const VertexKind> kinds,
                                      const ClusterView& cluster) {
  std::vector<VertexId> chosen;
  const auto vertices = cluster.vertices();
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    if (std::ranges::find(kinds, vertices[v].kind) != kinds.end() &&
        internal::matches(selector, vertices[v].name))
      chosen.emplace_back(static_cast<std::int64_t>(v));
  }
  return chosen;
}

std::vector<DeviceId> select_devices(std::string_view selector, const ClusterView& cluster) {
  std::vector<DeviceId> chosen;
  for (std::size_t d = 0; d < cluster.devices().size(); ++d) {
    const Vertex& vertex = cluster.vertices()[cluster.devices()[d].vertex.index()];
    if (internal::matches(selector, vertex.name)) chosen.emplace_back(static_cast<std::int64_t>(d));
  }
  return chosen;
}

}  // namespace foreshard
