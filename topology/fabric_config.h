/// \file
/// The network between hosts as YAML says it:
///
///     fabric: {kind: rail-fat-tree, levels: 2, nodes_per_pod: 16, oversubscription: [2]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

struct FabricConfig {
  std::string kind = "single-switch";  ///< A name of fabrics/fabric.h.
  std::int64_t levels = 2;
  std::int64_t nodes_per_pod = 32;
  std::vector<std::int64_t> pods_per_block{};
  std::vector<double> oversubscription{};
  std::optional<BytesPerSecond> uplink_bandwidth{};
  yaml::Sourced<Seconds> latency{0.13_us, "NVIDIA Quantum QM8700 data sheet: 130 ns",
                                 yaml::Evidence::kDatasheet};

  /// Of the uplinks of level 1, 2, ...: what is not listed is 1.
  double oversubscription_of(std::int64_t level) const;
};

const yaml::Table<FabricConfig>& yaml_table(const FabricConfig*);

}  // namespace foreshard
