/// \file
/// What breaks during the step, and what happens to the tasks that use it.
///
///     failures:
///       - {link: "pod0/leaf0 - spine1", at: 3 s, then: reroute, detection: 0.2 s, until: 9 s}
///       - {device: node3/gpu5, at: 1 s, detection: 10 s}        # then: fail
///
/// A device, NIC or switch takes all of its links with it; what a dead device computes stands still
/// too. Nothing reacts before `detection` has passed: with `fail`, a communication or kernel that
/// has stood still for so long fails; with `reroute`, from then on routes avoid what is dead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

struct Failure {
  std::optional<std::string> link;  ///< Exactly one of these four; selectors (topology/select.h).
  std::optional<std::string> device;
  std::optional<std::string> nic;
  std::optional<std::string> switch_name;
  Seconds at;
  std::optional<Seconds> until;  ///< Repaired.
  Then then = Then::kFail;
  Seconds detection{};
};

const yaml::Names<Then>& yaml_names(const Then*);
const yaml::Table<Failure>& yaml_table(const Failure*);

Status add_failures(Plan& plan, const std::vector<Failure>& failures, const ClusterView& cluster,
                    const ErrorAt& error);

}  // namespace foreshard::disturbance
