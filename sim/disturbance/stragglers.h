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
  /// Of those of them that the job uses, chosen by seed: at least one.
  std::optional<double> fraction;
  std::optional<double> speed;               ///< Of the device's speed; or
  std::optional<Distribution> distribution;  ///< of a speed for each.
  Seconds at{};
  std::optional<Seconds> until;
};

const yaml::Table<Straggler>& yaml_table(const Straggler*);

Status add_stragglers(Plan& plan, const std::vector<Straggler>& stragglers,
                      const ClusterView& cluster, std::span<const std::int32_t> used,
                      const ErrorAt& error);

}  // namespace foreshard::disturbance
