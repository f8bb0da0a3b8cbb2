/// \file
/// Which actions of a role are known to be done when another one begins: by its dependencies, by
/// the order of its lane, and by what the host has waited for.
#pragma once

#include <array>
#include <vector>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

class Order {
 public:
  /// `blocking_launches`: the host waits for each action, except transfers, as soon as it has
  /// issued it.
  /// \pre Each action waits for earlier ones only (invariant 3 of StepPlan).
  explicit Order(const Role& role, bool blocking_launches = false);

  /// Whether action `later` is known to begin only when `earlier` is done.
  bool waits(ActionId later, ActionId earlier) const;

 private:
  /// The latest action of each lane that is done; -1: none.
  using Done = std::array<ActionId, kLanes>;

  const Role& role_;
  std::vector<Done> at_start_;
};

}  // namespace foreshard::plan
