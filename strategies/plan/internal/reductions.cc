#include <algorithm>
#include <map>
#include <utility>

#include "strategies/plan/internal/planners.h"

namespace foreshard::plan {
namespace {

using Reduce = StateSharding::Reduce;

// Puts the reductions of one role behind the passes of its units, one unit at a time.
class BesidePasses {
 public:
  BesidePasses(Draft& draft, DraftRole& role) : draft_(draft), role_(role) {}

  void add() {
    std::map<std::int32_t, std::int32_t> last_micro_batch;  // by chunk
    for (const Section& section : role_.slots)
      if (is_backward(section)) last_micro_batch[section.slot->chunk] = section.slot->micro_batch;
    for (Section& section : role_.slots) {
      const bool reduces = is_backward(section) &&
                           (states().reduce == Reduce::kEveryMicroBatch ||
                            section.slot->micro_batch == last_micro_batch.at(section.slot->chunk));
      if (reduces) {
        reduce(section);
      } else if (states().cuts_gradients && role_.first_pass(section) != kNone) {
        role_.wait(role_.first_pass(section), reduced_);
      }
      if (const ActionRef last = role_.last_pass(section); last != kNone) pass_before_ = last;
    }
  }

 private:
  static bool is_backward(const Section& section) {
    return section.slot->direction == Direction::kBackward;
  }
  const StateSharding& states() const { return draft_.plan.states; }

  void reduce(Section& section) {
    role_.split_passes(section);
    std::vector<ActionRef> actions;
    for (const ActionRef ref : section.actions) {
      actions.push_back(ref);
      if (!role_.is_pass(ref)) continue;
      const std::int32_t unit = role_[ref].units.first;
      if (states().cuts_gradients) {
        role_.wait(ref, pass_before_);
        role_.wait(ref, reduced_before_);
        if (opens_bucket(unit)) role_[ref].takes |= kGradient;
      }
      pass_before_ = ref;
      role_[ref].reduces = reduces_inside(unit);
      ActionRef last = kNone;
      for (const std::int32_t bucket : buckets_of(unit)) {
        Action reduction = role_[ref];
        reduction.kind = ActionKind::kReduce;
        reduction.units = {};
        reduction.reduces = false;
        reduction.what = bucket;
        reduction.takes = 0;
        reduction.gives_back = states().cuts_gradients ? kGradient : 0;
        reduction.after = {ref};
        last = role_.make(std::move(reduction));
        actions.push_back(last);
      }
      if (last != kNone) reduced_before_ = std::exchange(reduced_, last);
    }
    section.actions = std::move(actions);
  }

  bool reduces_inside(std::int32_t unit) const {
    const Parts& parts = draft_.plan.parts;
    return std::ranges::any_of(parts.block_of(unit).groups, [&](const ParameterGroup& group) {
      return parts.is_copied(group) && group.reduced_inside > 0;
    });
  }

  // The unit's buckets: what its backward pass leaves to reduce.
  const std::vector<std::int32_t>& buckets_of(std::int32_t unit) {
    const auto [it, is_new] = buckets_of_.try_emplace(unit);
    if (!is_new) return it->second;
    const Tie* tie = draft_.plan.parts.tie_in_one_piece();
    for (ParameterGroup& group : draft_.plan.parts.own_groups(unit)) {
      const std::int64_t elements = group.trained() - group.reduced_inside;
      if (elements == 0 || !draft_.plan.parts.is_copied(group)) continue;
      const bool is_tied =
          tie != nullptr && !tie->is_frozen && tie->first_unit == unit && tie->over == group.over;
      it->second.push_back(draft_.add(Bucket{.units = {{unit, 1}},
                                             .over = std::move(group.over),
                                             .elements = elements,
                                             .opened_by = is_tied ? tie->last_unit : unit}));
    }
    return it->second;
  }

  // Whether the unit's backward pass is the first to add to the gradients of some bucket.
  bool opens_bucket(std::int32_t unit) {
    const Tie* tie = draft_.plan.parts.tie_in_one_piece();
    if (tie != nullptr && !tie->is_frozen && unit == tie->last_unit) return true;
    return std::ranges::any_of(buckets_of(unit), [&](std::int32_t bucket) {
      return draft_.plan.buckets[static_cast<std::size_t>(bucket)].opened_by == unit;
    });
  }

  Draft& draft_;
  DraftRole& role_;
  std::map<std::int32_t, std::vector<std::int32_t>> buckets_of_;  // by unit
  ActionRef pass_before_ = kNone;
  ActionRef reduced_ = kNone;         // the last reduction of the last unit that has one
  ActionRef reduced_before_ = kNone;  // that of the unit before it
};

void reduce_at_end(Draft& draft, DraftRole& role) {
  std::map<std::vector<Axis>, std::int64_t> elements;
  const std::vector<Run> units = role.all_units();
  for (const Run& run : units)
    for (std::int32_t i = 0; i < run.count; ++i)
      for (const ParameterGroup& group : draft.plan.parts.own_groups(run.first + i))
        if (draft.plan.parts.is_copied(group) && group.trained() > 0)
          elements[group.over] += group.trained();
  for (const auto& [over, count] : elements)
    role.end.actions.push_back(
        role.make({.kind = ActionKind::kReduce,
                   .direction = Direction::kBackward,
                   .what = draft.add(Bucket{.units = units, .over = over, .elements = count}),
                   .after = {role.last_pass()}}));
}

}  // namespace

Status plan_reductions(Draft& draft) {
  for (DraftRole& role : draft.roles) {
    switch (draft.plan.states.reduce) {
      case Reduce::kNever:
        break;
      case Reduce::kEveryMicroBatch:
      case Reduce::kLastMicroBatch:
        BesidePasses(draft, role).add();
        break;
      case Reduce::kEndOfStep:
        reduce_at_end(draft, role);
        break;
    }
  }
  return {};
}

}  // namespace foreshard::plan
