#include "topology/cluster_for.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foreshard {
namespace {

/// The slowest port that new machines with several adapters are built with.
constexpr BytesPerSecond kSlowestSharedPort = 100_Gbit_s;

Error fault(const std::string& why) {
  return {Error::Code::kInvalidInput, why};
}

/// A part of a machine has the links of that part; how a larger machine would be linked is unknown.
std::string fault_in_growth(const NodeConfig& node, std::int64_t gpus) {
  if (gpus <= node.gpus) return "";
  const std::string has = "has " + std::to_string(node.gpus) + (node.gpus == 1 ? " GPU" : " GPUs") +
                          ", and how " + std::to_string(gpus) + " would be joined is not known: ";
  const std::string remedy = "describe the machine (configs/nodes) and name it";
  if (node.nvlink) return has + "its NVLinks join no more; " + remedy;
  if (node.gpus == 1) return has + remedy;
  return "";
}

/// \pre `fault_in_growth` finds nothing: beyond the machine's GPUs only PCIe is added.
void resize(NodeConfig& node, std::int64_t gpus) {
  if (gpus == node.gpus) return;
  if (node.nics) {
    const std::int64_t scaled = std::max<std::int64_t>(1, node.nics->count * gpus / node.gpus);
    node.nics->count = scaled % gpus == 0 ? scaled : std::gcd(scaled, gpus);
  }
  if (node.nvlink)
    std::erase_if(node.nvlink->pairs,
                  [&](const NvlinkPair& pair) { return pair.a >= gpus || pair.b >= gpus; });
  // The first GPUs of the machine, under as many of its switches and sockets as they fill.
  const std::int64_t per_switch = std::max<std::int64_t>(1, node.gpus / pcie_switches(node));
  const std::int64_t sockets = std::max<std::int64_t>(1, node.pcie.sockets);
  const std::int64_t per_socket = std::max<std::int64_t>(1, node.gpus / sockets);
  node.pcie.switches.reset();
  if (gpus < node.gpus && (gpus % per_switch == 0 || gpus < per_switch)) {
    node.pcie.switches = std::max<std::int64_t>(1, gpus / per_switch);
    node.pcie.sockets = std::min(node.pcie.sockets, (gpus + per_socket - 1) / per_socket);
  }
  node.gpus = gpus;
}

void set_network(NodeConfig& node, BytesPerSecond per_gpu) {
  if (!node.nics) node.nics = NicConfig{.count = node.gpus};
  auto& nics = *node.nics;
  const BytesPerSecond total = static_cast<double>(node.gpus) * per_gpu;
  const BytesPerSecond own = static_cast<double>(nics.count) * *nics.bandwidth;
  if (total == own) return;
  if (total < own) {
    std::int64_t count = std::max<std::int64_t>(1, nics.count / 2);
    while (count > 1 &&
           (node.gpus % count != 0 || total / static_cast<double>(count) < kSlowestSharedPort))
      --count;
    nics.count = count;
    node.pcie.switches.reset();
  }
  nics.bandwidth = {total / static_cast<double>(nics.count), "", yaml::Evidence::kUser};
  node.pcie.generation.reset();
}

/// GPUs per NVLink domain: the most trays of a rack that divide the GPUs evenly.
std::int64_t domain_size(const NodeConfig& rack, std::int64_t gpus) {
  const std::int64_t tray = *rack.gpus_per_tray;
  for (std::int64_t size = std::min(rack.gpus, gpus) / tray * tray; size > tray; size -= tray)
    if (gpus % size == 0) return size;
  return std::min(tray, gpus);
}

}  // namespace

Result<ClusterConfig> cluster_for(const ClusterRequest& request, yaml::Loader& loader) {
  if (request.gpus < 1 || request.gpus_per_node < 1)
    return fault("a cluster needs at least 1 GPU and 1 GPU per node, got " +
                 std::to_string(request.gpus) + " and " + std::to_string(request.gpus_per_node));
  if (request.internode_per_gpu && !(*request.internode_per_gpu > BytesPerSecond()))
    return fault("the network rate per GPU must be positive");
  std::string entry = request.node.empty() ? "by-device/" + request.device : request.node;
  FORESHARD_ASSIGN(NodeConfig node, loader.read_ref<NodeConfig>(entry, "node"));
  if (request.node.empty() && request.gpus_per_node > node.gpus) {
    const std::string larger = entry + "-" + std::to_string(request.gpus_per_node) + "gpu";
    if (auto found = loader.read_ref<NodeConfig>(larger, "node")) {
      node = *std::move(found);
      entry = larger;
    }
  }
  if (node.wiring) return fault("node '" + entry + "' is wired link by link and cannot be resized");
  if (node.device->name != request.device)
    return fault("node '" + entry + "' has " + node.device->name + ", not " + request.device);

  const std::int64_t per_node = node.gpus_per_tray && *node.gpus_per_tray == request.gpus_per_node
                                    ? domain_size(node, request.gpus)
                                    : std::min(request.gpus_per_node, request.gpus);
  if (request.gpus % per_node != 0)
    return fault(std::to_string(request.gpus) + " GPUs do not fill nodes of " +
                 std::to_string(per_node));
  if (const std::string why = fault_in_growth(node, per_node); !why.empty())
    return fault("node '" + entry + "' " + why);
  resize(node, per_node);
  if (request.pcie_switches && !node.nvlink) {
    node.pcie.switches = request.pcie_switches;
    node.pcie.sockets = std::min(node.pcie.sockets, *node.pcie.switches);
  }
  if (request.internode_per_gpu) set_network(node, *request.internode_per_gpu);
  if (!request.transport.empty() && node.nics) {
    FORESHARD_ASSIGN(auto transport, loader.read_ref<Transport>(request.transport, "transport"));
    node.nics->transport = yaml::Ref<Transport>{std::move(transport), request.transport};
  }

  ClusterConfig config;
  config.nodes = request.gpus / per_node;
  config.name = std::to_string(request.gpus) + " x " + request.device;
  if (config.nodes > 1 && node.nics && node.nics->count > 1) config.fabric.kind = "rail-fat-tree";
  config.node = yaml::Ref<NodeConfig>{std::move(node), entry};
  return config;
}

}  // namespace foreshard
