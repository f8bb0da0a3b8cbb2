/// \file
/// Failures during the step, and what happens to the tasks that use the failed parts.
///
///     failures:
///       - {link: "pod0/leaf0 - spine1", at: 3 s, then: reroute, detection: 0.2 s, until: 9 s}
///       - {device: node3/gpu5, at: 1 s, detection: 10 s}        # then: fail
///
/// When a device, NIC or switch fails, all of its links fail with it; the computation of a dead
/// device stands still too. Nothing reacts before `detection` has passed: with `fail`, a
/// communication or kernel that has stood still for that long fails; with `reroute`, routes avoid
/// the dead parts from then on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

struct Failure {
  /// Selectors (topology/select.h); exactly one of the four is given.
  std::optional<std::string> link;
  std::optional<std::string> device;
  std::optional<std::string> nic;
  std::optional<std::string> switch_name;
  Seconds at;
  std::optional<Seconds> until;  ///< Time of the repair.
  Then then = Then::kFail;
  Seconds detection{};
};

const yaml::Names<Then>& yaml_names(const Then*);
const yaml::Table<Failure>& yaml_table(const Failure*);

Status add_failures(Plan& plan, const std::vector<Failure>& failures, const ClusterView& cluster,
                    const ErrorAt& error);

}  // namespace foreshard::disturbance
