#include "topology/select.h"

#include <algorithm>

#include "base/glob.h"

namespace foreshard::internal {

bool matches(std::string_view pattern, std::string_view text) {
  return matches_glob(pattern, text,
                      [](auto rest, auto name) { return letter_step(rest, name, '?'); });
}

namespace {
constexpr std::string_view kBetween = " - ";
}

std::vector<DeviceId> select_devices(std::string_view selector, std::span<const Vertex> vertices) {
  std::vector<DeviceId> result;
  if (selector.find(kBetween) != std::string_view::npos) return result;
  for (const auto& vertex : vertices)
    if (vertex.kind == VertexKind::kDevice && matches(selector, vertex.name))
      result.push_back(vertex.device);
  return result;
}

std::vector<LinkId> select_links(std::string_view selector, std::span<const Vertex> vertices,
                                 std::span<const Link> links) {
  const auto dash = selector.find(kBetween);
  const auto chosen = [&](std::string_view pattern) {
    std::vector<bool> result(vertices.size());
    for (std::size_t i = 0; i < vertices.size(); ++i)
      result[i] = matches(pattern, vertices[i].name);
    return result;
  };
  const auto first = chosen(selector.substr(0, dash));
  const auto second = dash == std::string_view::npos
                          ? std::vector<bool>(vertices.size(), true)
                          : chosen(selector.substr(dash + kBetween.size()));
  std::vector<LinkId> result;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto from = links[i].from.index();
    const auto to = links[i].to.index();
    if ((first[from] && second[to]) || (first[to] && second[from]))
      result.emplace_back(static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace foreshard::internal

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
