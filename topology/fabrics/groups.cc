#include "topology/fabrics/groups.h"

#include <algorithm>

namespace foreshard::internal {
namespace {

/// Fabrics are built switch by switch: sizes that no machine has are refused before memory runs
/// out.
constexpr std::int64_t kMostSwitches = 1'000'000;

}  // namespace

std::int64_t group_count(const GroupSizes& sizes, const FabricPlan& plan) {
  const std::int64_t held = sizes.nics_per_switch * sizes.switches;
  const auto ports = static_cast<std::int64_t>(plan.ports.size());
  return sizes.groups.value_or(std::max<std::int64_t>(1, (ports + held - 1) / held));
}

std::optional<FabricFault> fault_in_groups(const GroupSizes& sizes, const FabricPlan& plan) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const std::int64_t groups = group_count(sizes, plan);
  const std::int64_t held = sizes.nics_per_switch * sizes.switches;
  const auto ports = static_cast<std::int64_t>(plan.ports.size());
  if (held * groups < ports)
    return FabricFault{sizes.key + ".groups",
                       text(groups) + " groups of " + text(held) + " NICs cannot hold the " +
                           text(ports) + " of the cluster",
                       "at least " + text((ports + held - 1) / held) + " groups are needed"};
  if (groups * (sizes.switches + sizes.gateways) > kMostSwitches)
    return FabricFault{sizes.key + ".groups",
                       text(groups) + " groups have more than " + text(kMostSwitches) + " switches",
                       "groups without NICs may be left out"};
  const std::int64_t global = sizes.gateways * sizes.cables;
  if (global < groups - 1)
    return FabricFault{sizes.key,
                       "a group has " + text(sizes.gateways) + " x " + text(sizes.cables) +
                           " global cables, too few to reach each of the " + text(groups - 1) +
                           " other groups",
                       "more global cables per switch, or larger groups"};
  return std::nullopt;
}

void join_groups(ClusterView::Builder& builder, const std::vector<std::vector<VertexId>>& gateways,
                 std::int64_t cables, DuplexLink link) {
  link.hops = kGlobalHops;
  const std::size_t groups = gateways.size();
  if (groups < 2) return;
  const auto per_gateway = static_cast<std::size_t>(cables);
  const std::size_t layers = gateways[0].size() * per_gateway / (groups - 1);
  for (std::size_t t = 0; t < layers; ++t)
    for (std::size_t i = 0; i < groups; ++i)
      for (std::size_t d = 1; d < groups; ++d) {
        const std::size_t other = (i + d) % groups;
        if (other < i) continue;  // The other group has added this cable.
        const std::size_t out = t * (groups - 1) + d - 1;
        const std::size_t in = t * (groups - 1) + groups - d - 1;
        builder.connect(gateways[i][out / per_gateway], gateways[other][in / per_gateway], link);
      }
}

void fill_groups(ClusterView::Builder& builder, const FabricPlan& plan,
                 const std::vector<std::vector<VertexId>>& switches, std::int64_t nics_per_switch) {
  for (std::size_t i = 0; i < plan.ports.size(); ++i) {
    const std::size_t place = i / static_cast<std::size_t>(nics_per_switch);
    connect_port(builder, plan.ports[i],
                 switches[place / switches[0].size()][place % switches[0].size()],
                 *plan.config.latency);
  }
}

}  // namespace foreshard::internal
