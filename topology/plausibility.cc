#include "topology/plausibility.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/record/record.h"

namespace foreshard::internal {
namespace {

// The rules of plausibility.h, one function each.

struct Subject {
  const ClusterConfig& config;
  const ClusterView& cluster;
  const Hardware& hardware;
  // Links that leave each vertex.
  std::vector<std::vector<LinkId>> links_from;

  const Vertex& vertex(VertexId id) const { return cluster.vertices()[id.index()]; }
  const Link& link(LinkId id) const { return cluster.links()[id.index()]; }
  BytesPerSecond nominal(LinkId id) const { return link(id).bandwidth / link(id).efficiency; }
};

using Findings = std::vector<Finding>;

// Rates that differ by less are the same to a reader of data sheets.
constexpr double kSlack = 1.05;

// One finding for all parts with the same message: the first of them and how many more.
class Collector {
 public:
  Collector(Findings& findings, Severity severity, std::string remedy)
      : findings_(findings), severity_(severity), remedy_(std::move(remedy)) {}
  ~Collector() {
    for (const auto& message : order_) {
      const auto& [first, count] = seen_.at(message);
      findings_.push_back({severity_, "",
                           count == 1 ? first : fmt::format("{} (and {} more)", first, count - 1),
                           message, remedy_});
    }
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void add(const std::string& place, const std::string& message) {
    const auto [slot, added] = seen_.try_emplace(message, place, 0);
    if (added) order_.push_back(message);
    ++slot->second.second;
  }

 private:
  Findings& findings_;
  Severity severity_;
  std::string remedy_;
  std::map<std::string, std::pair<std::string, int>> seen_;
  std::vector<std::string> order_;
};

std::string gbits(BytesPerSecond rate) {
  return fmt::format("{:.4g} Gbit/s", rate / 1_Gbit_s);
}

// Sum of the nominal rates of the links of one kind that leave a vertex.
BytesPerSecond leaving(const Subject& subject, VertexId from, LinkKind kind) {
  BytesPerSecond sum;
  for (const auto id : subject.links_from[from.index()])
    if (subject.link(id).kind == kind) sum += subject.nominal(id);
  return sum;
}

template <class Visit>
void for_each_vertex(const Subject& subject, VertexKind kind, Visit visit) {
  for (std::size_t i = 0; i < subject.cluster.vertices().size(); ++i)
    if (subject.cluster.vertices()[i].kind == kind) visit(VertexId(static_cast<std::int64_t>(i)));
}

// Rate of NVLink to GPUs and NVSwitches, without chip-to-chip links to a CPU.
BytesPerSecond nvlink_of(const Subject& subject, VertexId device) {
  BytesPerSecond sum;
  for (const auto id : subject.links_from[device.index()])
    if (subject.link(id).kind == LinkKind::kNvLink &&
        subject.vertex(subject.link(id).to).kind != VertexKind::kSocket)
      sum += subject.nominal(id);
  return sum;
}

// The highest rate of a single PCIe path from a device to a socket. 0 if there is none.
BytesPerSecond way_to_socket(const Subject& subject, VertexId device) {
  BytesPerSecond widest;
  std::map<VertexId, BytesPerSecond> reached;
  std::vector<std::pair<VertexId, BytesPerSecond>> open{
      {device, BytesPerSecond::from_base(std::numeric_limits<double>::infinity())}};
  while (!open.empty()) {
    const auto [at, rate] = open.back();
    open.pop_back();
    for (const auto id : subject.links_from[at.index()]) {
      const auto& link = subject.link(id);
      if (link.kind != LinkKind::kPcie) continue;
      const auto through = std::min(rate, subject.nominal(id));
      const auto kind = subject.vertex(link.to).kind;
      if (kind == VertexKind::kSocket) widest = std::max(widest, through);
      if (kind != VertexKind::kPcieSwitch || !(through > reached[link.to])) continue;
      reached[link.to] = through;
      open.emplace_back(link.to, through);
    }
  }
  return widest;
}

Subject subject_of(const ClusterConfig& config, const ClusterView& cluster,
                   const Hardware& hardware) {
  Subject subject{config, cluster, hardware, {}};
  subject.links_from.resize(cluster.vertices().size());
  for (std::size_t i = 0; i < cluster.links().size(); ++i)
    subject.links_from[cluster.links()[i].from.index()].push_back(
        LinkId(static_cast<std::int64_t>(i)));
  return subject;
}

void find_port_rates(const Subject& subject, Findings& findings) {
  const auto& limits = subject.hardware.limits;
  Collector fast(findings, Severity::kWarning,
                 "GB/s are bytes, Gbit/s bits: a 400 Gbit/s port has 50 GB/s");
  Collector slow(findings, Severity::kWarning,
                 "MB/s, Mbit/s and Gbit/s differ by factors of 8 and 1,000: which was meant?");
  for_each_vertex(subject, VertexKind::kNic, [&](VertexId nic) {
    for (const auto id : subject.links_from[nic.index()]) {
      if (subject.link(id).kind != LinkKind::kNetwork) continue;
      const auto rate = subject.nominal(id);
      const auto& name = subject.vertex(nic).name;
      if (rate > *limits.fastest_port * kSlack)
        fast.add(name, fmt::format("its port has {} ({}), the fastest there is {}", gbits(rate),
                                   format(rate), gbits(*limits.fastest_port)));
      if (rate < *limits.slowest_port / kSlack)
        slow.add(name, fmt::format("its port has {} ({})", gbits(rate), format(rate)));
    }
  });
}

void find_slots(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kWarning,
                  "a port beyond its slot is throttled: are pcie.generation and the NIC's rate "
                  "right?");
  for_each_vertex(subject, VertexKind::kNic, [&](VertexId nic) {
    const auto slot = leaving(subject, nic, LinkKind::kPcie);
    const auto port = leaving(subject, nic, LinkKind::kNetwork);
    if (port > slot * kSlack && !(port > *subject.hardware.limits.fastest_port * kSlack))
      found.add(subject.vertex(nic).name, fmt::format("its port has {} ({}), its PCIe link {}",
                                                      gbits(port), format(port), format(slot)));
  });
}

void find_isolated(const Subject& subject, Findings& findings) {
  Collector devices(findings, Severity::kWarning,
                    "the others cannot reach it: has it a link, and is every link on the way up?");
  Collector nics(findings, Severity::kWarning, "cable it, or take it out of the node");
  Collector down(findings, Severity::kRemark, "its traffic takes the node's other NICs");
  const auto& cluster = subject.cluster;
  std::vector<std::size_t> part(cluster.vertices().size());
  std::iota(part.begin(), part.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (part[i] != i) i = part[i] = part[part[i]];
    return i;
  };
  for (const auto& link : cluster.links())
    if (link.up) part[root(link.from.index())] = root(link.to.index());
  std::map<std::size_t, std::size_t> size;
  for (const auto& device : cluster.devices()) ++size[root(device.vertex.index())];
  std::size_t largest = 0;
  for (const auto& [at, count] : size) largest = std::max(largest, count);
  std::optional<std::size_t> rest;  // the first of the largest parts
  for (const auto& device : cluster.devices())
    if (const auto at = root(device.vertex.index()); !rest && size[at] == largest) rest = at;
  for (const auto& device : cluster.devices())
    if (largest > 1 && root(device.vertex.index()) != rest)
      devices.add(subject.vertex(device.vertex).name,
                  fmt::format("is joined to {} of {} devices",
                              size[root(device.vertex.index())] - 1, cluster.devices().size()));
  if (cluster.devices().size() > 1 && largest == 1)
    devices.add(subject.vertex(cluster.devices()[0].vertex).name, "no two devices are joined");
  if (cluster.node_count() < 2) return;
  for_each_vertex(subject, VertexKind::kNic, [&](VertexId nic) {
    bool cabled = false;
    bool works = false;
    for (const auto id : subject.links_from[nic.index()]) {
      if (subject.link(id).kind != LinkKind::kNetwork) continue;
      cabled = true;
      works = works || subject.link(id).up;
    }
    const auto& name = subject.vertex(nic).name;
    if (!cabled) nics.add(name, "has no cable");
    if (cabled && !works) down.add(name, "has no cable that works (down)");
  });
}

void find_nvlinks(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kWarning,
                  "data sheets add both directions: nvlink.bandwidth is one of them, half of it");
  for (std::size_t i = 0; i < subject.cluster.devices().size(); ++i) {
    const DeviceId id(static_cast<std::int64_t>(i));
    const auto vertex = subject.cluster.devices()[i].vertex;
    const auto* known = subject.hardware.find(subject.cluster.type_of(id).name);
    const auto rate = nvlink_of(subject, vertex);
    if (known == nullptr || !(rate > known->nvlink_bandwidth() * kSlack)) continue;
    found.add(
        subject.vertex(vertex).name,
        fmt::format("has {} of NVLink in one direction, {} has {}", format(rate), known->device,
                    known->nvlinks == 0
                        ? "none"
                        : fmt::format("{} ({} links of {})", format(known->nvlink_bandwidth()),
                                      known->nvlinks, format(*known->nvlink))));
  }
}

void find_missing_nvlinks(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kWarning,
                  "collectives go at the pace of the least joined; did a link fail to come up?");
  std::map<std::int32_t, BytesPerSecond> most;  // node -> most NVLink of a device
  for (const auto& device : subject.cluster.devices())
    most[device.node] = std::max(most[device.node], nvlink_of(subject, device.vertex));
  for (const auto& device : subject.cluster.devices()) {
    const auto rate = nvlink_of(subject, device.vertex);
    if (!(most[device.node] > rate * kSlack)) continue;
    found.add(subject.vertex(device.vertex).name,
              fmt::format("has {} NVLink, another device of its node {} in one direction",
                          rate > BytesPerSecond() ? format(rate) + " of" : "no",
                          format(most[device.node])));
  }
}

void find_uplinks(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kWarning,
                  "are speed and width of the bridges between them right, and did they train up?");
  for (const auto& device : subject.cluster.devices()) {
    const auto own = leaving(subject, device.vertex, LinkKind::kPcie);
    const auto up = way_to_socket(subject, device.vertex);
    if (up > BytesPerSecond() && up * kSlack < *subject.hardware.limits.pcie_uplink * own)
      found.add(subject.vertex(device.vertex).name,
                fmt::format("its PCIe link has {}, the way from there to its CPU {}", format(own),
                            format(up)));
  }
}

void find_oversubscription(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kWarning,
                  "2 to 4 are usual where money is short; 1 is non-blocking");
  const auto& factors = subject.config.fabric.oversubscription;
  const double most = *subject.hardware.limits.oversubscription;
  for (std::size_t i = 0; i < factors.size(); ++i)
    if (factors[i] > most)
      found.add(fmt::format("fabric.oversubscription[{}]", i),
                fmt::format("{} is more than {}", factors[i], most));
}

void find_switches(const Subject& subject, Findings& findings) {
  const auto& limits = subject.hardware.limits;
  Collector found(findings, Severity::kWarning,
                  "more levels, smaller pods or several planes take smaller switches");
  // Equal switches may be merged into one; with hashed paths each stays separate.
  ClusterConfig detailed = subject.config;
  detailed.routing = Routing::kEcmpHash;
  const auto cluster = build_cluster(detailed);
  if (!cluster) return;
  std::vector<std::pair<std::int64_t, BytesPerSecond>> ports(cluster->vertices().size());
  for (const auto& link : cluster->links()) {
    if (link.kind != LinkKind::kNetwork) continue;
    auto& [count, rate] = ports[link.from.index()];
    ++count;
    rate += link.bandwidth / link.efficiency;
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& vertex = cluster->vertices()[i];
    if (vertex.kind != VertexKind::kSwitch) continue;
    const auto& [count, rate] = ports[i];
    if (count > *limits.switch_ports || rate > *limits.switch_throughput * kSlack)
      found.add(
          vertex.name,
          fmt::format("has {} ports with {:.4g} Tbit/s; the largest chassis has {} and {:.4g}",
                      count, rate / 1_Gbit_s / 1000, *limits.switch_ports,
                      *limits.switch_throughput / 1_Gbit_s / 1000));
  }
}

void find_uneven_nodes(const Subject& subject, Findings& findings) {
  Collector found(findings, Severity::kRemark,
                  "collectives go at the pace of the least joined; is a link or a NIC missing?");
  std::map<std::int32_t, BytesPerSecond> first;
  std::set<std::int32_t> told;
  for (const auto& device : subject.cluster.devices()) {
    const auto rate = leaving(subject, device.vertex, LinkKind::kPcie);
    const auto usual = first.try_emplace(device.node, rate).first->second;
    if (rate == usual || !told.insert(device.node).second) continue;
    found.add(
        subject.vertex(device.vertex).name,
        fmt::format("has {} of PCIe, the node's first device {}", format(rate), format(usual)));
  }
  std::map<VertexId, int> nics_of;  // switch -> NICs on it
  std::map<VertexId, int> devices_of;
  for (const auto& link : subject.cluster.links()) {
    if (link.kind != LinkKind::kPcie) continue;
    const auto from = subject.vertex(link.from).kind;
    if (from == VertexKind::kNic) ++nics_of[link.to];
    if (from == VertexKind::kDevice) ++devices_of[link.to];
  }
  std::map<std::int32_t, std::set<int>> per_device;  // node -> {1, 0}: switches with a NIC, without
  for (const auto& [at, devices] : devices_of)
    per_device[subject.vertex(at).node].insert(nics_of.contains(at) ? 1 : 0);
  for (const auto& [node, kinds] : per_device)
    if (kinds.size() > 1)
      found.add(fmt::format("node{}", node),
                "some of its PCIe switches with devices have a NIC, "
                "others have none");
}

void find_degraded(const Subject& subject, Findings& findings) {
  const double least = *subject.hardware.limits.degraded;
  Collector found(findings, Severity::kWarning,
                  "a factor is a part of 1, not percent; what does not work belongs under down");
  for (std::size_t i = 0; i < subject.config.degraded.size(); ++i) {
    const auto& [links, factor, devices, speed] = subject.config.degraded[i];
    for (const auto& part : {factor, speed})
      if (part && *part < least)
        found.add(fmt::format("degraded[{}]", i), fmt::format("{} is below {}", *part, least));
  }
}

void find_mixed_memory(const Subject& subject, Findings& findings) {
  std::map<double, std::string> types;
  for (const auto& type : subject.cluster.device_types())
    types.try_emplace(type.memory->in_base(), type.name);
  if (types.size() < 2) return;
  const auto& [least, small] = *types.begin();
  const auto& [most, large] = *types.rbegin();
  findings.push_back({Severity::kRemark, "", "groups",
                      fmt::format("{} has {}, {} has {}", small, format(Bytes::from_base(least)),
                                  large, format(Bytes::from_base(most))),
                      "a strategy that divides evenly must fit the smallest"});
}

void find_latencies(const Subject& subject, Findings& findings) {
  const auto& limits = subject.hardware.limits;
  Collector found(findings, Severity::kWarning, "us or ns was meant? Switches and cables take ns");
  for (const auto& link : subject.cluster.links())
    if (link.latency > *limits.latency)
      found.add(
          subject.vertex(link.from).name + " - " + subject.vertex(link.to).name,
          fmt::format("takes {}, more than {}", format(link.latency), format(*limits.latency)));
}

void find_slow_links(const Subject& subject, Findings& findings) {
  const auto& limits = subject.hardware.limits;
  Collector found(findings, Severity::kWarning,
                  "is the unit right? What does not work belongs under down");
  for (const auto& link : subject.cluster.links())
    if (link.bandwidth < *limits.slowest_link)
      found.add(subject.vertex(link.from).name + " - " + subject.vertex(link.to).name,
                fmt::format("carries {}, less than {}", format(link.bandwidth),
                            format(*limits.slowest_link)));
}

void find_launch_times(const Subject& subject, Findings& findings) {
  const auto& limits = subject.hardware.limits;
  Collector found(findings, Severity::kWarning, "us was meant? Launches take microseconds");
  for (std::int32_t node = 0; node < subject.cluster.node_count(); ++node)
    if (const auto time = subject.cluster.host(node).launch_time; time > *limits.launch_time)
      found.add(fmt::format("node{}", node),
                fmt::format("takes {} to launch a kernel, more than {}", format(time),
                            format(*limits.launch_time)));
}

}  // namespace
}  // namespace foreshard::internal

namespace foreshard {
namespace {

constexpr std::size_t kRules = 14;

constexpr std::array<PlausibilityRule, kRules> kNames{{
    {"port-rate", "A NIC faster than any that exists, or slower than Ethernet."},
    {"nic-slot", "A NIC's port is faster than its PCIe link."},
    {"isolated", "A device or NIC that no link joins to the rest."},
    {"nvlink-rate", "NVLink faster than the device type's."},
    {"missing-nvlink", "A device with less NVLink than another one of its node."},
    {"pcie-uplink", "A way to the CPU far below the PCIe link of the device at its end."},
    {"oversubscription", "More oversubscription at a switch than is built."},
    {"switch-size", "A switch with more ports, or more throughput, than exist."},
    {"uneven-node", "Devices of one node are joined unequally."},
    {"degraded", "A factor so small that the part is broken rather than slow."},
    {"mixed-memory", "Devices of unequal memory in one cluster."},
    {"latency", "A link with a latency beyond any inside a cluster."},
    {"slow-link", "A link that hardly carries anything."},
    {"launch-time", "A host that takes unusually long to launch a kernel."},
}};

constexpr std::array<void (*)(const internal::Subject&, internal::Findings&), kRules> kLook{
    internal::find_port_rates,       internal::find_slots,           internal::find_isolated,
    internal::find_nvlinks,          internal::find_missing_nvlinks, internal::find_uplinks,
    internal::find_oversubscription, internal::find_switches,        internal::find_uneven_nodes,
    internal::find_degraded,         internal::find_mixed_memory,    internal::find_latencies,
    internal::find_slow_links,       internal::find_launch_times};

std::string_view name_of(Severity severity) {
  return severity == Severity::kWarning ? "warning" : "remark";
}

}  // namespace

std::span<const PlausibilityRule> plausibility_rules() {
  return kNames;
}

std::vector<Finding> implausible(const ClusterConfig& config, const ClusterView& cluster,
                                 const Hardware& hardware) {
  const auto subject = internal::subject_of(config, cluster, hardware);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < kRules; ++i) {
    const std::size_t before = findings.size();
    kLook[i](subject, findings);
    for (std::size_t f = before; f < findings.size(); ++f) findings[f].rule = kNames[i].name;
  }
  return findings;
}

std::string to_text(const std::vector<Finding>& findings, const Paper& paper) {
  Page page(paper);
  for (const auto& f : findings)
    page.line(fmt::format("{}: {}: {}: {}\n  help: {}", name_of(f.severity), f.rule, f.place,
                          f.message, f.remedy));
  if (findings.empty()) page.line(fmt::format("nothing implausible ({} rules)", kRules));
  return std::move(page).take();
}

const record::Record<Finding>& record_of(const Finding*) {
  static const auto record =
      record::Record<Finding>("finding")
          .field(
              "severity", [](const Finding& one) { return name_of(one.severity); }, "",
              record::one_of({"warning", "remark"}))
          .field("rule", &Finding::rule)
          .field("place", &Finding::place)
          .field("message", &Finding::message)
          .field("remedy", &Finding::remedy);
  return record;
}

struct FindingsResult {
  std::vector<Finding> findings;
};

const record::Record<FindingsResult>& record_of(const FindingsResult*) {
  static const auto record =
      record::Record<FindingsResult>::result("foreshard.findings/1",
                                             "What is implausible of a cluster (topology check).")
          .field("findings", &FindingsResult::findings);
  return record;
}

std::string to_json(const std::vector<Finding>& findings) {
  return record::text_of(record::write(FindingsResult{findings}), 2);
}

}  // namespace foreshard
