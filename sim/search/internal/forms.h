/// \file
/// The plans of strategies, compiled once for all strategies that share their form: the same
/// pattern of parameters and devices, the same schedule, cut and number of micro-batches.
/// Strategies that differ only in how many layers they recompute share a form too; the blocks of
/// its units are filled in for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/search/internal/layout.h"
#include "sim/search/internal/peaks.h"
#include "sim/search/internal/shape.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Numbers values in the order in which they are met; equal values get the same number.
/// Cost: a comparison where the value is the same as in the call before, else a look-up.
template <class T>
class Numbering {
 public:
  std::int64_t of(const T& value) {
    if (last_ == nullptr || *last_ != value) {
      const auto known =
          numbers_.try_emplace(value, static_cast<std::int64_t>(numbers_.size())).first;
      last_ = &known->first;
      number_ = known->second;
    }
    return number_;
  }

 private:
  std::map<T, std::int64_t> numbers_;
  const T* last_ = nullptr;
  std::int64_t number_ = 0;
};

struct HashOfNumbers {
  std::size_t operator()(const auto& numbers) const noexcept {
    std::uint64_t hash = numbers.size();
    for (const std::int64_t number : numbers)
      hash = mixed(hash ^ static_cast<std::uint64_t>(number));
    return hash;
  }
};
template <std::size_t kSize, class T>
using ByNumbers = std::unordered_map<std::array<std::int64_t, kSize>, T, HashOfNumbers>;
/// A cache whose keys have several lengths.
template <class T>
using ByKey = std::unordered_map<std::vector<std::int64_t>, T, HashOfNumbers>;

/// What a search needs to know of a plan.
struct PlanForm {
  PlanShape shape;
  std::vector<StagePasses> passes_of_stages{};
  std::vector<StagePasses> passes{};  ///< One per class of stages: passes of all its stages.

  // Walks since one last found a new critical path; how many of these were on another layout than
  // the walk before; and how many steps were estimated from known paths since the last walk.
  std::int32_t walks_without_new_path = 0;
  std::int32_t walks_on_other_layouts = 0;
  std::int32_t not_walked = 0;
  const StrategyLayout* walked_last = nullptr;
};

/// The forms of plans that differ only in their number of micro-batches.
struct PlanForms {
  /// One form; or two, with `micro_batches` and with one period more. The step of any larger number
  /// of micro-batches follows from these two: once a pipeline is full, each further period adds the
  /// same time.
  std::vector<PlanForm> forms{};
  std::int64_t micro_batches = 0;
  std::int64_t period = 1;
  StageClasses classes{};  ///< Classes of the stages in all forms.
};

/// A form with the blocks of its units filled in.
class FilledForm {
 public:
  /// All must outlive it.
  FilledForm(PlanForm& form, const Labels& labels, const TransferKinds& transfers);

  const std::vector<LiveSet>& live_sets(std::size_t of_class) const { return live_sets_[of_class]; }
  std::vector<LiveSet> live_sets_of_stage(std::size_t stage) const;
  /// Cost: O(works), once.
  std::span<const TimedAction> timed_actions();

  /// PlanShape::around_passes. `times`: one per action of timed_actions(), here and in the
  /// functions below.
  Seconds around_passes(std::span<const double> times);
  /// The sum of the times of all nodes.
  Seconds sum(std::span<const double> times) const;
  /// The end of the last node.
  Seconds walk(std::span<const double> times, const StrategyLayout& layout);
  /// The longest of the paths that walks of this form have met. Cost: O(actions x paths).
  Seconds longest_path(std::span<const double> times);
  /// Whether a walk is unlikely to find a longer path, because the last walks, on several layouts
  /// or on this one, found none. Now and then it is false all the same, to check.
  bool is_settled(const StrategyLayout& layout) const;
  /// Whether the next member of a family should be walked. The more walks in a row have found no
  /// new path, the longer it takes until the next walk.
  bool is_walk_due(const StrategyLayout& layout);
  /// Path by path, for all paths that walks of this form have met: how often it has each of
  /// timed_actions().
  std::span<const double> paths();

 private:
  void set_times(std::span<const double> times);

  PlanForm* form_;
  const Labels* labels_;
  const TransferKinds* transfers_;
  std::vector<std::vector<LiveSet>> live_sets_;
  std::vector<TimedAction> timed_actions_;
  std::vector<std::int32_t> timed_action_of_;  // work of the shape -> action
  std::vector<double> paths_;                  // paths of the shape: how often each has each action
  std::vector<double> times_;                  // work -> time
  std::size_t known_paths_ = 0;
  bool was_walked_ = false;
};

/// The forms of a strategy with the blocks of its units.
struct FilledForms {
  PlanForms* shared = nullptr;
  std::vector<FilledForm> forms{};  ///< One per form of `shared`.
  struct Units {
    BlockCounts first_chunk{};
    BlockCounts all{};
  };
  std::vector<Units> of_classes{};

  const std::vector<StageClass>& classes() const { return shared->classes.all; }
  /// A quantity for `count` micro-batches, from its values for the forms.
  template <class Quantity>
  Quantity of(std::int64_t count, std::span<const Quantity> of_forms) const {
    if (of_forms.size() == 1) return of_forms.front();
    const auto periods =
        static_cast<double>(count - shared->micro_batches) / static_cast<double>(shared->period);
    return of_forms.front() + periods * (of_forms.back() - of_forms.front());
  }
  LiveBytes of(std::int64_t count, std::span<const LiveBytes> of_forms) const {
    const auto each = [&](Bytes LiveBytes::*bytes) {
      const std::array both{of_forms.front().*bytes, of_forms.back().*bytes};
      return of(count, std::span(both).first(of_forms.size()));
    };
    const Bytes most = each(&LiveBytes::most);
    return {.most = most, .least = std::min(each(&LiveBytes::least), most)};
  }
};

/// All that the form of a plan depends on, except the order of its passes. Layouts that do the same
/// with parameters and devices have equal patterns.
struct Pattern {
  std::int64_t stages = 1;
  Mode mode = Mode::kTrain;
  bool cuts_parameters = false;
  bool cuts_gradients = false;
  bool cuts_optimizer = false;
  bool reduces = false;
  std::vector<std::pair<std::string, bool>> mesh{};  ///< Axes, and whether they have several ranks.
  /// One per block that has other parameters than all earlier blocks: for each parameter group, the
  /// axes over which gradients are reduced, and over which they are also partial sums.
  std::vector<std::vector<std::pair<std::vector<Axis>, std::vector<Axis>>>> groups{};
  std::vector<std::int32_t> devices{};  ///< One set of device kinds per stage.
  bool copies_ahead = false;            ///< Same as StrategyLayout::copies_ahead.
  auto operator<=>(const Pattern&) const = default;
};
/// A value and its number.
template <class T>
using Numbered = std::pair<const T, std::int64_t>;

class SharedPlanForms;

/// All forms that an estimator has met.
class Forms {
 public:
  /// The arguments here and of of() must outlive it. `shared`: where forms are looked up before
  /// they are made.
  Forms(const Model& model, SharedPlanForms& shared) : model_(model), shared_(shared) {}

  /// \return kInvalidInput where the schedule cannot be planned. Valid until forget().
  Result<FilledForms*> of(const Strategy& strategy, StrategyLayout& layout,
                          const Numbered<Pattern>& pattern,
                          const Numbered<TransferKinds>& transfers);
  /// Clears the caches if they are too large; forms are then made anew when they are asked for.
  void forget();
  /// A number for the set of blocks that the strategy's layers have: where only some layers of a
  /// stage recompute, it depends on where stages begin. -1: all layers recompute, or none.
  std::int64_t variants_of(const Strategy& strategy);

 private:
  struct NumberedLabels {
    Labels labels{};
    std::int64_t variants = -1;
  };
  struct NumberedForms {
    PlanForms forms{};
    std::int64_t number = 0;
  };
  static constexpr std::size_t kOfForm = 9;

  NumberedLabels& labels_of(const Strategy& strategy);
  Result<NumberedForms*> form_of(const Strategy& strategy, StrategyLayout& layout,
                                 const Numbered<Pattern>& pattern);
  Status add_form(const Strategy& strategy, StrategyLayout& layout, std::int64_t micro_batches,
                  PlanForms& forms) const;

  const Model& model_;
  SharedPlanForms& shared_;
  Numbering<std::string> schedules_;
  Numbering<std::vector<std::string>> actions_;
  Numbering<std::vector<double>> pass_times_;
  Numbering<std::vector<std::int64_t>> cuts_;
  Numbering<std::vector<std::int64_t>> variants_;
  ByNumbers<3, NumberedLabels> labels_;
  ByNumbers<kOfForm, NumberedForms> forms_;
  ByNumbers<5, FilledForms> filled_;
  std::int64_t next_form_ = 0;
  std::size_t nodes_ = 0;
};

// A cache of the forms of plans that several estimators share: threads that rank parts of a space
// meet the same forms, and planning thousands of passes is most of the cost of an estimate.

/// Used by any number of estimators, for strategies of one study (one model, framework, batch and
/// optimizer) none of which sets a granularity. Thread-safe.
class SharedPlanForms {
 public:
  /// The key of a form among such strategies.
  struct Key {
    Pattern pattern{};
    std::string schedule{};
    std::vector<std::string> actions{};
    std::vector<double> pass_times{};
    std::vector<std::int64_t> cut{};
    std::array<std::int64_t, 4> numbers{};  ///< Chunks, micro-batches, and other numbers.
    auto operator<=>(const Key&) const = default;
  };

  /// Null where the form is not known.
  std::shared_ptr<const PlanForms> find(const Key& key) const;
  void add(const Key& key, const std::shared_ptr<const PlanForms>& forms);

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const PlanForms>> forms_;
  std::size_t nodes_ = 0;
};

}  // namespace foreshard::search
