#include "tests/sim/simulate/random_cluster.h"

#include "base/check.h"
#include "tests/sim/compute/toy_device.h"

namespace foreshard {
namespace {

DeviceType device(const std::string& name, double speed) {
  DeviceType type = test::toy_device();
  type.name = name;
  type.memory_bandwidth.value = type.memory_bandwidth.value * speed;
  type.tensor_peak["bf16"].value = type.tensor_peak["bf16"].value * speed;
  type.vector_peak.value = type.vector_peak.value * speed;
  return type;
}

std::int64_t divisor(std::mt19937& random, std::int64_t of, std::int64_t limit) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(of, limit); ++d) {
    if (of % d == 0) divisors.push_back(d);
  }
  return divisors[random() % divisors.size()];
}

}  // namespace

ClusterView random_cluster(std::mt19937& random, std::int64_t devices, const ClusterShape& shape) {
  NodeConfig node;
  node.gpus =
      shape.one_slow_node ? divisor(random, devices, devices / 2) : divisor(random, devices, 8);
  node.device.value = device("usual", shape.speed);
  node.nvlink.emplace();
  node.nvlink->bandwidth.value = 100_GB_s * shape.bandwidth;
  node.pcie.generation = 5;
  node.pcie.efficiency.value = shape.bandwidth;
  node.pcie.socket_bandwidth.value = node.pcie.socket_bandwidth.value * shape.bandwidth;
  node.nics.emplace();
  node.nics->count = divisor(random, node.gpus, 8);
  node.nics->bandwidth.value = 25_GB_s * shape.bandwidth;

  node.cpu.memory_bandwidth.emplace().value = 100_GB_s * shape.bandwidth;

  ClusterConfig config;
  config.name = "random";
  config.nodes = devices / node.gpus;
  config.routing = shape.routing;
  config.seed = static_cast<std::int64_t>(random() % 1000);
  if (random() % 2 == 0) {
    config.fabric.kind = "single-switch";
  } else {
    config.fabric.kind = "rail-fat-tree";
    config.fabric.nodes_per_pod = divisor(random, config.nodes, 8);
    config.fabric.oversubscription = {random() % 2 == 0 ? 1.0 : 2.0};
  }
  if (shape.one_slow_node) {
    NodeConfig slow = node;
    slow.device.value = device("slow", shape.speed / 2);
    config.groups = {{.nodes = config.nodes - 1, .node = {node, ""}},
                     {.nodes = 1, .node = {slow, ""}}};
  } else {
    config.node = yaml::Ref<NodeConfig>{node, ""};
  }
  auto cluster = build_cluster(config);
  FORESHARD_CHECK(cluster.has_value());
  return *std::move(cluster);
}

}  // namespace foreshard
