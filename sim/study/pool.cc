// Lays out the devices that a study's ranks may run on (study.h, pool_of), for study.cc. Devices
// that are down, or that `use` does not name, are left out; a name that matches no working device
// is an error.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "base/check.h"

#include "sim/study/study.h"
#include "topology/select.h"

namespace foreshard::study {
namespace {

constexpr std::size_t kMostNames = 6;

std::string name_of(const ClusterView& cluster, DeviceId device) {
  return cluster.vertices()[cluster.devices()[device.index()].vertex.index()].name;
}

// "node1/gpu3 is down", "node1/gpu3 and node1/gpu4 are down".
std::string down_text(const ClusterView& cluster) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < cluster.devices().size(); ++d)
    if (!cluster.devices()[d].up)
      names.push_back(name_of(cluster, DeviceId{static_cast<std::int64_t>(d)}));
  if (names.empty()) return "";
  if (names.size() == 1) return names.front() + " is down";
  std::string last = names.back();
  if (names.size() > kMostNames) {
    last = fmt::format("{} more", names.size() - kMostNames);
    names.resize(kMostNames + 1);
  }
  names.pop_back();
  return fmt::format("{} and {} are down", fmt::join(names, ", "), last);
}

// The devices that the selector names; a node's name stands for its devices.
std::vector<DeviceId> selected(const std::string& selector, const ClusterView& cluster) {
  auto devices = select_devices(selector, cluster);
  return devices.empty() ? select_devices(selector + "/*", cluster) : devices;
}

}  // namespace

program::Program Pool::placed(program::Program program) const {
  FORESHARD_CHECK(program.ranks() <= size());
  program.device_of_rank.assign(devices.begin(), devices.begin() + program.ranks());
  // An empty mapping means that rank r runs on device r.
  std::vector<std::int32_t> ascending(program.device_of_rank.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  if (program.device_of_rank == ascending) program.device_of_rank.clear();
  return program;
}

std::vector<NodeGroup> groups_with(const ClusterConfig& cluster,
                                   std::span<const std::int32_t> devices) {
  std::vector<NodeGroup> groups;
  std::int64_t first = 0;
  for (NodeGroup& group : cluster.node_groups()) {
    const std::int64_t end = first + group.nodes * group.node->gpus;
    if (std::ranges::any_of(devices, [&](std::int64_t d) { return d >= first && d < end; }))
      groups.push_back(std::move(group));
    first = end;
  }
  return groups;
}

Result<Pool> pool_of(const ClusterConfig& cluster, const std::vector<std::string>& use,
                     const yaml::Loader& loader) {
  Pool pool;
  if (use.empty() && cluster.down.empty()) {
    pool.devices.resize(static_cast<std::size_t>(cluster.device_count()));
    std::iota(pool.devices.begin(), pool.devices.end(), 0);
    return pool;
  }
  pool.named = !use.empty();
  const auto view = build_cluster(cluster, loader, "cluster");
  if (!view) return view.error();
  std::vector<bool> taken(view->devices().size());
  const auto take = [&](DeviceId device) {
    if (!view->devices()[device.index()].up || taken[device.index()]) return;
    taken[device.index()] = true;
    pool.devices.push_back(static_cast<std::int32_t>(device.value()));
  };
  for (std::size_t i = 0; i < use.size(); ++i) {
    const auto devices = selected(use[i], *view);
    const auto at = fmt::format("use.{}", i);
    if (devices.empty())
      return loader.error_at(
          at, fmt::format("'{}' matches no device", use[i]),
          "they are called node0/gpu0, node0/gpu1, ..., and node0 is all of that "
          "node; * stands for any text");
    if (std::ranges::none_of(devices, [&](DeviceId d) { return view->devices()[d.index()].up; }))
      return loader.error_at(at, fmt::format("'{}' is down in cluster '{}'", use[i], view->name()),
                             "name devices that work, or take it out of the cluster's down");
    for (const DeviceId device : devices) take(device);
  }
  if (use.empty())
    for (std::size_t d = 0; d < taken.size(); ++d) take(DeviceId{static_cast<std::int64_t>(d)});
  if (pool.size() == cluster.device_count()) return pool;
  pool.shortage = down_text(*view);
  if (!use.empty())
    pool.shortage =
        fmt::format("{}{}use names {} of the cluster's {} devices", pool.shortage,
                    pool.shortage.empty() ? "" : "; ", pool.size(), cluster.device_count());
  return pool;
}

}  // namespace foreshard::study
