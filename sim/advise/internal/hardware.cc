// Ideas about other machines (ideas.h): what faster links and other devices would do.
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/yaml/loader.h"

#include "sim/advise/internal/ideas.h"
#include "topology/node_config.h"

namespace foreshard::advise {
namespace {

// Whether devices of one node could stand in the other: as many, joined in the same way.
bool is_of_same_form(const NodeConfig& one, const NodeConfig& other) {
  const auto layout = [](const NodeConfig& node) {
    return node.nvlink ? std::optional(node.nvlink->layout) : std::nullopt;
  };
  return one.gpus == other.gpus && !one.wiring && !other.wiring && layout(one) == layout(other) &&
         one.gpus_per_tray == other.gpus_per_tray && has_nics(one) == has_nics(other);
}

}  // namespace

// Adapters of twice the rate in all nodes, and cables of the fabric if their rate is given.
void propose_network(Proposals& proposals) {
  const ClusterConfig& cluster = proposals.start().study().cluster;
  if (cluster.node_count() == 1) return;
  std::vector<yaml::Override> settings;
  std::string words;
  const auto twice = [&](const std::string& key, BytesPerSecond rate, std::string_view what) {
    settings.push_back({key, format_exact(2 * rate)});
    if (words.empty())
      words = fmt::format("{}: {:.4g} Gbit/s instead of {:.4g} Gbit/s", what, 2 * rate / 1_Gbit_s,
                          rate / 1_Gbit_s);
  };
  const auto groups = cluster.node_groups();
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (const NodeConfig& node = *groups[i].node; node.nics)
      twice(cluster.groups.empty() ? "cluster.node.nics.bandwidth"
                                   : fmt::format("cluster.groups.{}.node.nics.bandwidth", i),
            *node.nics->bandwidth, "adapters");
  if (words.empty()) return;
  if (const auto& uplinks = cluster.fabric.uplink_bandwidth)
    twice("cluster.fabric.uplink_bandwidth", *uplinks, "uplinks");
  proposals.hardware(std::move(words), std::move(settings));
}

// The catalogue's nodes of the same form with other devices: the first of each device.
void propose_devices(Proposals& proposals) {
  const Start& start = proposals.start();
  const ClusterConfig& cluster = start.study().cluster;
  if (!cluster.groups.empty() || !cluster.node) return;
  const NodeConfig& now = **cluster.node;
  std::set<std::string> seen{now.device->name};
  yaml::Loader loader({.catalogue = start.catalogue()});
  for (const std::string& name : loader.names<NodeConfig>()) {
    const auto node = loader.read_ref<NodeConfig>(name);
    if (!node || name.find('/') != std::string::npos || !is_of_same_form(now, *node)) continue;
    if (!seen.insert(node->device->name).second) continue;
    proposals.hardware(fmt::format("devices: {} instead of {}, in nodes {}", node->device->name,
                                   now.device->name, name),
                       {{"cluster.node", name}});
  }
}

}  // namespace foreshard::advise
