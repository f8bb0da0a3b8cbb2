// The planner of reductions, a row of planners(), which adds the reductions of gradients to a plan:
// unit by unit beside the backward passes, or all at the end of the step. Sizes are elements on one
// rank; indices of units, buckets and actions count from 0. Gradients that no other rank holds
// copies of, frozen ones, and those that a pass reduces itself get no bucket.
#include <algorithm>
#include <map>
#include <utility>

#include "strategies/graph/mesh_axes.h"
#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

using Reduce = StateSharding::Reduce;

// Puts each reduction of one role behind the backward pass of its unit, so that it runs while later
// passes compute.
class ReductionsBesidePasses {
 public:
  ReductionsBesidePasses(Draft& draft, DraftRole& role) : draft_(draft), role_(role) {}

  void add() {
    find_last_passes();
    for (Section& section : role_.slots) {
      const bool reduces = std::ranges::any_of(
          section.actions, [&](ActionRef ref) { return is_reduced(role_[ref]); });
      if (reduces) {
        reduce(section);
      } else if (states().cuts_gradients && role_.first_pass(section) != kNone) {
        role_.wait(role_.first_pass(section), reduced_);
      }
      if (const ActionRef last = role_.last_pass(section); last != kNone) pass_before_ = last;
    }
  }

 private:
  // Finds, for each unit, the micro-batch whose pass completes its gradients last.
  void find_last_passes() {
    const bool once = states().reduce != Reduce::kEveryMicroBatch;
    for (const Section& section : role_.slots) {
      for (const ActionRef ref : section.actions) {
        const Action& pass = role_[ref];
        if (!completes_gradients(pass)) continue;
        for (std::int32_t i = pass.units.count; i-- > 0;) {
          const std::int32_t unit = pass.units.first + i;
          last_micro_batch_[unit] = pass.micro_batch;
          if (const TiedWeights* tie = this->tie();
              once && tie != nullptr && is_read_by(*tie, unit))
            last_of_tie_ = unit;
        }
      }
    }
  }

  // The weights that several units share (the tie), if their gradients are reduced; else nullptr.
  const TiedWeights* tie() const {
    const auto& shared = draft_.plan.parts.tie;
    const bool has_bucket =
        shared && !shared->is_frozen && ways(shared->over, draft_.plan.parts.mesh) > 1;
    return has_bucket ? &*shared : nullptr;
  }
  static bool is_read_by(const TiedWeights& tie, std::int32_t unit) {
    return unit == tie.first_unit || tie.others.contains(unit);
  }
  // The unit of this role whose bucket holds the gradients of the tie, if `unit` adds to them; else
  // kNone.
  std::int32_t holder(std::int32_t unit) const {
    if (tie() == nullptr || !is_read_by(*tie(), unit)) return kNone;
    return tie()->on_one_role || unit == tie()->first_unit ? tie()->first_unit
                                                           : tie()->others.first;
  }
  // The unit whose backward pass is the first to add to the tie's gradients in the bucket of
  // `holder`. Backward passes begin with the last unit.
  std::int32_t opener(std::int32_t holder) const {
    const bool adds_alone = holder == tie()->first_unit && !tie()->on_one_role;
    return adds_alone ? holder : tie()->last_unit();
  }

  // The units whose buckets the pass of `unit` completes: `unit` itself, unless a tie lies on one
  // role, where all units of the tie add to the bucket of the first. Which of them is the last to
  // do so depends on the order in which the chunks of the role end. If it is others.first, then its
  // pass completes the first unit's bucket too, whose own pass completes none.
  std::vector<std::int32_t> completed_by(std::int32_t unit) const {
    if (tie() == nullptr || !tie()->on_one_role || last_of_tie_ != tie()->others.first)
      return {unit};
    if (unit == tie()->first_unit) return {};
    if (unit == tie()->others.first) return {unit, tie()->first_unit};
    return {unit};
  }

  // Whether gradients are reduced after the pass, which is the same for all units of the pass.
  bool is_reduced(const Action& pass) const {
    return completes_gradients(pass) &&
           (states().reduce == Reduce::kEveryMicroBatch ||
            last_micro_batch_.at(pass.units.first) == pass.micro_batch);
  }
  const StateSharding& states() const { return draft_.plan.states; }

  void reduce(Section& section) {
    role_.split_passes(section);
    std::vector<ActionRef> actions;
    for (const ActionRef ref : section.actions) {
      actions.push_back(ref);
      if (!role_.is_pass(ref)) continue;
      if (!is_reduced(role_[ref])) {
        if (states().cuts_gradients) role_.wait(ref, reduced_);
        pass_before_ = ref;
        continue;
      }
      const std::int32_t unit = role_[ref].units.first;
      if (states().cuts_gradients) {  // at most two units have whole gradients at a time
        role_.wait(ref, pass_before_);
        role_.wait(ref, reduced_before_);
        if (opens_bucket(unit)) role_[ref].takes |= kGradient;
      }
      pass_before_ = ref;
      role_[ref].reduces = reduces_inside(unit);
      ActionRef last = kNone;
      std::vector<std::int32_t> buckets;
      for (const std::int32_t completed : completed_by(unit)) {
        const auto& own = buckets_of(completed);
        buckets.insert(buckets.end(), own.begin(), own.end());
      }
      const bool is_last = last_micro_batch_.at(unit) == role_[ref].micro_batch;
      for (const std::int32_t bucket : buckets) {
        // Gradients of whole experts stay in memory until the last micro-batch is reduced.
        const bool stays = draft_.plan.buckets[static_cast<std::size_t>(bucket)].opened_by < 0;
        if (stays && !is_last) continue;
        Action reduction = role_[ref];
        reduction.kind = ActionKind::kReduce;
        reduction.part = PassPart::kWhole;
        reduction.units = {};
        reduction.reduces = false;
        reduction.what = bucket;
        reduction.takes = 0;
        reduction.gives_back = states().cuts_gradients && !stays ? kGradient : 0;
        reduction.after = {ref};
        last = role_.make(std::move(reduction));
        actions.push_back(last);
      }
      if (last != kNone) reduced_before_ = std::exchange(reduced_, last);
    }
    section.actions = std::move(actions);
  }

  bool reduces_inside(std::int32_t unit) const {
    const PlannedModel& parts = draft_.plan.parts;
    return std::ranges::any_of(parts.block_of(unit).groups, [&](const ParameterGroup& group) {
      return parts.is_copied(group) && group.reduced_inside > 0;
    });
  }

  // The unit's buckets: gradients that its backward pass does not reduce itself. The first call
  // adds them to the plan.
  const std::vector<std::int32_t>& buckets_of(std::int32_t unit) {
    const auto [it, is_new] = buckets_of_.try_emplace(unit);
    if (!is_new) return it->second;
    for (ParameterGroup& group : draft_.plan.parts.own_groups(unit)) {
      const std::int64_t elements = group.trained() - group.reduced_inside;
      if (elements == 0 || !draft_.plan.parts.is_copied(group)) continue;
      const bool is_tied = holder(unit) == unit && tie()->over == group.over;
      const bool stays = are_whole_experts(draft_.plan.parts.mesh, group.over);
      it->second.push_back(draft_.add(Bucket{.units = {{unit, 1}},
                                             .over = std::move(group.over),
                                             .elements = elements,
                                             .opened_by = stays     ? -1
                                                          : is_tied ? opener(unit)
                                                                    : unit}));
    }
    return it->second;
  }

  // Whether the unit's backward pass is the first to add to the gradients of some bucket.
  bool opens_bucket(std::int32_t unit) {
    if (const std::int32_t of = holder(unit); of != kNone && of != unit && unit == opener(of))
      return true;
    return std::ranges::any_of(buckets_of(unit), [&](std::int32_t bucket) {
      return draft_.plan.buckets[static_cast<std::size_t>(bucket)].opened_by == unit;
    });
  }

  Draft& draft_;
  DraftRole& role_;
  std::map<std::int32_t, std::int32_t> last_micro_batch_;  // by unit
  std::int32_t last_of_tie_ = kNone;  // the unit of a tie on one role whose last pass comes last
  std::map<std::int32_t, std::vector<std::int32_t>> buckets_of_;  // by unit
  ActionRef pass_before_ = kNone;
  ActionRef reduced_ = kNone;         // the last reduction of the last unit that has one
  ActionRef reduced_before_ = kNone;  // the last reduction of the unit before that one
};

// One reduction after the last pass for each set of axes, over all units of the role.
void reduce_at_end(Draft& draft, DraftRole& role) {
  std::map<std::vector<Axis>, std::int64_t> elements;
  const std::vector<UnitRange> units = role.all_units();
  for (const UnitRange& run : units)
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
        ReductionsBesidePasses(draft, role).add();
        break;
      case Reduce::kEndOfStep:
        reduce_at_end(draft, role);
        break;
    }
  }
  return {};
}

}  // namespace foreshard::plan
