// Source: Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, "Dragonfly+: low cost topology for
// scaling datacenters", HiPINEB 2017.
#include "topology/fabrics/groups.h"

namespace foreshard {
namespace {

internal::GroupSizes sizes_of(const DragonflyPlusConfig& config) {
  return {.key = "dragonfly_plus",
          .nics_per_switch = config.nics_per_leaf,
          .switches = config.leaves_per_group,
          .gateways = config.spines_per_group,
          .cables = config.global_cables_per_spine,
          .groups = config.groups};
}

}  // namespace

std::optional<FabricFault> fault_in_dragonfly_plus(const FabricPlan& plan) {
  if (!plan.config.dragonfly_plus)
    return FabricFault{"kind", "a dragonfly-plus needs its sizes",
                       "add dragonfly_plus: {nics_per_leaf: ..., leaves_per_group: ..., "
                       "spines_per_group: ..., global_cables_per_spine: ...}"};
  return internal::fault_in_groups(sizes_of(*plan.config.dragonfly_plus), plan);
}

void build_dragonfly_plus(ClusterView::Builder& builder, const FabricPlan& plan) {
  const DragonflyPlusConfig& config = *plan.config.dragonfly_plus;
  const internal::GroupSizes sizes = sizes_of(config);
  const BytesPerSecond port = plan.fastest_port();
  const DuplexLink local{LinkKind::kNetwork, config.local_bandwidth.value_or(port),
                         *plan.config.latency};
  SwitchGroups shape;
  std::vector<std::vector<VertexId>> all_leaves;
  std::vector<std::vector<VertexId>> all_spines;
  for (std::int64_t group = 0; group < internal::group_count(sizes, plan); ++group) {
    const std::string prefix = "group" + std::to_string(group) + "/";
    auto& leaves = all_leaves.emplace_back();
    auto& spines = all_spines.emplace_back();
    for (std::int64_t i = 0; i < sizes.switches; ++i)
      leaves.push_back(
          builder.add_vertex(VertexKind::kSwitch, prefix + "leaf" + std::to_string(i)));
    for (std::int64_t i = 0; i < sizes.gateways; ++i) {
      spines.push_back(
          builder.add_vertex(VertexKind::kSwitch, prefix + "spine" + std::to_string(i)));
      for (const auto leaf : leaves) builder.connect(leaf, spines.back(), local);
    }
    auto& members = shape.groups.emplace_back(leaves);
    members.insert(members.end(), spines.begin(), spines.end());
  }
  internal::fill_groups(builder, plan, all_leaves, sizes.nics_per_switch);
  internal::join_groups(
      builder, all_spines, sizes.cables,
      {LinkKind::kNetwork, config.global_bandwidth.value_or(port), *plan.config.latency});
  builder.set_shape(std::move(shape));
}

}  // namespace foreshard
