// `foreshard topology` writes a cluster for Graphviz with this.
#include "topology/dot.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace foreshard {
namespace {

std::string in_double_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string_view shape_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "box, style=filled, fillcolor=palegreen";
    case VertexKind::kNvSwitch:
      return "hexagon";
    case VertexKind::kPcieSwitch:
      return "diamond";
    case VertexKind::kSocket:
      return "octagon";
    case VertexKind::kNic:
      return "cds";
    case VertexKind::kSwitch:
      return "box3d";
    case VertexKind::kMemory:
      return "cylinder";
  }
  return "box";
}

std::string_view colour_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "forestgreen";
    case LinkKind::kPcie:
      return "grey40";
    case LinkKind::kSocket:
      return "orange";
    case LinkKind::kNetwork:
      return "royalblue";
    case LinkKind::kMemory:
      return "sienna";
  }
  return "black";
}

}  // namespace

std::string to_dot(const ClusterView& cluster, std::int32_t most_nodes) {
  const auto vertices = cluster.vertices();
  const auto links = cluster.links();
  const auto shown = [&](const Vertex& vertex) { return vertex.node < most_nodes; };
  std::vector<std::vector<std::size_t>> members(
      static_cast<std::size_t>(std::min(cluster.node_count(), most_nodes)));
  std::string text = fmt::format("graph {} {{\n  layout=dot; rankdir=BT; node [fontsize=10];\n",
                                 in_double_quotes(cluster.name()));
  if (cluster.node_count() > most_nodes)
    text += fmt::format("  label={};\n", in_double_quotes(fmt::format("{} of {} nodes", most_nodes,
                                                                      cluster.node_count())));
  const auto line = [&](std::size_t i, std::string_view indent) {
    text += fmt::format("{}v{} [label={}, shape={}];\n", indent, i,
                        in_double_quotes(vertices[i].name), shape_of(vertices[i].kind));
  };
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (!shown(vertices[i])) continue;
    if (vertices[i].node >= 0) {
      members[static_cast<std::size_t>(vertices[i].node)].push_back(i);
    } else {
      line(i, "  ");
    }
  }
  for (std::size_t node = 0; node < members.size(); ++node) {
    text += fmt::format("  subgraph cluster_node{} {{\n    label=\"node{}\";\n", node, node);
    for (const auto i : members[node]) line(i, "    ");
    text += "  }\n";
  }
  // A link and its reverse link with the same rate and state are drawn as one line.
  std::multimap<std::pair<VertexId, VertexId>, std::size_t> unmatched;
  std::vector<bool> both(links.size(), false);
  std::vector<bool> drawn(links.size(), true);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto [first, last] = unmatched.equal_range({links[i].to, links[i].from});
    const auto twin = std::find_if(first, last, [&](const auto& entry) {
      const Link& other = links[entry.second];
      return other.up == links[i].up && other.bandwidth == links[i].bandwidth;
    });
    if (twin == last) {
      unmatched.emplace(std::pair{links[i].from, links[i].to}, i);
      continue;
    }
    both[twin->second] = true;
    drawn[i] = false;
    unmatched.erase(twin);
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    if (!drawn[i] || !shown(vertices[link.from.index()]) || !shown(vertices[link.to.index()]))
      continue;
    text += fmt::format("  v{} -- v{} [label={}, color={}{}{}];\n", link.from.value(),
                        link.to.value(), in_double_quotes(format(link.bandwidth)),
                        link.up ? colour_of(link.kind) : "red", link.up ? "" : ", style=dashed",
                        both[i] ? "" : ", dir=forward");
  }
  return text + "}\n";
}

}  // namespace foreshard
