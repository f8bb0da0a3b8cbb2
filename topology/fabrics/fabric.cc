#include "topology/fabrics/fabric.h"

#include <algorithm>
#include <array>

namespace foreshard {
namespace {

constexpr std::array kFabrics{
    Fabric{"fat-tree", "All NICs of a pod's nodes on one leaf switch; levels of spines above.",
           fault_in_fat_tree, build_fat_tree},
    Fabric{"rail-fat-tree", "In each pod one leaf switch per NIC index (rail); spines above.",
           fault_in_fat_tree, build_rail_fat_tree},
    Fabric{"single-switch", "All NICs on one non-blocking switch.", fault_in_single_switch,
           build_single_switch},
};
static_assert(std::ranges::is_sorted(kFabrics, {}, &Fabric::name));

std::vector<std::string> fabric_names() {
  std::vector<std::string> names;
  names.reserve(kFabrics.size());
  for (const auto& fabric : kFabrics) names.emplace_back(fabric.name);
  return names;
}

}  // namespace

std::span<const Fabric> fabrics() {
  return kFabrics;
}

const Fabric* find_fabric(std::string_view name) {
  const auto* found = std::ranges::find(kFabrics, name, &Fabric::name);
  return found == kFabrics.end() ? nullptr : found;
}

double FabricConfig::oversubscription_of(std::int64_t level) const {
  const auto index = static_cast<std::size_t>(level - 1);
  return index < oversubscription.size() ? oversubscription[index] : 1.0;
}

const yaml::Table<FabricConfig>& yaml_table(const FabricConfig*) {
  using F = FabricConfig;
  static const auto table =
      yaml::Table<F>("fabric", "The network between hosts.")
          .required("kind", &F::kind, "How switches are arranged.", yaml::one_of(fabric_names()))
          .optional("levels", &F::levels,
                    "Of switches. 1: leaves alone; 2: leaves and spines; 3: and a core.",
                    yaml::between(1, 5))
          .optional("nodes_per_pod", &F::nodes_per_pod, "Nodes under the same leaf switches.",
                    yaml::at_least(1))
          .optional("pods_per_block", &F::pods_per_block,
                    "From 3 levels on: how many groups of one level the next one joins, from level "
                    "2 up; the top level joins all.",
                    yaml::at_least(1))
          .optional("oversubscription", &F::oversubscription,
                    "Of the uplinks of each level, from the leaves up: bandwidth below by "
                    "bandwidth above. What is not listed is 1.",
                    yaml::positive())
          .optional("uplink_bandwidth", &F::uplink_bandwidth,
                    "Payload rate of one cable between switches; by default that of a NIC.",
                    yaml::positive())
          .optional("latency", &F::latency, "Of one switch.", yaml::non_negative());
  return table;
}

}  // namespace foreshard
