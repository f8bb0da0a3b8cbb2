// The Estimator of the search (estimate.h), which ranks and bounds strategies without simulating
// them; internal/ranking.cc, cuts.cc, shares.cc and robustness.cc call it. All of it is in Tables:
// lowered blocks, layouts and plan forms are cached by the fields of a strategy that they depend
// on. Errors of lowering are handed on; where a family's base is too large, or its bound too slow,
// the whole family is counted and none of it is estimated.
#include "sim/search/estimate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"

#include "sim/search/family.h"
#include "sim/search/internal/bound.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/layout.h"
#include "sim/search/internal/members.h"
#include "sim/search/internal/strategy_keys.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {
namespace {

// Largest number of entries of the caches that are cleared.
constexpr std::size_t kRememberedSplits = 4096;
constexpr std::size_t kRememberedLayouts = 16384;
constexpr std::size_t kRememberedRecomputed = 256;

}  // namespace

class Estimator::Tables {
 public:
  Tables(const Model& model, const ClusterView& cluster, std::vector<std::int32_t> devices,
         const CostModel& cost, std::shared_ptr<SharedPlanForms> shared, double margin,
         std::span<const std::int32_t> clocked)
      : model_(model),
        shared_(std::move(shared)),
        forms_(model, *shared_),
        places_(cluster, std::move(devices), margin, clocked),
        times_(cost, places_) {}

  Result<Estimate> memory(const Strategy& strategy) {
    trim_caches();
    FORESHARD_ASSIGN(const LayoutAndForms found, find(strategy));
    return memory(strategy, found);
  }

  Result<std::vector<StageMemory>> memory_of_stages(const Strategy& strategy) {
    trim_caches();
    FORESHARD_ASSIGN(const LayoutAndForms found, find(strategy));
    std::vector<StageMemory> result;
    const std::vector<std::int32_t>& of_stage = found.forms->shared->classes.of_stage;
    for (std::size_t stage = 0; stage < of_stage.size(); ++stage) {
      const auto of_class = static_cast<std::size_t>(of_stage[stage]);
      std::vector<LiveBytes> lives;
      for (const FilledForm& form : found.forms->forms) {
        LiveBytes& of_form = lives.emplace_back();
        for (const LiveSet& live_set : form.live_sets_of_stage(stage))
          of_form.include(live_of(live_set, found.layout->bytes()));
      }
      const LiveBytes live =
          found.forms->of(strategy.micro_batches(), std::span<const LiveBytes>(lives));
      result.push_back({.peak = std::max(live.most, stages_[of_class]->at_step()) +
                                stages_[of_class]->resident(),
                        .memory = stages_[of_class]->memory()});
    }
    return result;
  }

  Result<std::vector<std::vector<Seconds>>> unit_times(const Strategy& strategy) {
    trim_caches();
    FORESHARD_ASSIGN(CachedLayout* const known, layout_of(strategy));
    std::vector<std::vector<Seconds>> result;
    for (const std::int32_t devices : known->layout->devices_of_stages()) {
      FORESHARD_ASSIGN(const ModelTimes* const times, known->layout->passes(devices));
      const Seconds launch = known->layout->launching(devices);
      std::vector<Seconds>& units = result.emplace_back();
      for (const PassTimes& of : *times) {
        Seconds time;
        for (const PassTime& pass : {of.forward, of.backward})
          time += std::max(pass.next, pass.hosting(launch));
        units.push_back(time);
      }
    }
    return result;
  }

  // \param walks  whether to walk the plan even where known paths would give the step (see rank()).
  Result<Estimate> estimate(const Strategy& strategy, bool walks) {
    trim_caches();
    FORESHARD_ASSIGN(LayoutAndForms found, find(strategy));
    StrategyLayout& layout = *found.layout;
    const Framework& framework = *strategy.framework;
    const std::vector<StageClass>& classes = found.forms->classes();
    std::vector<BlockTimes> passes;
    for (const StageClass& one : classes) {
      FORESHARD_ASSIGN(const ModelTimes* of_class, layout.passes(one.devices));
      passes.push_back(by_block(*of_class));
    }
    Estimate estimate = memory(strategy, found, passes);
    std::vector<Seconds> steps;
    for (FilledForm& form : found.forms->forms) {
      durations_.clear();
      for (const TimedAction& action : form.timed_actions()) {
        const auto of_class = static_cast<std::size_t>(action.role);
        if (action.kind == plan::ActionKind::kPass) {
          durations_.push_back(pass_time_of(action, passes[of_class], framework,
                                            layout.launching(classes[of_class].devices))
                                   .in_base());
          continue;
        }
        FORESHARD_ASSIGN(const auto time,
                         layout.time_of(action, action.role < 0 ? nullptr : stages_[of_class]));
        durations_.push_back(time.in_base());
      }
      const bool is_known = !walks && form.is_settled(layout);
      steps.push_back(is_known ? form.longest_path(durations_) : form.walk(durations_, layout));
    }
    estimate.step = found.forms->of(strategy.micro_batches(), std::span<const Seconds>(steps));
    std::vector<Seconds> optimizer;
    for (StrategyLayout::Stage* const stage : stages_)
      optimizer.push_back(layout.optimizer_kernels(*stage).fastest);
    FORESHARD_ASSIGN(const auto data, data_stream(strategy, *found.forms, layout, stages_));
    FORESHARD_ASSIGN(const auto* const round_trips, layout.least_round_trips());
    Bound bound(strategy, *found.forms);
    estimate.bound =
        at_own_clocks(strategy, std::max(bound.of(passes, optimizer, data, *round_trips),
                                         bound.of_paths(found.forms->forms.front(), passes, data)));
    estimate.step = std::max(estimate.step, estimate.bound);
    return estimate;
  }

  Result<Seconds> least_step(const Strategy& strategy) {
    StrategyKey key = keys_.of_layer(strategy);
    auto known = kernels_.find(key);
    if (known == kernels_.end()) {
      FORESHARD_ASSIGN(const SplitBlocks* const split, split_of(strategy));
      known = kernels_
                  .emplace(std::move(key), work_of_kernels(model_, smallest_like(strategy),
                                                           split->blocks, places_, times_))
                  .first;
    }
    return at_own_clocks(strategy, search::least_step(strategy, known->second));
  }

  Result<Seconds> least_step_laid_out(const Strategy& strategy) {
    trim_caches();
    // Where passes hide communication, the layout gives no better bound than the kernels do.
    if (strategy.overlap_experts) return least_step(strategy);
    FORESHARD_ASSIGN(CachedLayout* const known, layout_of(strategy));
    if (!known->least) {
      std::vector<Seconds> units;
      const auto& devices = known->layout->devices_of_stages();
      for (const std::int32_t of_stage : std::set(devices.begin(), devices.end())) {
        FORESHARD_ASSIGN(const ModelTimes* const times, known->layout->passes(of_stage));
        units.resize(times->size(), kNever);
        for (std::size_t block = 0; block < times->size(); ++block)
          units[block] = std::min(units[block], least_of((*times)[block]));
      }
      known->least = work_of(model_, strategy, units);
    }
    return at_own_clocks(strategy, search::least_step(strategy, *known->least));
  }

  Status family(const Family& family, FamilyVisitor& visitor) {
    trim_caches();
    FORESHARD_ASSIGN(CachedLayout* const known, layout_of(family.base));
    const StrategyLayout::Room room = known->layout->first_room(family.base);
    if (visitor.is_large({.step = {},
                          .bound = {},
                          .peak = room.resident,
                          .memory = room.memory,
                          .least = part_of(room.resident, room.memory)})) {
      visitor.count_large(family.size());
      return {};
    }
    FORESHARD_ASSIGN(FamilyMembers base, members(family.base, family.base, nullptr));
    std::optional<Recomputed> recomputed;
    if (!family.choices->all.empty() && !changes_more_than_backward(family.base)) {
      const Strategy all = family.strategy_of({.choice = 0, .layers = 0});
      FORESHARD_ASSIGN(RecomputedBlocks* const blocks,
                       recomputed_blocks_of(all, family.choices->all));
      recomputed.emplace(
          Recomputed{.of = family,
                     .recomputed = *blocks,
                     .least = blocks->least_bytes(model_, family.base, base.bytes_of_plan())});
      FORESHARD_ASSIGN(const bool is_hopeless, is_large(*recomputed, family.layers, visitor));
      if (is_hopeless) {
        visitor.count_large(family.size());
        return {};
      }
    }
    FORESHARD_TRY(base.find_times());
    const Seconds bound = at_own_clocks(family.base, base.bound(0));
    if (!visitor.is_of_interest(bound)) {
      visitor.count_slower(family.size(), bound);
      return {};
    }
    FORESHARD_TRY(visit(family, {}, base, visitor));
    return recomputed ? visit(*recomputed, visitor) : one_by_one(family, visitor);
  }

 private:
  // The members of a family that recompute something, found as they are asked for.
  struct Recomputed {
    const Family& of;
    RecomputedBlocks& recomputed;
    ByteLowerBounds least;
    std::vector<std::optional<FamilyMembers>> known = std::vector<std::optional<FamilyMembers>>(
        static_cast<std::size_t>(of.layers));  // index: FamilyMember::layers
  };

  // The members that recompute `layers` layers per stage; 0 (as in FamilyMember) and Family::layers
  // both mean all layers.
  Result<FamilyMembers*> members(Recomputed& all, std::int64_t layers) {
    layers %= all.of.layers;
    std::optional<FamilyMembers>& found = all.known[static_cast<std::size_t>(layers)];
    if (!found) {
      const Strategy one = all.of.strategy_of({.choice = 0, .layers = layers});
      FORESHARD_ASSIGN(FamilyMembers made, members(one, all.of.base, &all.recomputed));
      found.emplace(std::move(made));
    }
    return &*found;
  }

  // Whether every member that recomputes at most `layers` layers is too large for the visitor. Only
  // `layers` itself is looked at: recomputing fewer layers never takes less memory. If `choice` is
  // given, only members with that choice count.
  Result<bool> is_large(Recomputed& all, std::int64_t layers, const FamilyVisitor& visitor,
                        std::optional<std::size_t> choice = {}) {
    FORESHARD_ASSIGN(const FamilyMembers* const found, members(all, layers));
    return visitor.is_large(
        found->least_memory(choice ? all.least.of_choice(*choice) : all.least.of_any()));
  }

  // The largest number of layers for which is_large() is true; `too_few` if there is none above it.
  // \pre is_large() is false for `enough`. It is true for `too_few`, unless that is 0, which means
  //     no layer here.
  Result<std::int64_t> most_too_few(Recomputed& all, std::int64_t too_few, std::int64_t enough,
                                    const FamilyVisitor& visitor,
                                    std::optional<std::size_t> choice = {}) {
    while (too_few + 1 < enough) {
      const std::int64_t middle = (too_few + enough) / 2;
      FORESHARD_ASSIGN(const bool is_large, this->is_large(all, middle, visitor, choice));
      (is_large ? too_few : enough) = middle;
    }
    return too_few;
  }

  // For each choice of recomputation: the largest number of layers for which is_large() is true; 0:
  // none.
  Result<std::vector<std::int64_t>> too_few_by_choice(Recomputed& all,
                                                      const FamilyVisitor& visitor) {
    constexpr std::int64_t kFew = 4;  // so few members are not worth a search for each choice
    const std::int64_t layers = all.of.layers;
    FORESHARD_ASSIGN(const std::int64_t any, most_too_few(all, 0, layers, visitor));
    std::vector<std::int64_t> most(all.of.choices->all.size(), any);
    if (layers - any <= kFew) return most;
    for (std::size_t choice = 0; choice < most.size(); ++choice) {
      FORESHARD_ASSIGN(const bool is_next_large, is_large(all, any + 1, visitor, choice));
      if (!is_next_large) continue;
      FORESHARD_ASSIGN(const bool is_never_small, is_large(all, layers, visitor, choice));
      most[choice] = layers;
      if (is_never_small) continue;
      FORESHARD_ASSIGN(most[choice], most_too_few(all, any + 1, layers, visitor, choice));
    }
    return most;
  }

  Status visit(Recomputed& all, FamilyVisitor& visitor) {
    FORESHARD_ASSIGN(const auto too_few, too_few_by_choice(all, visitor));
    for (std::int64_t layers = 0; layers < all.of.layers; ++layers) {
      for (std::size_t choice = 0; choice < too_few.size(); ++choice) {
        if (layers > 0 && !all.of.choices->counts_layers(choice)) continue;
        if ((layers == 0 ? all.of.layers : layers) <= too_few[choice]) {
          visitor.count_large(1);
          continue;
        }
        FORESHARD_ASSIGN(FamilyMembers* const alike, members(all, layers));
        const FamilyMember member{.choice = static_cast<std::int32_t>(choice), .layers = layers};
        FORESHARD_TRY(visit(all.of, member, *alike, visitor));
      }
    }
    return {};
  }

  // Whether recomputation changes more than the backward passes: gathers, copies to the host, or
  // other operators.
  static bool changes_more_than_backward(const Strategy& strategy) {
    const Framework& framework = *strategy.framework;
    return strategy.offload_activation_layers > 0 || framework.quantized_expert_inputs ||
           (framework.shards.gather_each && state_sharding(strategy).cuts_parameters);
  }

  // The bound of a strategy whose kernels run at the clocks of the slowest device that it uses.
  Seconds at_own_clocks(const Strategy& strategy, Seconds bound) {
    return places_.clock_ratio(strategy.devices()) * bound;
  }

  Status visit(const Family& family, const FamilyMember& member, FamilyMembers& alike,
               FamilyVisitor& visitor) {
    const auto choice = static_cast<std::size_t>(std::max(member.choice, 0));
    Estimate estimate = alike.memory(choice);
    if (!visitor.fits(member, estimate)) {
      visitor.add_large(member, estimate);
      return {};
    }
    FORESHARD_TRY(alike.find_times());
    estimate.bound = at_own_clocks(family.base, alike.bound(choice));
    if (!visitor.is_of_interest(estimate.bound)) {
      visitor.count_slower(1, estimate.bound);
      return {};
    }
    if (estimate.peak > estimate.memory) {
      estimate.least = alike.memory_as_launched(choice).least;
      if (!visitor.fits(member, estimate)) {
        visitor.add_large(member, estimate);
        return {};
      }
    }
    const Seconds step = alike.step();
    estimate.bound = std::max(estimate.bound, at_own_clocks(family.base, alike.bound_of_paths()));
    if (!visitor.is_of_interest(estimate.bound)) {
      visitor.count_slower(1, estimate.bound);
      return {};
    }
    estimate.step = std::max(step, estimate.bound);
    visitor.add(member, estimate);
    return {};
  }

  Status one_by_one(const Family& family, FamilyVisitor& visitor) {
    for (std::int64_t layers = 0; layers < family.layers; ++layers) {
      for (std::size_t choice = 0; choice < family.choices->all.size(); ++choice) {
        if (layers > 0 && !family.choices->counts_layers(choice)) continue;
        const FamilyMember member{.choice = static_cast<std::int32_t>(choice), .layers = layers};
        FORESHARD_ASSIGN(const Estimate found, estimate(family.strategy_of(member), false));
        if (!visitor.fits(member, found))
          visitor.add_large(member, found);
        else if (!visitor.is_of_interest(found.bound))
          visitor.count_slower(1, found.bound);
        else
          visitor.add(member, found);
      }
    }
    return {};
  }

  // The members of the family of `base` that recompute the same layers as `strategy`.
  Result<FamilyMembers> members(const Strategy& strategy, const Strategy& base,
                                RecomputedBlocks* recomputed) {
    FORESHARD_ASSIGN(const LayoutAndForms found, find(strategy));
    FamilyMembers::Shared shared{.strategy = base,
                                 .forms = *found.forms,
                                 .layout = *found.layout,
                                 .stages = stages_,
                                 .recomputed = recomputed};
    shared.index_of_block.fill(-1);
    if (recomputed != nullptr)
      shared.index_of_block = recomputed->indices(model_, strategy, forms_.variants_of(strategy));
    return FamilyMembers(shared);
  }

  Result<RecomputedBlocks*> recomputed_blocks_of(const Strategy& strategy,
                                                 const std::vector<Recomputation>& choices) {
    StrategyKey key = keys_.of_layer(strategy);
    key.push_back(choices_.of(parts_in(choices)));
    if (const auto known = recomputed_.find(key); known != recomputed_.end())
      return known->second.get();
    if (recomputed_.size() > kRememberedRecomputed) recomputed_.clear();
    FORESHARD_ASSIGN(RecomputedBlocks recomputed,
                     RecomputedBlocks::of(model_, smallest_like(strategy), choices));
    return recomputed_
        .emplace(std::move(key), std::make_unique<RecomputedBlocks>(std::move(recomputed)))
        .first->second.get();
  }
  static std::vector<std::vector<foreshard::LayerPart>> parts_in(
      const std::vector<Recomputation>& choices) {
    std::vector<std::vector<foreshard::LayerPart>> parts;
    parts.reserve(choices.size());
    for (const Recomputation& choice : choices)
      parts.push_back(choice.how == Recompute::kFull ? std::vector<foreshard::LayerPart>{}
                                                     : choice.parts);
    return parts;
  }

  // Clears caches that are too large. Results of earlier calls of find() are then no longer valid.
  // Layouts refer to the blocks in splits_, so they go with them.
  void trim_caches() {
    if (splits_.size() > kRememberedSplits) {
      layouts_.clear();
      splits_.clear();
    }
    if (layouts_.size() > kRememberedLayouts) layouts_.clear();
    forms_.forget();
  }

  struct LayoutAndForms {
    StrategyLayout* layout;
    FilledForms* forms;
  };
  struct CachedLayout {
    std::unique_ptr<StrategyLayout> layout;
    const Numbered<Pattern>* pattern = nullptr;
    const Numbered<TransferKinds>* transfers = nullptr;
    std::optional<StepWork> least = {};
  };

  // The strategy's layout and plan forms. \post stages_ has the stages of the forms' classes.
  Result<LayoutAndForms> find(const Strategy& strategy) {
    FORESHARD_ASSIGN(CachedLayout* const known, layout_of(strategy));
    StrategyLayout& layout = *known->layout;
    FORESHARD_ASSIGN(FilledForms* const forms,
                     forms_.of(strategy, layout, *known->pattern, *known->transfers));
    const bool repeats = strategy.micro_batches() > 1;
    stages_.clear();
    for (std::size_t c = 0; c < forms->classes().size(); ++c) {
      const StageClass& one = forms->classes()[c];
      stages_.push_back(
          &layout.stage({.units = forms->of_classes[c].all,
                         .devices = one.devices,
                         .sends_gradients = one.first > 0 || strategy.virtual_stages > 1,
                         .repeats = repeats},
                        strategy, one.first));
    }
    return LayoutAndForms{&layout, forms};
  }

  // \param passes  one per class: what is live at once however late hosts are counts into
  //     Estimate::least in full. Empty: this is not looked for.
  Estimate memory(const Strategy& strategy, const LayoutAndForms& found,
                  const std::vector<BlockTimes>& passes = {}) const {
    return memory_of(stages_, *found.forms, [&](std::size_t c) {
      const Seconds launch = found.layout->launching(found.forms->classes()[c].devices);
      std::vector<LiveBytes> lives;
      for (const FilledForm& form : found.forms->forms) {
        LiveBytes& of_form = lives.emplace_back();
        for (const LiveSet& live_set : form.live_sets(c)) {
          LiveBytes live = live_of(live_set, found.layout->bytes());
          if (!passes.empty() && is_certain(live_set.pass, live_set.before,
                                            depends_on_others(live_set), passes[c], launch))
            live.least = live.most;
          of_form.include(live);
        }
      }
      return found.forms->of(strategy.micro_batches(), std::span<const LiveBytes>(lives));
    });
  }

  // The blocks of a strategy, lowered once for all strategies that split a layer in the same way,
  // however many replicas and stages they have. (Axes of one rank stay in the mesh.)
  Result<SplitBlocks*> split_of(const Strategy& strategy) {
    StrategyKey key = keys_.of_split(strategy);
    if (const auto it = splits_.find(key); it != splits_.end()) return it->second.get();
    FORESHARD_ASSIGN(auto blocks, lower::lower_blocks(model_, smallest_like(strategy)));
    auto split = std::make_unique<SplitBlocks>(SplitBlocks{.blocks = std::move(blocks)});
    return splits_.emplace(std::move(key), std::move(split)).first->second.get();
  }

  // The smallest strategy that splits a layer in the same way: fewest replicas and one stage. Where
  // some layers of each stage recompute, it keeps the stages' layers, since these say which do.
  Strategy smallest_like(const Strategy& strategy) const {
    Strategy smallest = strategy;
    smallest.data_parallel = smallest.shard_replicas * expert_data_ranks(smallest);
    smallest.pipeline_parallel = 1;
    smallest.layers_per_stage.clear();
    if (strategy.recompute_layers > 0)
      smallest.layers_per_stage = layers_of_stages(strategy, model_.layers);
    return smallest;
  }

  Result<CachedLayout*> layout_of(const Strategy& strategy) {
    StrategyKey key = keys_.of_layout(strategy);
    if (const auto it = layouts_.find(key); it != layouts_.end()) return &it->second;
    FORESHARD_ASSIGN(SplitBlocks* const split, split_of(strategy));
    CachedLayout known{
        .layout = std::make_unique<StrategyLayout>(strategy, model_, *split, places_, times_)};
    known.pattern = &pattern_of(strategy, *known.layout);
    known.transfers = &transfers_of(strategy, *known.layout);
    return &layouts_.emplace(std::move(key), std::move(known)).first->second;
  }

  const Numbered<Pattern>& pattern_of(const Strategy& strategy, StrategyLayout& layout) {
    const StateSharding& states = layout.states();
    Pattern pattern{.stages = strategy.pipeline_parallel,
                    .mode = strategy.mode,
                    .cuts_parameters = states.cuts_parameters,
                    .cuts_gradients = states.cuts_gradients,
                    .cuts_optimizer = states.cuts_optimizer,
                    .reduces = states.reduce != StateSharding::Reduce::kNever,
                    .devices = layout.devices_of_stages(),
                    .copies_ahead = layout.copies_ahead()};
    for (const MeshAxis& axis : layout.mesh()) pattern.mesh.emplace_back(axis.name, axis.size > 1);
    const auto blocks = layout.blocks().all();
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      if (layout.first_like(block) != block) continue;
      auto& groups = pattern.groups.emplace_back();
      for (const plan::ParameterGroup& group : blocks[block]->parameters)
        groups.emplace_back(group.over, group.also_partial);
    }
    return *patterns_.try_emplace(std::move(pattern), std::ssize(patterns_)).first;
  }

  const Numbered<TransferKinds>& transfers_of(const Strategy& strategy, StrategyLayout& layout) {
    TransferKinds kinds;
    const auto stages = static_cast<std::int32_t>(strategy.pipeline_parallel);
    for (std::int32_t stage = 0; stages > 1 && stage < stages; ++stage) {
      const std::int32_t next = (stage + 1) % stages;
      kinds.push_back(layout.transfer_kind(stage, next));
      kinds.push_back(layout.transfer_kind(next, stage));
    }
    return *transfers_.try_emplace(std::move(kinds), std::ssize(transfers_)).first;
  }

  const Model& model_;
  std::shared_ptr<SharedPlanForms> shared_;
  Forms forms_;
  StrategyKeys keys_{forms_};
  RankDevices places_;
  CostCache times_;
  Numbering<std::vector<std::vector<foreshard::LayerPart>>> choices_;
  ByKey<std::unique_ptr<SplitBlocks>> splits_;
  ByKey<std::unique_ptr<RecomputedBlocks>> recomputed_;
  ByKey<StepWork> kernels_;  // layer (StrategyKeys::of_layer) -> kernels of a micro-batch
  ByKey<CachedLayout> layouts_;
  std::map<Pattern, std::int64_t> patterns_;
  std::map<TransferKinds, std::int64_t> transfers_;
  std::vector<StrategyLayout::Stage*> stages_;  // class -> stage of the strategy at hand
  std::vector<double> durations_;
};

Estimator::Estimator(const Model& model, const ClusterView& cluster,
                     std::vector<std::int32_t> devices, const CostModel& cost,
                     std::shared_ptr<SharedPlanForms> shared, double margin,
                     std::span<const std::int32_t> clocked)
    : tables_(std::make_unique<Tables>(
          model, cluster, std::move(devices), cost,
          shared ? std::move(shared) : std::make_shared<SharedPlanForms>(), margin, clocked)) {}
Estimator::~Estimator() = default;

Result<Estimate> Estimator::memory(const Strategy& strategy) {
  return tables_->memory(strategy);
}
Result<std::vector<StageMemory>> Estimator::memory_of_stages(const Strategy& strategy) {
  return tables_->memory_of_stages(strategy);
}
Result<std::vector<std::vector<Seconds>>> Estimator::unit_times(const Strategy& strategy) {
  return tables_->unit_times(strategy);
}
Result<Estimate> Estimator::estimate(const Strategy& strategy) {
  return tables_->estimate(strategy, true);
}
Result<Estimate> Estimator::rank(const Strategy& strategy) {
  return tables_->estimate(strategy, false);
}
Result<Seconds> Estimator::least_step(const Strategy& strategy) {
  return tables_->least_step(strategy);
}
Result<Seconds> Estimator::least_step_laid_out(const Strategy& strategy) {
  return tables_->least_step_laid_out(strategy);
}
Status Estimator::family(const Family& family, FamilyVisitor& visitor) {
  return tables_->family(family, visitor);
}

}  // namespace foreshard::search
