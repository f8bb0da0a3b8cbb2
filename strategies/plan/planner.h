/// \file
/// A plan under construction, and the planners that make it. Each planner adds one concern (the
/// passes of the schedule, reductions, gathers, transfers ...) to the plan so far, and its
/// declaration says which earlier planners it needs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

/// Names an action of one DraftRole. It stays valid wherever the action is moved.
using ActionRef = std::int32_t;
inline constexpr ActionRef kNone = -1;

/// The actions of one slot or, without `slot`, of the start or the end of the step.
struct Section {
  std::optional<Slot> slot{};
  std::vector<ActionRef> actions{};  ///< Actions, in the order of issue.
};

/// A role under construction: actions can still be inserted before and after others.
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
  /// Makes `ref` wait for `earlier` too, unless that is kNone.
  void wait(ActionRef ref, ActionRef earlier);

  /// Splits each pass of the section into one pass for each of its units. Actions that waited for
  /// the pass wait for the last of these; the first of these waits for what the pass waited for.
  void split_passes(Section& section);
  bool is_pass(ActionRef ref) const { return (*this)[ref].kind == ActionKind::kPass; }
  /// The last pass of the section; kNone if it has none.
  ActionRef last_pass(const Section& section) const;
  ActionRef first_pass(const Section& section) const;
  /// The last pass of the step.
  ActionRef last_pass() const;
  ActionRef optimizer() const;  ///< The optimizer's step; kNone where nothing is trained.

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
