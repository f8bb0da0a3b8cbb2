// Scales the sustained rates of products and attention down to those of the slowest device.
#include "topology/clock_spread.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace foreshard {

double deviations_of_slowest(std::int64_t devices) {
  FORESHARD_CHECK(devices >= 1);
  const auto n = static_cast<double>(devices);
  return boost::math::quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
}

double share_of_slowest(const DeviceType& type, std::int64_t devices) {
  return 1 - *type.efficiency->clock_spread * deviations_of_slowest(devices);
}

DeviceType slowest_of(DeviceType type, std::int64_t devices) {
  const double left = share_of_slowest(type, devices);
  own_products(type);
  DeviceEfficiency efficiency = *type.efficiency;
  efficiency.gemm.sustained *= left;
  for (auto& [dtype, sustained] : efficiency.gemm.sustained_of) sustained *= left;
  efficiency.attention.sustained *= left;
  for (auto& [implementation, attention] : efficiency.attention_of) attention.sustained *= left;
  type.efficiency = yaml::Ref<DeviceEfficiency>{std::move(efficiency), type.efficiency.name};
  return type;
}

ClusterConfig at_clocks_of_slowest(ClusterConfig cluster, std::span<const std::int32_t> used) {
  std::vector<std::int32_t> sorted(used.begin(), used.end());
  std::ranges::sort(sorted);
  std::map<std::string, std::int64_t> members;  // device type -> used devices
  std::int64_t end = 0;
  auto next = sorted.begin();
  for (const NodeGroup& group : cluster.node_groups()) {
    end += group.nodes * group.node->gpus;
    const auto behind = std::ranges::lower_bound(next, sorted.end(), end);
    members[group.node->device->name] += behind - next;
    next = behind;
  }
  const auto slow = [&](NodeConfig& node) {
    DeviceType& type = node.device.value;
    if (const std::int64_t count = members[type.name]; count > 1)
      type = slowest_of(std::move(type), count);
  };
  if (cluster.node) slow(cluster.node->value);
  for (NodeGroup& group : cluster.groups) slow(group.node.value);
  return cluster;
}

}  // namespace foreshard
