#include "topology/fabrics/clos.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"

namespace foreshard::internal {
namespace {

/// A switch of one level. The switches of one group reach the same nodes.
struct Switch {
  VertexId vertex;
  std::int64_t group = 0;
  std::int64_t place = 0;  ///< Index in its group.
  BytesPerSecond down;     ///< Sum of its links to the level below.
};

/// Rounding must not turn an exact quotient into one cable more.
constexpr double kTolerance = 1e-9;

std::string level_name(std::int64_t level) {
  if (level == 2) return "spine";
  if (level == 3) return "core";
  return "level" + std::to_string(level) + "-";
}

std::vector<Switch> add_leaves(ClusterView::Builder& builder, const FabricConfig& config,
                               const ClosPlan& plan) {
  std::map<std::pair<std::int64_t, std::int64_t>, Switch> leaves;
  for (const auto& port : plan.ports) {
    const std::int64_t pod = port.node / plan.nodes_per_pod;
    const std::int64_t place = plan.leaf_per == LeafPer::kRail ? port.rail : 0;
    auto& leaf = leaves[{pod, place}];
    if (!leaf.vertex.valid()) {
      const std::string name =
          plan.prefix + "pod" + std::to_string(pod) + "/leaf" + std::to_string(place);
      leaf = {builder.add_vertex(VertexKind::kSwitch, name), pod, place, BytesPerSecond()};
    }
    leaf.down += port.bandwidth;
    connect_port(builder, port, leaf.vertex, *config.latency);
  }
  std::vector<Switch> result;
  result.reserve(leaves.size());
  for (auto& [key, leaf] : leaves) result.push_back(leaf);
  return result;
}

std::int64_t groups_joined(const FabricConfig& config, const ClosPlan& plan, std::int64_t level) {
  const auto index = static_cast<std::size_t>(level - 2);
  if (level == plan.levels) return std::max<std::int64_t>(1, plan.nodes);  // all
  return config.pods_per_block[index];
}

/// The switches of `level` above `below`.
std::vector<Switch> add_level(ClusterView::Builder& builder, const FabricConfig& config,
                              const ClosPlan& plan, std::int64_t level, BytesPerSecond cable,
                              const std::vector<Switch>& below) {
  BytesPerSecond down;
  for (const auto& lower : below) down = std::max(down, lower.down);
  const BytesPerSecond up = down / config.oversubscription_of(level - 1);
  const double cables = std::max(1.0, std::ceil(up / cable - kTolerance));
  const auto uplinks = plan.merged ? 1 : static_cast<std::int64_t>(cables);
  const DuplexLink link{LinkKind::kNetwork, up / static_cast<double>(uplinks), *config.latency};

  // Above the spines, each place in the groups below has its own plane; all leaves share one plane.
  const std::int64_t joined = groups_joined(config, plan, level);
  const bool top = level == plan.levels;
  std::map<std::pair<std::int64_t, std::int64_t>, Switch> upper;
  for (const auto& lower : below) {
    const std::int64_t group = lower.group / joined;
    const std::int64_t plane = level == 2 ? 0 : lower.place;
    for (std::int64_t i = 0; i < uplinks; ++i) {
      const std::int64_t place = plane * uplinks + i;
      auto& target = upper[{group, place}];
      if (!target.vertex.valid()) {
        std::string name = plan.prefix + (top ? "" : "block" + std::to_string(group) + "/");
        name += level_name(level) + std::to_string(place);
        target = {builder.add_vertex(VertexKind::kSwitch, name), group, place, BytesPerSecond()};
      }
      target.down += link.bandwidth;
      builder.connect(lower.vertex, target.vertex, link);
    }
  }
  std::vector<Switch> result;
  result.reserve(upper.size());
  for (auto& [key, target] : upper) result.push_back(target);
  return result;
}

bool all_have_met(const std::vector<Switch>& level) {
  // Leaves of different rails of one pod have not met; switches above the leaves of one group have.
  return std::ranges::all_of(level, [&](const Switch& s) { return s.group == level[0].group; });
}

}  // namespace

void build_clos(ClusterView::Builder& builder, const FabricConfig& config, const ClosPlan& plan) {
  auto level = add_leaves(builder, config, plan);
  BytesPerSecond cable = config.uplink_bandwidth.value_or(BytesPerSecond());
  if (!config.uplink_bandwidth)
    for (const auto& port : plan.ports) cable = std::max(cable, port.bandwidth);
  for (std::int64_t i = 2; i <= plan.levels; ++i) {
    if (i == 2 ? level.size() == 1 : all_have_met(level)) return;
    level = add_level(builder, config, plan, i, cable, level);
  }
}

void build_switch(ClusterView::Builder& builder, const FabricConfig& config,
                  std::span<const FabricPort> ports, const std::string& name) {
  const auto hub = builder.add_vertex(VertexKind::kSwitch, name);
  for (const auto& port : ports) connect_port(builder, port, hub, *config.latency);
}

std::optional<FabricFault> fault_in_clos(const FabricConfig& config, std::int64_t nodes,
                                         std::int64_t levels, std::int64_t nodes_per_pod) {
  const std::int64_t pods = (nodes + nodes_per_pod - 1) / nodes_per_pod;
  if (levels == 1 && pods > 1)
    return FabricFault{"levels",
                       "one level of switches cannot join " + std::to_string(nodes) +
                           " nodes in pods of " + std::to_string(nodes_per_pod),
                       "add a level, or set nodes_per_pod: " + std::to_string(nodes)};
  const std::int64_t inner = std::max<std::int64_t>(0, levels - 2);
  const auto given = static_cast<std::int64_t>(config.pods_per_block.size());
  if (given != inner)
    return FabricFault{"pods_per_block",
                       std::to_string(levels) + " levels need " + std::to_string(inner) +
                           " entries here, found " + std::to_string(given),
                       "one for each level from 2 up, except the top one, which joins all"};
  if (static_cast<std::int64_t>(config.oversubscription.size()) > levels - 1)
    return FabricFault{"oversubscription",
                       std::to_string(levels) + " levels have only " + std::to_string(levels - 1) +
                           " kinds of uplinks, found " +
                           std::to_string(config.oversubscription.size()) + " ratios",
                       ""};
  return std::nullopt;
}

}  // namespace foreshard::internal
