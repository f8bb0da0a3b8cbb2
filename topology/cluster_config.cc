#include "topology/cluster_config.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"

#include "topology/cluster_builder.h"
#include "topology/fabrics/fabric.h"
#include "topology/node_builder.h"
#include "topology/select.h"

namespace foreshard {
namespace {

/// Makes an error from (path of keys, message, help).
using ErrorMaker = std::function<Error(const std::string&, const std::string&, const std::string&)>;

std::string fault_in_nodes(const ClusterConfig& config) {
  if (config.node && !config.groups.empty()) return "is given, but so are groups: choose one";
  if (!config.node && config.groups.empty())
    return "is missing: name the machine that a node is, for example node: dgx-a100-80gb";
  return "";
}

std::string fault_in_price(const ClusterConfig& config) {
  if (config.price && config.rent) return "is given, but so is rent: choose one";
  if (config.price && !config.lifetime)
    return "is given, but not lifetime: over how long it is written off, for example 4 y";
  if (config.lifetime && !config.price)
    return "is missing: what is written off over the lifetime that is given";
  return "";
}

std::string fault_in_degradation(const Degradation& part) {
  if (part.links.empty() == part.devices.empty())
    return "needs either links and factor, or devices and speed";
  if (part.links.empty() ? part.factor.has_value() : part.speed.has_value())
    return part.links.empty() ? "gives devices, which take speed, not factor"
                              : "gives links, which take factor, not speed";
  if (part.links.empty() ? !part.speed : !part.factor)
    return part.links.empty() ? "gives devices, but not their speed"
                              : "gives links, but not their factor";
  return "";
}

/// Nodes whose device types have the same name share one device type.
DeviceTypeId type_id(ClusterView::Builder& builder, std::map<std::string, DeviceTypeId>& known,
                     const DeviceType& type) {
  const auto [slot, added] = known.try_emplace(type.name);
  if (added) slot->second = builder.add_device_type(type);
  return slot->second;
}

constexpr const char* kNamesHelp =
    "they are called node0/gpu0, node0/nic0, pod0/leaf0, spine0, ..., and node0 is all of that "
    "node; * stands for any text";

/// A selector that matches nothing may be the name of a node, and then means everything in that
/// node.
std::string in_node(const std::string& selector) {
  return selector + "/*";
}
std::vector<LinkId> links_at(const std::string& selector, const ClusterView::Builder& builder) {
  auto links = internal::select_links(selector, builder.vertices(), builder.links());
  return links.empty()
             ? internal::select_links(in_node(selector), builder.vertices(), builder.links())
             : links;
}
std::vector<DeviceId> devices_at(const std::string& selector, const ClusterView::Builder& builder) {
  auto devices = internal::select_devices(selector, builder.vertices());
  return devices.empty() ? internal::select_devices(in_node(selector), builder.vertices())
                         : devices;
}

Status take_down(ClusterView::Builder& builder, const ClusterConfig& config,
                 const ErrorMaker& error) {
  for (std::size_t i = 0; i < config.down.size(); ++i) {
    const auto links = links_at(config.down[i], builder);
    const auto devices = devices_at(config.down[i], builder);
    if (links.empty() && devices.empty())
      return error("down." + std::to_string(i),
                   "'" + config.down[i] + "' matches no device, NIC, switch or link", kNamesHelp);
    for (const auto link : links) builder.take_down(link);
    for (const auto device : devices) builder.take_down(device);
  }
  return {};
}

Status degrade(ClusterView::Builder& builder, const ClusterConfig& config,
               const ErrorMaker& error) {
  for (std::size_t i = 0; i < config.degraded.size(); ++i) {
    const Degradation& part = config.degraded[i];
    const std::string at = "degraded." + std::to_string(i);
    if (const auto fault = fault_in_degradation(part); !fault.empty()) return error(at, fault, "");
    if (!part.devices.empty()) {
      const auto devices = devices_at(part.devices, builder);
      if (devices.empty())
        return error(at + ".devices", "'" + part.devices + "' matches no device",
                     "devices are called node0/gpu0, node0/gpu1, ...; * stands for any text");
      for (const auto device : devices) builder.slow_down(device, *part.speed);
      continue;
    }
    const auto links = links_at(part.links, builder);
    if (links.empty())
      return error(at + ".links", "'" + part.links + "' matches no link", kNamesHelp);
    for (const auto link : links) builder.degrade(link, *part.factor);
  }
  return {};
}

/// Whether no links are degraded: slow devices do not change the fabric.
bool only_devices(const std::vector<Degradation>& degraded) {
  return std::ranges::all_of(degraded, [](const auto& part) { return !part.devices.empty(); });
}

/// Whether the network joins all NICs of each node, over the cables in `links` and the switches.
bool rails_meet(const std::vector<FabricPort>& ports, std::span<const Link> links,
                std::size_t vertices) {
  std::vector<std::size_t> parent(vertices);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root_of = [&](VertexId vertex) {
    std::size_t at = vertex.index();
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
  };
  for (const Link& link : links)
    if (link.kind == LinkKind::kNetwork) parent[root_of(link.from)] = root_of(link.to);
  for (std::size_t i = 1; i < ports.size(); ++i)
    if (ports[i].node == ports[i - 1].node && root_of(ports[i].nic) != root_of(ports[i - 1].nic))
      return false;
  return true;
}

/// Whether NCCL, with PXN, does the sends of these nodes. NVIDIA GPUs are those whose type gives a
/// compute capability. Not modelled: PXN among the GPUs of one tray where a node is a rack of
/// several trays. RCCL has PXN off (ROCm/rccl, src/graph/paths.cc: PXN_DISABLE is 1).
bool has_pxn(const ClusterConfig& config) {
  const auto groups = config.node_groups();
  return std::ranges::all_of(groups, [](const NodeGroup& group) {
    const NodeConfig& node = *group.node;
    return node.device->compute_capability.evidence != yaml::Evidence::kTransferred &&
           node.gpus_per_tray.value_or(node.gpus) == node.gpus;
  });
}

Pxn pxn_of(const ClusterConfig& config, bool rails_meet) {
  if (config.pxn) return *config.pxn ? Pxn::kAlways : Pxn::kNever;
  if (!rails_meet) return Pxn::kAlways;
  return has_pxn(config) ? Pxn::kPeers : Pxn::kNever;
}

/// Where the network does not join rails, hosts must do so over NVLink. A custom fabric is taken as
/// given: where its cables leave rails apart, hosts join what they can.
Status fault_in_rails(const ClusterConfig& config, const ErrorMaker& error) {
  if (config.fabric.kind == "custom") return {};
  for (const auto& group : config.node_groups()) {
    const NodeConfig& node = *group.node;
    if (node.wiring || !node.nics || node.nics->count < 2 || node.gpus < 2) continue;
    if (!config.pxn.value_or(true))
      return error("pxn",
                   "in a " + config.fabric.kind +
                       " fabric rails meet only inside of hosts, over NVLink (PXN)",
                   "remove pxn: false, or choose a fabric that joins rails: rail-fat-tree");
    if (!node.nvlink)
      return error("node",
                   "in a " + config.fabric.kind +
                       " fabric rails meet only over NVLink, which this node does not have",
                   "choose a fabric that joins rails: rail-fat-tree");
  }
  return {};
}

Status fault_in_size(const ClusterConfig& config, const ErrorMaker& error) {
  const std::size_t most = limits::raised(limits::kDevices);
  double devices = 0;
  for (const auto& group : config.node_groups())
    devices += static_cast<double>(group.nodes) * static_cast<double>(group.node->gpus);
  if (devices <= static_cast<double>(most)) return {};
  return error(config.groups.empty() ? "nodes" : "groups",
               "more than " + std::to_string(most) + " devices: larger than any cluster",
               limits::kRemedy);
}

/// Arguments of add_cpu_memory().
struct CpuMemory {
  BytesPerSecond bandwidth;
  double efficiency = 1;
  std::int32_t node = 0;
  VertexId first;
  VertexId last;
};

/// Builds the nodes.
/// \param memory  receives the nodes' memories, to be added after the fabric, so that the ids of
///     other vertices and links do not depend on whether a node gives the rate of its memory.
/// \return the nodes' NICs.
Result<std::vector<FabricPort>> add_nodes(ClusterView::Builder& builder,
                                          const ClusterConfig& config, const ErrorMaker& error,
                                          std::vector<CpuMemory>& memory) {
  std::map<std::string, DeviceTypeId> types;
  std::vector<FabricPort> ports;
  std::int64_t first = 0;
  for (const auto& group : config.node_groups()) {
    NodeConfig node = *group.node;
    if (config.node_count() > 1 && !has_nics(node))
      return error("node",
                   "a cluster of " + std::to_string(config.node_count()) + " nodes needs NICs",
                   "add nics: {count: ..., bandwidth: ...} to the node");
    if (config.host) node.host = *config.host;
    const auto type = type_id(builder, types, *node.device);
    for (std::int64_t i = 0; i < group.nodes; ++i) {
      const auto built = build_node(builder, node, type);
      if (node.cpu.memory_bandwidth)
        memory.push_back({.bandwidth = **node.cpu.memory_bandwidth,
                          .efficiency = *node.cpu.memory_efficiency,
                          .node = built.node,
                          .first = built.first,
                          .last = built.last});
      for (std::size_t rail = 0; rail < built.nics.size(); ++rail)
        ports.push_back({.nic = built.nics[rail].vertex,
                         .name = builder.vertices()[built.nics[rail].vertex.index()].name,
                         .node = first + i,
                         .rail = static_cast<std::int64_t>(rail),
                         .bandwidth = built.nics[rail].bandwidth,
                         .latency = built.nics[rail].latency,
                         .efficiency = built.nics[rail].efficiency});
    }
    first += group.nodes;
  }
  return ports;
}

Result<ClusterView> build(const ClusterConfig& config, const ErrorMaker& error) {
  if (const auto fault = fault_in_nodes(config); !fault.empty()) return error("node", fault, "");
  FORESHARD_TRY(fault_in_size(config, error));
  if (const auto fault = fault_in_keys(config.fabric))
    return error("fabric." + fault->key, fault->message, fault->help);
  const Fabric& fabric = *find_fabric(config.fabric.kind);
  const std::int64_t nodes = config.node_count();
  ClusterView::Builder builder(config.name);
  bool joined = true;
  std::vector<CpuMemory> memory;
  FORESHARD_ASSIGN(auto ports, add_nodes(builder, config, error, memory));
  if (nodes > 1) {
    const FabricPlan plan{.config = config.fabric,
                          .ports = std::move(ports),
                          .nodes = nodes,
                          .merged = config.routing != Routing::kEcmpHash && config.down.empty() &&
                                    only_devices(config.degraded) && !config.single_cables};
    if (const auto fault = fabric.fault(plan))
      return error("fabric." + fault->key, fault->message, fault->help);
    fabric.build(builder, plan);
    joined = rails_meet(plan.ports, builder.links(), builder.vertices().size());
    if (!joined) FORESHARD_TRY(fault_in_rails(config, error));
    builder.set_reduces_in_network(config.sharp);
  }
  builder.set_routing(config.routing, static_cast<std::uint64_t>(config.seed),
                      pxn_of(config, joined));
  for (const CpuMemory& of : memory)
    add_cpu_memory(builder, of.bandwidth, of.efficiency, of.node, of.first, of.last);
  FORESHARD_TRY(take_down(builder, config, error));
  FORESHARD_TRY(degrade(builder, config, error));
  return std::move(builder).build();
}

}  // namespace

std::vector<NodeGroup> ClusterConfig::node_groups() const {
  if (!groups.empty() || !node) return groups;
  return {{nodes, *node}};
}
std::int64_t ClusterConfig::node_count() const {
  std::int64_t count = 0;
  for (const auto& group : node_groups()) count += group.nodes;
  return count;
}
std::int64_t ClusterConfig::device_count() const {
  std::int64_t count = 0;
  for (const auto& group : node_groups()) count += group.nodes * group.node->gpus;
  return count;
}

Result<ClusterView> build_cluster(const ClusterConfig& config, const yaml::Loader& loader,
                                  std::string_view at) {
  return build(
      config, [&](const std::string& key, const std::string& message, const std::string& help) {
        return loader.error_at(at.empty() ? key : std::string(at) + "." + key, message, help);
      });
}

Result<ClusterView> build_cluster(const ClusterConfig& config) {
  return build(
      config, [](const std::string& key, const std::string& message, const std::string& help) {
        const std::string advice = help.empty() ? "" : " (" + help + ")";
        return Error{Error::Code::kInvalidInput, "cluster." + key + ": " + message + advice};
      });
}

const yaml::Names<Routing>& yaml_names(const Routing*) {
  static const yaml::Names<Routing> names{
      {"spread", Routing::kSpread, "Equal-cost paths carry equal parts of every flow."},
      {"ecmp-hash", Routing::kEcmpHash, "Each flow takes one of them, by a hash with the seed."},
      {"up-down", Routing::kUpDown, "Equal spread over shortest paths that go up, then down."},
      {"adaptive", Routing::kAdaptive,
       "Dragonflies and tori: as spread while queues are even; else over non-minimal ways too."},
  };
  return names;
}

const yaml::Table<NodeGroup>& yaml_table(const NodeGroup*) {
  static const auto table =
      yaml::Table<NodeGroup>("group", "Equal nodes of a cluster that has several kinds.")
          .optional("nodes", &NodeGroup::nodes, "Number of nodes.", yaml::between(1, 1e6))
          .required("node", &NodeGroup::node, "Their kind.");
  return table;
}

const yaml::Table<Degradation>& yaml_table(const Degradation*) {
  static const auto table =
      yaml::Table<Degradation>("degradation",
                               "Links or devices that are slower than they should be.")
          .optional("links", &Degradation::links, "A selector of links, as in `down`.")
          .optional("factor", &Degradation::factor,
                    "Part of their bandwidth that these links keep.", yaml::at_least(1e-6),
                    yaml::at_most(1.0))
          .optional("devices", &Degradation::devices, "A selector of devices: 'node3/gpu5'.")
          .optional("speed", &Degradation::speed, "Part of their speed that these devices keep.",
                    yaml::at_least(1e-6), yaml::at_most(1.0))
          .check("links", fault_in_degradation);
  return table;
}

const yaml::Table<ClusterConfig>& yaml_table(const ClusterConfig*) {
  using C = ClusterConfig;
  static const auto table =
      yaml::Table<C>("cluster", "Machines and the network between them.")
          .folder("clusters")
          .optional("name", &C::name, "Name in reports.", yaml::non_empty())
          .optional("nodes", &C::nodes, "Number of nodes.", yaml::at_least(1), yaml::at_most(1e6))
          .optional("node", &C::node, "The kind of every node.")
          .optional(
              "groups", &C::groups,
              "Instead of `nodes` and `node`: nodes of several kinds, numbered in this order.")
          .optional("fabric", &C::fabric, "The network between nodes.")
          .optional("routing", &C::routing, "Which paths between switches a flow takes.")
          .optional("pxn", &C::pxn,
                    "Whether a NIC of another rail is reached over NVLink, through the GPU of this "
                    "host that is next to it. By default as in NCCL: by sends and all-to-alls of "
                    "NVIDIA's GPUs, and by all where rails meet nowhere else.")
          .optional("seed", &C::seed, "Seed of routing: ecmp-hash.", yaml::at_least(0))
          .optional("sharp", &C::sharp,
                    "The switches of the network add up what passes (SHARP), so that collectives "
                    "may leave the sums to them.")
          .optional(
              "down", &C::down,
              "What does not work: 'node3/gpu5' is that device, NIC or switch with every link "
              "of it, 'node3' all of that node, 'node3/nic0 - pod0/leaf0' the links between two; * "
              "stands for any text.",
              yaml::non_empty())
          .optional("degraded", &C::degraded,
                    "Links and devices that are slower than they should be.")
          .optional("host", &C::host, "The CPU side, in place of that of the nodes.")
          .optional("rent", &C::rent,
                    "Price of one device, in place of that in its catalogue entry.",
                    yaml::non_negative())
          .optional("price", &C::price,
                    "What one device cost to buy, with its share of hosts and network; it is "
                    "written off evenly over `lifetime`. Instead of rent.",
                    yaml::non_negative())
          .optional("lifetime", &C::lifetime, "How long what was bought is used: 4 y.",
                    yaml::positive())
          .optional("switch_power", &C::switch_power,
                    "What each switch of the fabric draws, at all times.", yaml::non_negative())
          .optional("other_power", &C::other_power,
                    "What else the cluster draws, at all times: storage, management.",
                    yaml::non_negative())
          .optional("pue", &C::pue,
                    "Power usage effectiveness: what the site draws over what its machines draw "
                    "(default: 1, the machines alone).",
                    yaml::at_least(1))
          .optional("electricity", &C::electricity,
                    "Price of energy, where it is paid on top of rent or price.",
                    yaml::non_negative())
          .optional("carbon", &C::carbon, "CO2 that the electricity stands for: 0.4 kg/kWh.",
                    yaml::non_negative())
          .check("node", fault_in_nodes)
          .check("price", fault_in_price);
  return table;
}

}  // namespace foreshard
