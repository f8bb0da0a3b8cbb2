/// \file
/// A plan under construction, and the planners that make it: each adds one concern (the passes of
/// the schedule, reductions, gathers, transfers ...) to what stands there. A planner says what it
/// needs of those before it.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

/// Names an action of one DraftRole. It stays the same wherever the action moves.
using ActionRef = std::int32_t;
inline constexpr ActionRef kNone = -1;

/// The actions of one slot or, without `slot`, of the start or the end of the step.
struct Section {
  std::optional<Slot> slot{};
  std::vector<ActionRef> actions{};  ///< In the order of issue.
};

/// A role whose actions can still be put before and behind others.
class DraftRole {
 public:
  Role role{};
  Section start{};
  std::vector<Section> slots{};
  Section end{};

  Action& operator[](ActionRef ref) { return actions_[static_cast<std::size_t>(ref)]; }
  const Action& operator[](ActionRef ref) const { return actions_[static_cast<std::size_t>(ref)]; }
  /// A new action. `after` holds references; kNone among them is dropped.
  ActionRef make(Action action);
  /// `ref` waits for `earlier` too, unless that is kNone.
  void wait(ActionRef ref, ActionRef earlier);

  /// Divides each pass of the section into one for each of its units. What waited for the pass
  /// waits for the last of them, and the first waits for what the pass waited for.
  void split_passes(Section& section);
  bool is_pass(ActionRef ref) const { return (*this)[ref].kind == ActionKind::kPass; }
  /// The last pass of the section; kNone if it has none.
  ActionRef last_pass(const Section& section) const;
  ActionRef first_pass(const Section& section) const;
  /// The last pass of the step.
  ActionRef last_pass() const;
  ActionRef optimizer() const;  ///< kNone where nothing is trained.

  /// All units that the role holds.
  std::vector<Run> all_units() const;

  /// The role with its actions numbered in the order of issue.
  Role finish() &&;

 private:
  std::deque<Action> actions_;
};

struct Draft {
  const Strategy& strategy;
  StepPlan plan{};
  std::vector<DraftRole> roles{};

  std::int32_t add(Bucket bucket) { return added(plan.buckets, std::move(bucket)); }
  std::int32_t add(Crossing crossing) { return added(plan.crossings, crossing); }
  std::int32_t add(Copies copies) { return added(plan.copies, std::move(copies)); }
  bool trains() const { return strategy.mode == Mode::kTrain; }

 private:
  template <class T>
  static std::int32_t added(std::vector<T>& list, T item) {
    list.push_back(std::move(item));
    return static_cast<std::int32_t>(list.size()) - 1;
  }
};

struct Planner {
  std::string_view name;
  Status (*add)(Draft& draft);
};

/// The planners of `make_plan`, in the order in which they work.
std::span<const Planner> planners();

/// `make_plan` with other planners.
Result<StepPlan> make_plan(Parts parts, const Strategy& strategy,
                           std::span<const Planner> planners);

}  // namespace foreshard::plan
