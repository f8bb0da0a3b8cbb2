#include "topology/summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>

#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

namespace foreshard {
namespace {

using record::Record;

constexpr std::size_t kMostVerticesForBisection = 20'000;
/// Longer routes are cut in the text, not in the JSON.
constexpr std::size_t kMostLinksPrinted = 12;

RouteSample sample(const ClusterView& cluster, DeviceId from, DeviceId to) {
  const auto vertices = cluster.vertices();
  const auto name = [&](VertexId vertex) { return vertices[vertex.index()].name; };
  RouteSample result{.from = name(cluster.devices()[from.index()].vertex),
                     .to = name(cluster.devices()[to.index()].vertex)};
  const auto route = cluster.route(from, to);
  if (!route) {
    result.error = route.error().message;
    return result;
  }
  result.latency = route->latency;
  result.widest = name_of(route->widest_kind);
  result.bandwidth = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  for (const auto& [id, share] : route->links) {
    const Link& link = cluster.links()[id.index()];
    result.bandwidth = std::min(*result.bandwidth, link.bandwidth / share);
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

std::string to_text(const ClusterSummary& summary, const Paper& paper) {
  Page page(paper);
  std::string text =
      fmt::format("cluster {}: {} {}", summary.name, summary.nodes, plural(summary.nodes, "node"));
  for (const auto& [type, count] : summary.devices) text += fmt::format(", {} x {}", count, type);
  text += "\nvertices:";
  for (const auto& [kind, count] : summary.vertices) text += fmt::format(" {} {}", count, kind);
  page.line(text + "\nlinks (payload rate and latency of one direction):");
  TextTable table({"<", ">", ">", ">", "<"});
  for (const auto& link : summary.links)
    table.row(name_of(link.kind), fmt::format("{} x", link.count), format(link.bandwidth),
              format(link.latency), link.down == 0 ? "" : fmt::format("({} down)", link.down));
  page.table(table);
  page.line(fmt::format("bisection bandwidth: {}{}\nroutes:",
                        summary.bisection ? format(*summary.bisection) + ", " : "",
                        summary.bisection_note));
  for (const auto& route : summary.routes) {
    page.line(fmt::format(
        "  {} to {}: {}", route.from, route.to,
        route.bandwidth ? fmt::format("{}, {}", format(*route.bandwidth), format(*route.latency))
                        : route.error));
    const std::size_t shown = std::min(route.links.size(), kMostLinksPrinted);
    for (std::size_t i = 0; i < shown; ++i) page.line("    " + route.links[i]);
    if (route.links.size() > shown)
      page.line(fmt::format("    and {} more", route.links.size() - shown));
  }
  return std::move(page).take();
}

const Record<LinkClass>& record_of(const LinkClass*) {
  static const auto record =
      Record<LinkClass>("link", "Directed links that are alike.")
          .field("kind", [](const LinkClass& links) { return name_of(links.kind); })
          .field("bytes_per_s", &LinkClass::bandwidth)
          .field("latency_s", &LinkClass::latency)
          .field("count", &LinkClass::count)
          .field("down", &LinkClass::down);
  return record;
}

const Record<RouteSample>& record_of(const RouteSample*) {
  static const auto record =
      Record<RouteSample>("route")
          .field("from", &RouteSample::from)
          .field("to", &RouteSample::to)
          .sometimes("bytes_per_s", &RouteSample::bandwidth, "Rate of one flow alone.")
          .sometimes("latency_s", &RouteSample::latency)
          .sometimes("widest", &RouteSample::widest, "Kind of the links that reach farthest.")
          .sometimes("links", record::unless_empty<&RouteSample::links>)
          .sometimes("error", record::unless_empty<&RouteSample::error>, "Why there is no route.");
  return record;
}

const Record<ClusterSummary>& record_of(const ClusterSummary*) {
  static const auto record =
      Record<ClusterSummary>::result("foreshard.topology/1",
                                     "A cluster, as `topology show` sums it up.")
          .field("name", &ClusterSummary::name)
          .field("nodes", &ClusterSummary::nodes)
          .field("devices", &ClusterSummary::devices, "Number of devices by type.")
          .field("vertices", &ClusterSummary::vertices, "Number of vertices by kind.")
          .field("links", &ClusterSummary::links)
          .field("bisection_bytes_per_s", &ClusterSummary::bisection)
          .field("bisection_note", &ClusterSummary::bisection_note,
                 "The two halves, or why the bandwidth between them was left out.")
          .field("routes", &ClusterSummary::routes);
  return record;
}

std::string to_json(const ClusterSummary& summary) {
  return record::text_of(record::write(summary), 2);
}

}  // namespace foreshard
