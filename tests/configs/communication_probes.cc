// What the communication library's files change: collectives on small clusters of every generation
// of devices, layout of links and transport.
#include <fmt/format.h>

#include "tests/configs/from_catalogue.h"
#include "tests/configs/probes.h"
#include "tests/configs/sweep_text.h"
#include "tests/test.h"

#include "strategies/comm/nccl/estimate.h"
#include "strategies/comm/nccl/search.h"
#include "topology/cluster_config.h"

namespace foreshard {
namespace {

using comm::CollectiveKind;

// How the four devices of a node are joined.
enum class NodeLayout { kSwitch, kMesh, kPcie };

NodeConfig node_of(const std::string& device, NodeLayout layout, const std::string& transport,
                   BytesPerSecond adapter) {
  NodeConfig node;
  node.device = {from_catalogue<DeviceType>(device), device};
  node.gpus = 4;
  node.pcie.generation = 5;
  node.pcie.switches = 2;
  node.nics = NicConfig{.count = 4};
  node.nics->bandwidth.value = adapter;
  if (!transport.empty()) node.nics->transport = {from_catalogue<Transport>(transport), transport};
  if (layout == NodeLayout::kPcie) return node;
  node.nvlink = NvlinkConfig{};
  node.nvlink->bandwidth.value = layout == NodeLayout::kSwitch ? 450_GB_s : 25_GB_s;
  if (layout == NodeLayout::kSwitch) return node;
  // Each device has links to two others.
  node.nvlink->layout = NvlinkLayout::kMesh;
  node.nvlink->pairs = {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {3, 0, 2}};
  return node;
}

// A node of each device, the second in place of the last one.
struct Machine {
  std::vector<std::string> devices;
  NodeLayout layout = NodeLayout::kSwitch;
  std::string transport{};
  BytesPerSecond adapter = 400_Gbit_s;
};

const ClusterView& cluster_of(const Machine& machine) {
  static std::map<std::string, ClusterView> built;
  std::string name = fmt::format("{} {} {}", static_cast<int>(machine.layout), machine.transport,
                                 machine.adapter.in_base());
  for (const std::string& device : machine.devices) name += " " + device;
  const auto known = built.find(name);
  if (known != built.end()) return known->second;
  ClusterConfig config;
  config.sharp = true;
  config.fabric.kind = "single-switch";
  for (const std::string& device : machine.devices)
    config.groups.push_back(
        {machine.devices.size() == 1 ? 3 : 2,
         {node_of(device, machine.layout, machine.transport, machine.adapter), ""}});
  return built.emplace(name, value_of(build_cluster(config), name)).first->second;
}

std::vector<Machine> machines() {
  std::vector<Machine> list;
  for (const char* device : {"H100-SXM", "B200", "A100-SXM-80GB", "A100-PCIe-80GB", "V100-SXM-32GB",
                             "GH200-96GB", "MI300X"})
    for (const NodeLayout layout : {NodeLayout::kSwitch, NodeLayout::kPcie, NodeLayout::kMesh})
      list.push_back({{device}, layout});
  list.push_back({{"MI355X"}, NodeLayout::kMesh});
  // Adapters slower than what two channels of LL carry.
  for (const char* device : {"A100-SXM-80GB", "A100-PCIe-80GB", "H100-SXM", "MI300X"})
    list.push_back({.devices = {device}, .adapter = 10_Gbit_s});
  // Two generations take the numbers that are common to all.
  for (const char* device : {"A100-SXM-80GB", "A100-PCIe-80GB"})
    for (const NodeLayout layout : {NodeLayout::kSwitch, NodeLayout::kPcie, NodeLayout::kMesh})
      list.push_back({{device, "V100-SXM-32GB"}, layout});
  list.push_back({.devices = {"A100-SXM-80GB", "V100-SXM-32GB"}, .adapter = 10_Gbit_s});
  list.push_back({{"host-core"}, NodeLayout::kPcie});
  for (const char* transport : {"efa", "slingshot", "slingshot-software-matching"})
    list.push_back({{"A100-SXM-80GB"}, NodeLayout::kSwitch, transport});
  return list;
}

// Parts of a cluster of four devices a node, by index.
const std::vector<std::vector<std::int64_t>>& parts() {
  static const std::vector<std::vector<std::int64_t>> list{
      {0, 1, 2, 3},                 // a node
      {0, 1, 4, 5, 8, 9},           // several, their network adapters shared by none
      {0, 4, 8},                    // one of each node
      {0, 1},                       // two of a node that share a PCIe switch
      {0, 2},                       // two of a node that do not
      {0, 1, 2, 3, 4, 5, 6, 7, 8},  // unequal nodes
      {0, 4},
  };
  return list;
}

std::vector<CollectiveKind> kinds_for(std::size_t members) {
  std::vector<CollectiveKind> kinds{CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                    CollectiveKind::kAllToAll,      CollectiveKind::kExchange,
                                    CollectiveKind::kShift,         CollectiveKind::kTokenExchange};
  if (members == 2) kinds.insert(kinds.end(), {CollectiveKind::kSend, CollectiveKind::kReceive});
  return kinds;
}

comm::Participants group_of(const Machine& machine, const std::vector<std::int64_t>& part,
                            CollectiveKind kind) {
  comm::Participants group{.cluster = &cluster_of(machine), .devices = {}};
  for (const std::int64_t device : part) group.devices.emplace_back(device);
  if (kind == CollectiveKind::kExchange) group.transfers = round_of(std::ssize(part));
  if (kind == CollectiveKind::kTokenExchange)
    group.routing = {.experts = static_cast<std::int32_t>(part.size()), .per_token = 2};
  return group;
}

// Of each generation in NCCL's tables one; what the catalogue does not have is made up.
std::vector<DeviceType> generations() {
  auto pascal = from_catalogue<DeviceType>("V100-SXM-16GB");
  pascal.compute_capability.value = 60;
  std::vector<DeviceType> list{pascal};
  for (const char* device : {"V100-SXM-16GB", "A100-SXM-80GB", "A40", "H100-SXM", "B200"})
    list.push_back(from_catalogue<DeviceType>(device));
  return list;
}

// A little more than each that NCCL's search tries, and than it takes an NVLink to carry.
std::vector<BytesPerSecond> speeds() {
  std::vector<BytesPerSecond> list;
  for (const double speed :
       {0.12, 0.24, 1.2, 2.4, 3.,  4.,  5.,  6.,  7.,   9.,  10., 11., 12., 15., 17.5, 18., 19.,
        20.,  22.,  24., 28., 30., 40., 42., 45., 45.1, 48., 50., 60., 70., 80., 90.,  96.})
    list.push_back(1.01 * speed * 1_GB_s);
  return list;
}

const ClusterView& kept(const ClusterConfig& config) {
  static std::vector<std::unique_ptr<ClusterView>> clusters;
  clusters.push_back(std::make_unique<ClusterView>(value_of(build_cluster(config))));
  return *clusters.back();
}

ClusterConfig nodes_of(std::int64_t count, const DeviceType& device, std::int64_t gpus) {
  ClusterConfig config;
  config.nodes = count;
  config.node.emplace();
  NodeConfig& node = config.node->value;
  node.device = {device, ""};
  node.gpus = gpus;
  node.pcie.generation = 6;
  config.fabric.kind = "single-switch";
  config.sharp = true;
  return config;
}

// Two devices, each on its socket, that reach each other at `speed` as NCCL counts it.
ClusterConfig two_sockets(const DeviceType& device, BytesPerSecond speed) {
  ClusterConfig config = nodes_of(1, device, 2);
  config.node->value.pcie.switches = 2;
  config.node->value.pcie.socket_bandwidth.value = 1.2 * speed;  // pcie_through_socket
  return config;
}

// Nodes of one device whose adapters have this speed.
ClusterConfig one_each(const DeviceType& device, BytesPerSecond speed) {
  ClusterConfig config = nodes_of(3, device, 1);
  config.node->value.nics = NicConfig{.count = 1};
  config.node->value.nics->bandwidth.value = speed;
  return config;
}

// Nodes with a fast adapter per device, and an NVLink switch or PCIe alone.
ClusterConfig three_nodes(const DeviceType& device, std::int64_t gpus, bool has_nvlink) {
  ClusterConfig config = nodes_of(3, device, gpus);
  if (has_nvlink) {
    config.node->value.nvlink = NvlinkConfig{};
    config.node->value.nvlink->bandwidth.value = 450_GB_s;
  }
  config.node->value.nics = NicConfig{.count = gpus};
  config.node->value.nics->bandwidth.value = 50_GB_s;
  return config;
}

// Domains of twelve: more heads than the eight that NVLS was fitted with.
ClusterConfig large_domains(std::int64_t count) {
  ClusterConfig config = nodes_of(count, from_catalogue<DeviceType>("B200"), 12);
  config.sharp = false;
  config.node->value.nvlink = NvlinkConfig{};
  config.node->value.nvlink->bandwidth.value = 900_GB_s;
  config.node->value.nics = NicConfig{.count = 12};
  config.node->value.nics->bandwidth.value = 200_GB_s;
  return config;
}

// What NCCL's tuner says of a group.
std::string estimates_text(const comm::Participants& group, const comm::nccl::Tables& tables) {
  const auto communicator = comm::nccl::communicator_of(group, tables);
  if (!communicator) return communicator.error().message;
  std::string text;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast})
    for (Bytes size = 64_B; size <= 1_GiB; size = size * 2)
      for (const auto& estimate : comm::nccl::estimates(kind, size, *communicator, tables))
        text += fmt::format("{} {} {} {};", estimate.algorithm, comm::name_of(estimate.protocol),
                            estimate.channels, estimate.time.in_base());
  return text;
}

}  // namespace

Probes<comm::Parameters> probes_of(const comm::Parameters*, const std::string&) {
  Probes<comm::Parameters> probes;
  for (const Machine& machine : machines())
    for (const auto& part : parts())
      for (const CollectiveKind kind : kinds_for(part.size()))
        probes.push_back([machine, &part, kind](const comm::Parameters& parameters) {
          comm::Parameters without_tuner = parameters;
          without_tuner.tuner = comm::TunerKind::kFastest;
          without_tuner.nccl.reset();
          return sweep_text(kind, group_of(machine, part, kind), without_tuner);
        });
  probes.push_back([](const comm::Parameters& parameters) {
    return sweep_text(CollectiveKind::kAllReduce,
                      group_of(machines().front(), parts().front(), CollectiveKind::kAllReduce),
                      parameters);
  });
  for (const std::int64_t domains : {1, 2}) {
    probes.push_back([domains](const comm::Parameters& parameters) {
      static std::map<std::int64_t, const ClusterView*> built;
      const ClusterView*& cluster = built[domains];
      if (cluster == nullptr) cluster = &kept(large_domains(domains));
      comm::Participants group{.cluster = cluster, .devices = {}};
      for (std::int64_t i = 0; i < std::ssize(cluster->devices()); ++i)
        group.devices.emplace_back(i);
      return sweep_text(CollectiveKind::kAllReduce, group, parameters);
    });
  }
  return probes;
}

Probes<comm::nccl::Tables> probes_of(const comm::nccl::Tables*, const std::string&) {
  Probes<comm::nccl::Tables> probes;
  const auto add = [&](const ClusterView& cluster, std::vector<DeviceId> devices) {
    probes.push_back(
        [group = comm::Participants{.cluster = &cluster, .devices = std::move(devices)}](
            const comm::nccl::Tables& tables) { return estimates_text(group, tables); });
  };
  for (const DeviceType& device : generations()) {
    for (const BytesPerSecond speed : speeds()) {
      const ClusterView& sockets = kept(two_sockets(device, speed));
      add(sockets, {DeviceId(0), DeviceId(1)});
      const ClusterView& networked = kept(one_each(device, speed));
      add(networked, {DeviceId(0), DeviceId(1)});
      add(networked, {DeviceId(0), DeviceId(1), DeviceId(2)});
    }
    for (const std::int64_t gpus : {4, 5, 8}) {
      const ClusterView& cluster = kept(three_nodes(device, gpus, gpus != 4));
      for (const std::int64_t nodes : {1, 2, 3}) {
        std::vector<DeviceId> devices;
        for (std::int64_t i = 0; i < nodes * gpus; ++i) devices.emplace_back(i);
        add(cluster, std::move(devices));
      }
    }
  }
  // Nodes whose slots limit their adapters.
  for (const char* device : {"V100-SXM-32GB", "A100-SXM-80GB"})
    for (const NodeLayout layout : {NodeLayout::kSwitch, NodeLayout::kPcie, NodeLayout::kMesh})
      for (const auto& part : parts()) {
        auto group = group_of({{device}, layout}, part, CollectiveKind::kAllReduce);
        add(*group.cluster, std::move(group.devices));
      }
  return probes;
}

}  // namespace foreshard
