#include "topology/summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/quantity.h"
#include "base/text.h"

namespace foreshard {
namespace {

constexpr std::size_t kMostVerticesForBisection = 20'000;
/// Longer routes are cut in the text, not in the JSON.
constexpr std::size_t kMostLinksPrinted = 12;

RouteSample sample(const ClusterView& cluster, DeviceId from, DeviceId to) {
  const auto vertices = cluster.vertices();
  const auto name = [&](VertexId vertex) { return vertices[vertex.index()].name; };
  RouteSample result{.from = name(cluster.devices()[from.index()].vertex),
                     .to = name(cluster.devices()[to.index()].vertex),
                     .route = std::nullopt,
                     .error = {},
                     .links = {},
                     .bandwidth = {}};
  auto route = cluster.route(from, to);
  if (!route) {
    result.error = route.error().message;
    return result;
  }
  result.route = *std::move(route);
  result.bandwidth = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  for (const auto& [id, share] : result.route->links) {
    const Link& link = cluster.links()[id.index()];
    result.bandwidth = std::min(result.bandwidth, link.bandwidth / share);
    std::string text = name(link.from) + " -> " + name(link.to);
    if (share < 1) text += fmt::format(" x {:.4g}", share);
    result.links.push_back(std::move(text));
  }
  return result;
}

std::vector<RouteSample> sample_routes(const ClusterView& cluster) {
  const auto devices = cluster.devices();
  std::vector<RouteSample> samples;
  std::vector<DeviceId> seen;
  const auto add = [&](std::size_t to) {
    const DeviceId target(static_cast<std::int64_t>(to));
    if (to == 0 || to >= devices.size() || std::ranges::find(seen, target) != seen.end()) return;
    seen.push_back(target);
    samples.push_back(sample(cluster, DeviceId(0), target));
  };
  std::vector<std::size_t> starts;  // first device of each node
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i == 0 || devices[i].node != devices[i - 1].node) starts.push_back(i);
  add(1);
  if (starts.size() > 1) {
    add(starts[1] - 1);
    add(starts[1]);
    add(starts.back());
  }
  if (!devices.empty()) add(devices.size() - 1);
  return samples;
}

}  // namespace

std::string_view name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "device";
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kPcieSwitch:
      return "pcie-switch";
    case VertexKind::kSocket:
      return "socket";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kSwitch:
      return "switch";
    case VertexKind::kMemory:
      return "memory";
  }
  return "";
}

std::string_view name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "nvlink";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kSocket:
      return "socket";
    case LinkKind::kNetwork:
      return "network";
    case LinkKind::kMemory:
      return "memory";
  }
  return "";
}

ClusterSummary summarize(const ClusterView& cluster) {
  ClusterSummary result;
  result.name = cluster.name();
  result.nodes = cluster.node_count();
  for (const auto& device : cluster.devices())
    ++result.devices[cluster.device_types()[device.type.index()].name];
  for (const auto& vertex : cluster.vertices())
    ++result.vertices[std::string(name_of(vertex.kind))];
  std::map<std::tuple<LinkKind, double, double>, LinkClass> classes;
  for (const auto& link : cluster.links()) {
    auto& slot = classes[{link.kind, -link.bandwidth.in_base(), link.latency.in_base()}];
    slot = {link.kind, link.bandwidth, link.latency, slot.count + 1, slot.down + (link.up ? 0 : 1)};
  }
  for (const auto& [key, value] : classes) result.links.push_back(value);
  if (cluster.vertices().size() > kMostVerticesForBisection) {
    result.bisection_note =
        fmt::format("left out: more than {} vertices", kMostVerticesForBisection);
  } else {
    result.bisection = bisection_bandwidth(cluster);
    result.bisection_note = cluster.node_count() > 1 ? "first half of the nodes to the others"
                                                     : "first half of the devices to the others";
  }
  result.routes = sample_routes(cluster);
  return result;
}

std::string to_text(const ClusterSummary& summary) {
  std::string text =
      fmt::format("cluster {}: {} {}", summary.name, summary.nodes, plural(summary.nodes, "node"));
  for (const auto& [type, count] : summary.devices) text += fmt::format(", {} x {}", count, type);
  text += "\nvertices:";
  for (const auto& [kind, count] : summary.vertices) text += fmt::format(" {} {}", count, kind);
  text += "\nlinks (payload rate and latency of one direction):\n";
  for (const auto& link : summary.links) {
    text += fmt::format("  {:<8} {:>8} x {:>12} {:>9}", name_of(link.kind), link.count,
                        format(link.bandwidth), format(link.latency));
    text += link.down == 0 ? "\n" : fmt::format("  ({} down)\n", link.down);
  }
  text += "bisection bandwidth: ";
  if (summary.bisection) text += format(*summary.bisection) + ", ";
  text += summary.bisection_note + "\nroutes:\n";
  for (const auto& route : summary.routes) {
    text += fmt::format("  {} to {}: ", route.from, route.to);
    if (!route.route) {
      text += route.error + "\n";
      continue;
    }
    text += fmt::format("{}, {}\n", format(route.bandwidth), format(route.route->latency));
    for (std::size_t i = 0; i < route.links.size() && i < kMostLinksPrinted; ++i)
      text += "    " + route.links[i] + "\n";
    if (route.links.size() > kMostLinksPrinted)
      text += fmt::format("    and {} more\n", route.links.size() - kMostLinksPrinted);
  }
  return text;
}

std::string to_json(const ClusterSummary& summary) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema", "foreshard.topology/1"}, {"name", summary.name}, {"nodes", summary.nodes}};
  json["devices"] = summary.devices;
  json["vertices"] = summary.vertices;
  json["links"] = Json::array();
  for (const auto& link : summary.links)
    json["links"].push_back({{"kind", name_of(link.kind)},
                             {"bytes_per_s", link.bandwidth.in_base()},
                             {"latency_s", link.latency.in_base()},
                             {"count", link.count},
                             {"down", link.down}});
  json["bisection_bytes_per_s"] = nullptr;
  if (summary.bisection) json["bisection_bytes_per_s"] = summary.bisection->in_base();
  json["bisection_note"] = summary.bisection_note;
  json["routes"] = Json::array();
  for (const auto& route : summary.routes) {
    Json entry{{"from", route.from}, {"to", route.to}};
    if (route.route) {
      entry["bytes_per_s"] = route.bandwidth.in_base();
      entry["latency_s"] = route.route->latency.in_base();
      entry["widest"] = name_of(route.route->widest_kind);
      entry["links"] = route.links;
    } else {
      entry["error"] = route.error;
    }
    json["routes"].push_back(std::move(entry));
  }
  return json.dump(2) + "\n";
}

}  // namespace foreshard
