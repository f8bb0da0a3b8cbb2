// Writes a cluster as a SimGrid platform file, for `foreshard topology`.
#include "topology/simgrid_platform.h"

#include <fmt/format.h>
#include <map>
#include <vector>

namespace foreshard {
namespace {

constexpr std::size_t kMostDevices = 512;  // our limit, as the file has a route for each pair

// The text as the value of an XML attribute.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return result;
}

// The links of `route` in the order of its path, which begins at `from`.
// \pre the route has a single path
std::vector<LinkId> in_order(const ClusterView& cluster, const Route& route, VertexId from) {
  std::map<VertexId, LinkId> next;
  for (const auto& [id, share] : route.links) next[cluster.links()[id.index()].from] = id;
  std::vector<LinkId> path;
  for (auto at = next.find(from); at != next.end() && path.size() < route.links.size();) {
    path.push_back(at->second);
    at = next.find(cluster.links()[at->second.index()].to);
  }
  return path;
}

}  // namespace

Result<std::string> to_simgrid(const ClusterView& cluster) {
  const auto devices = cluster.devices();
  const auto vertices = cluster.vertices();
  const auto links = cluster.links();
  if (devices.size() > kMostDevices)
    return Error{Error::Code::kUnsupported,
                 fmt::format("a SimGrid platform lists a route for every pair of devices: {} "
                             "devices are more than {} (reduce them with --set nodes=...)",
                             devices.size(), kMostDevices)};
  const auto name = [&](DeviceId id) {
    return escaped(vertices[devices[id.index()].vertex.index()].name);
  };
  // The settings leave out SimGrid's TCP corrections: an idle route takes latency + bytes /
  // bandwidth.
  std::string text = fmt::format(
      "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n  <config>\n"
      "    <prop id=\"network/model\" value=\"CM02\"/>\n"
      "    <prop id=\"network/TCP-gamma\" value=\"0\"/>\n"
      "    <prop id=\"network/weight-S\" value=\"0\"/>\n"
      "    <prop id=\"network/latency-factor\" value=\"1\"/>\n"
      "    <prop id=\"network/bandwidth-factor\" value=\"1\"/>\n"
      "  </config>\n  <zone id=\"{}\" routing=\"Full\">\n",
      escaped(cluster.name()));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceId id(static_cast<std::int64_t>(i));
    text += fmt::format("    <host id=\"{}\" speed=\"{:.17g}f\"/>\n", name(id),
                        cluster.type_of(id).vector_peak->in_base() * devices[i].speed);
  }
  for (std::size_t i = 0; i < links.size(); ++i)
    if (links[i].up)
      text += fmt::format(
          "    <link id=\"l{}\" bandwidth=\"{:.17g}Bps\" latency=\"{:.17g}s\">"
          "<prop id=\"ends\" value=\"{} {}\"/></link>\n",
          i, links[i].bandwidth.in_base(), links[i].latency.in_base(),
          escaped(vertices[links[i].from.index()].name),
          escaped(vertices[links[i].to.index()].name));
  for (std::size_t i = 0; i < devices.size(); ++i)
    for (std::size_t j = 0; j < devices.size(); ++j) {
      if (i == j) continue;
      const DeviceId from(static_cast<std::int64_t>(i));
      const DeviceId to(static_cast<std::int64_t>(j));
      const auto route = cluster.route(from, to);
      if (!route) {
        text += fmt::format("    <!-- no route from {} to {} -->\n", name(from), name(to));
        continue;
      }
      for (const auto& [id, share] : route->links)
        if (share < 1)
          return Error{Error::Code::kUnsupported,
                       fmt::format("the route from {} to {} has several paths, and SimGrid's "
                                   "routes have one: choose routing: ecmp-hash",
                                   name(from), name(to))};
      text +=
          fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">", name(from), name(to));
      for (const LinkId id : in_order(cluster, *route, devices[i].vertex))
        text += fmt::format("<link_ctn id=\"l{}\"/>", id.value());
      text += "</route>\n";
    }
  return text + "  </zone>\n</platform>\n";
}

}  // namespace foreshard
