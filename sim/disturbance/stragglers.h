/// \file
/// Devices that are slower than their type, all the time or for a while.
///
///     stragglers:
///       - {devices: node3/gpu5, speed: 0.5}                     # a bad unit
///       - {fraction: 0.01, speed: 0.8}                          # one in a hundred, chosen by seed
///       - {distribution: {kind: normal, mean: 1, deviation: 0.02}}  # each its own
///       - {devices: "node0/*", speed: 0.7, at: 2 s, until: 5 s} # throttled for a while
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

struct Straggler {
  std::string devices = "*";  ///< A selector (topology/select.h).
  /// Share of those matching devices that the job uses, chosen by seed; at least one device.
  std::optional<double> fraction;
  std::optional<double> speed;  ///< Share of the device's speed that it keeps.
  /// Distribution of each device's speed, instead of `speed`.
  std::optional<Distribution> distribution;
  Seconds at{};
  std::optional<Seconds> until;
};

const yaml::Table<Straggler>& yaml_table(const Straggler*);

Status add_stragglers(Plan& plan, const std::vector<Straggler>& stragglers,
                      const ClusterView& cluster, std::span<const std::int32_t> used,
                      const ErrorAt& error);

}  // namespace foreshard::disturbance
