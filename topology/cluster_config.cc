#include "topology/cluster_config.h"

#include <functional>
#include <map>
#include <utility>

#include "topology/cluster_builder.h"
#include "topology/fabrics/fabric.h"
#include "topology/internal/selector.h"
#include "topology/nodes/node_builder.h"

namespace foreshard {
namespace {

/// Makes an error of (path of keys, message, help).
using ErrorMaker = std::function<Error(const std::string&, const std::string&, const std::string&)>;

std::string fault_in_nodes(const ClusterConfig& config) {
  if (config.node && !config.groups.empty()) return "is given, but so are groups: choose one";
  if (!config.node && config.groups.empty())
    return "is missing: say which machine a node is, for example node: dgx-a100-80gb";
  return "";
}

/// Device types are shared by nodes that refer to the same entry or say the same name.
DeviceTypeId type_id(ClusterView::Builder& builder, std::map<std::string, DeviceTypeId>& known,
                     const DeviceType& type) {
  const auto [slot, added] = known.try_emplace(type.name);
  if (added) slot->second = builder.add_device_type(type);
  return slot->second;
}

std::optional<Error> apply_faults(ClusterView::Builder& builder, const ClusterConfig& config,
                                  const ErrorMaker& error) {
  const auto select = [&](const std::string& selector) {
    return internal::select_links(selector, builder.vertices(), builder.links());
  };
  const std::string help = "vertices are called node0/gpu0, node0/nic0, pod0/leaf0, spine0, ...";
  for (std::size_t i = 0; i < config.down.size(); ++i) {
    const auto links = select(config.down[i]);
    if (links.empty())
      return error("down." + std::to_string(i), "'" + config.down[i] + "' matches no link", help);
    for (const auto link : links) builder.take_down(link);
  }
  for (std::size_t i = 0; i < config.degraded.size(); ++i) {
    const auto& [selector, factor] = config.degraded[i];
    const auto links = select(selector);
    if (links.empty())
      return error("degraded." + std::to_string(i) + ".links", "'" + selector + "' matches no link",
                   help);
    for (const auto link : links) builder.degrade(link, factor);
  }
  return std::nullopt;
}

void set_efficiencies_of_nics(ClusterView::Builder& builder,
                              const std::map<VertexId, double>& efficiency_of_nic) {
  const auto count = static_cast<std::int64_t>(builder.links().size());
  for (std::int64_t i = 0; i < count; ++i) {
    const Link& link = builder.links()[static_cast<std::size_t>(i)];
    if (link.kind != LinkKind::kNetwork) continue;
    auto nic = efficiency_of_nic.find(link.from);
    if (nic == efficiency_of_nic.end()) nic = efficiency_of_nic.find(link.to);
    if (nic != efficiency_of_nic.end()) builder.set_efficiency(LinkId{i}, nic->second);
  }
}

Result<ClusterView> build(const ClusterConfig& config, const ErrorMaker& error) {
  if (const auto fault = fault_in_nodes(config); !fault.empty()) return error("node", fault, "");
  ClusterView::Builder builder(config.name);
  builder.set_routing(config.routing, static_cast<std::uint64_t>(config.seed));
  std::map<std::string, DeviceTypeId> types;
  std::map<VertexId, double> efficiency_of_nic;
  FabricPlan plan{.config = config.fabric,
                  .ports = {},
                  .nodes = config.node_count(),
                  .merged = config.routing == Routing::kSpread && config.down.empty() &&
                            config.degraded.empty() && !config.single_cables};
  std::int64_t first = 0;
  for (const auto& group : config.node_groups()) {
    NodeConfig node = *group.node;
    if (config.host) node.host = *config.host;
    const auto type = type_id(builder, types, *node.device);
    for (std::int64_t i = 0; i < group.nodes; ++i) {
      const auto built = build_node(builder, node, type);
      for (const auto& nic : built.nics) efficiency_of_nic[nic.vertex] = nic.efficiency;
      for (std::size_t rail = 0; rail < built.nics.size(); ++rail)
        plan.ports.push_back({built.nics[rail].vertex, first + i, static_cast<std::int64_t>(rail),
                              built.nics[rail].bandwidth, built.nics[rail].latency});
    }
    if (plan.nodes > 1 && !has_nics(node))
      return error("node", "a cluster of " + std::to_string(plan.nodes) + " nodes needs NICs",
                   "add nics: {count: ..., bandwidth: ...} to the node");
    first += group.nodes;
  }
  if (plan.nodes > 1) {
    const Fabric* fabric = find_fabric(config.fabric.kind);
    if (fabric == nullptr)
      return error("fabric.kind", "no fabric is called '" + config.fabric.kind + "'", "");
    if (const auto fault = fabric->fault(plan))
      return error("fabric." + fault->key, fault->message, fault->help);
    fabric->build(builder, plan);
    set_efficiencies_of_nics(builder, efficiency_of_nic);
    builder.set_reduces_in_network(config.sharp);
  }
  if (auto fault = apply_faults(builder, config, error)) return *std::move(fault);
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
  };
  return names;
}

const yaml::Table<NodeGroup>& yaml_table(const NodeGroup*) {
  static const auto table =
      yaml::Table<NodeGroup>("group", "Equal nodes of a cluster that has several kinds.")
          .optional("nodes", &NodeGroup::nodes, "How many.", yaml::at_least(1))
          .required("node", &NodeGroup::node, "Of which kind.");
  return table;
}

const yaml::Table<Degradation>& yaml_table(const Degradation*) {
  static const auto table =
      yaml::Table<Degradation>("degradation", "Links that reach a part of their bandwidth.")
          .required("links", &Degradation::links, "A selector, as in `down`.", yaml::non_empty())
          .required("factor", &Degradation::factor, "The part.", yaml::positive(),
                    yaml::at_most(1.0));
  return table;
}

const yaml::Table<ClusterConfig>& yaml_table(const ClusterConfig*) {
  using C = ClusterConfig;
  static const auto table =
      yaml::Table<C>("cluster", "Machines and the network between them.")
          .folder("clusters")
          .optional("name", &C::name, "For reports.", yaml::non_empty())
          .optional("nodes", &C::nodes, "How many.", yaml::at_least(1), yaml::at_most(1e6))
          .optional("node", &C::node, "Which machine each of them is.")
          .optional("groups", &C::groups,
                    "Instead of `nodes` and `node`: several kinds, numbered in this order.")
          .optional("fabric", &C::fabric, "The network between nodes.")
          .optional("routing", &C::routing, "What equal-cost paths mean.")
          .optional("seed", &C::seed, "Of ecmp-hash.", yaml::at_least(0))
          .optional("sharp", &C::sharp,
                    "The switches of the network add up what passes (SHARP), so that collectives "
                    "may leave the sums to them.")
          .optional("down", &C::down,
                    "Selectors of links that do not work: 'node3/gpu5' is every link of that "
                    "vertex, 'node3/nic0 - pod0/leaf0' those between two; * stands for any text.",
                    yaml::non_empty())
          .optional("degraded", &C::degraded, "Links that are slower than they should be.")
          .optional("host", &C::host, "Instead of that of the nodes.")
          .optional("rent", &C::rent, "Of one device, instead of what its catalogue entry says.",
                    yaml::non_negative())
          .check("node", fault_in_nodes);
  return table;
}

}  // namespace foreshard
