#include "topology/internal/selector.h"

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
