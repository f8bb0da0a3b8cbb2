/// \file
/// Which actions of a plan may run next. An action may run when the actions before it on its lane
/// and those that it waits for are done, the host waits in no sync before it, and its partners in
/// other roles may run too: both sides of a transfer run together, and so do all roles that add up
/// the gradients of a tie.
///
///     Walk walk(plan, true);
///     const std::vector<At> ready = walk.next(0, Lane::kCompute);
///     if (!ready.empty()) walk.finish(ready);
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

/// An action of the plan.
struct At {
  std::size_t role = 0;
  ActionId action = 0;
};

/// Holds a reference to the plan.
class Walk {
 public:
  /// \param common_norm  whether the optimizers of all roles run together, because they first add
  ///     up the norm of all gradients.
  Walk(const StepPlan& plan, bool common_norm);

  /// The next action of the lane and the actions of other roles that run together with it, the
  /// sender before the receiver. Empty if the lane has no action left, or if one of them has to
  /// wait.
  std::vector<At> next(std::size_t role, Lane lane) const;
  void finish(const std::vector<At>& together);
  /// The first action that is not done; nothing if all are.
  std::optional<At> open() const;

 private:
  struct State {
    std::vector<bool> done;
    std::array<std::vector<ActionId>, kLanes> lanes;
    std::array<std::size_t, kLanes> next{};
    std::size_t first_open = 0;  // all actions before it are done
  };

  const Action& action(std::size_t role, ActionId id) const {
    return plan_.roles[role].actions[static_cast<std::size_t>(id)];
  }
  std::optional<ActionId> head(std::size_t role, Lane lane) const;
  std::vector<std::pair<std::size_t, ActionKind>> parties(std::size_t role,
                                                          const Action& action) const;
  bool may_run(std::size_t role, ActionId id) const;

  const StepPlan& plan_;
  bool common_norm_;
  std::vector<State> roles_;
  std::vector<std::size_t> role_of_piece_;
};

/// Which actions of a role are known to be done when another one begins: by its dependencies, by
/// the order of its lane, and by what the host has waited for.
class HappensBefore {
 public:
  /// `blocking_launches`: the host waits for each action, except transfers, as soon as it has
  /// issued it.
  /// \pre Each action waits for earlier ones only (invariant 3 of StepPlan).
  explicit HappensBefore(const Role& role, bool blocking_launches = false);

  /// Whether action `later` is known to begin only when `earlier` is done.
  bool waits(ActionId later, ActionId earlier) const;

 private:
  /// The latest action of each lane that is done; -1: none.
  using Done = std::array<ActionId, kLanes>;

  const Role& role_;
  std::vector<Done> at_start_;
};

}  // namespace foreshard::plan
