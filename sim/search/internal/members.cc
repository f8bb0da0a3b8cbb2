// Members of a family that recompute the same layers (members.h); the Estimator makes them and asks
// for memory, bounds and steps. Times are seconds, memory is bytes on one device.
#include "sim/search/internal/members.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace foreshard::search {
namespace {

using program::AxisGroup;
using program::Communication;

// The same axes in another mesh, whose axes may be in another order.
std::vector<Axis> in_mesh(const std::vector<Axis>& axes, const std::vector<MeshAxis>& from,
                          const std::vector<MeshAxis>& to) {
  std::vector<Axis> result;
  for (const Axis axis : axes) {
    const auto it =
        std::ranges::find(to, from[static_cast<std::size_t>(axis)].name, &MeshAxis::name);
    FORESHARD_CHECK(it != to.end());
    result.push_back(static_cast<Axis>(it - to.begin()));
  }
  std::ranges::sort(result);
  return result;
}

// The lesser value of each of the bytes that passes keep, hold and work with.
BlockBytes least_of(BlockBytes a, const BlockBytes& b) {
  a.kept = std::min(a.kept, b.kept);
  a.held = std::min(a.held, b.held);
  for (std::size_t form = 0; form < kForms; ++form) {
    a.work[form] = std::min(a.work[form], b.work[form]);
    a.has_tail[form] = a.has_tail[form] && b.has_tail[form];
  }
  return a;
}

}  // namespace

Result<RecomputedBlocks> RecomputedBlocks::of(const Model& model, const Strategy& strategy,
                                              std::span<const Recomputation> choices) {
  RecomputedBlocks result;
  result.choices_ = choices.size();
  result.mesh_ = mesh_of(strategy);
  result.variants_ = layers_of(model, strategy).variants;
  result.predictions_ = static_cast<std::size_t>(model.multi_token_prediction);
  result.tasks_.resize(result.blocks() * choices.size());
  result.bytes_.resize(result.tasks_.size());
  FORESHARD_TRY(lower::lower_with_recomputations(
      model, strategy, choices,
      [&](std::size_t choice, std::size_t block, const lower::LoweredBlock& lowered) {
        const std::size_t place = block * choices.size() + choice;
        const auto tasks = [&](const lower::Pieces& pass) {
          return PassTasks(lower::only_block(pass), result.works_);
        };
        Tasks& of = result.tasks_[place];
        of.forward = tasks(lowered.forward);
        of.backward = tasks(lowered.backward);
        of.is_split = lowered.split.has_value();
        if (of.is_split) {
          of.input = tasks(lowered.split->input);
          of.weight = tasks(lowered.split->weight);
        }
        result.bytes_[place] = bytes_of_passes(lowered);
      }));
  std::set<std::vector<Axis>> axes;
  for (const program::TaskBody& body : result.works_.all())
    if (const auto* what = std::get_if<Communication>(&body))
      if (const auto* group = std::get_if<AxisGroup>(&what->group)) axes.insert(group->axes);
  result.axes_.assign(axes.begin(), axes.end());
  return result;
}

const std::array<std::int32_t, kBlocks>& RecomputedBlocks::indices(const Model& model,
                                                                   const Strategy& strategy,
                                                                   std::int64_t variants) {
  const auto [known, added] = indices_.try_emplace(variants);
  std::array<std::int32_t, kBlocks>& of_block = known->second;
  if (!added) return of_block;
  of_block.fill(-1);
  const std::vector<LayerVariant> layers = layers_of(model, strategy).variants;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {  // layers come after the embedding
    if (layers[layer].recomputation.how == Recompute::kNone) continue;
    const auto same = std::ranges::find(variants_, layers[layer]);
    FORESHARD_CHECK(same != variants_.end());
    of_block.at(1 + layer) = static_cast<std::int32_t>(same - variants_.begin());
  }
  if (variant_of_prediction(strategy).recomputation.how == Recompute::kNone) return of_block;
  for (std::size_t i = 0; i < predictions_; ++i)
    of_block.at(1 + layers.size() + i) = static_cast<std::int32_t>(variants_.size() + i);
  return of_block;
}

ByteLowerBounds RecomputedBlocks::least_bytes(const Model& model, const Strategy& base,
                                              const std::array<BlockBytes, kBlocks>& bytes) const {
  const std::vector<LayerVariant> layers = layers_of(model, base).variants;
  std::vector<BlockBytes> least((choices_ + 1) * blocks());
  for (std::size_t block = 0; block < blocks(); ++block) {
    std::size_t plain = 1 + layers.size() + block - variants_.size();  // a prediction
    if (block < variants_.size()) {
      const auto same = std::ranges::find_if(layers, [&](const LayerVariant& other) {
        return other.kind == variants_[block].kind &&
               other.trained_before == variants_[block].trained_before;
      });
      FORESHARD_CHECK(same != layers.end());
      plain = 1 + static_cast<std::size_t>(same - layers.begin());
    }
    BlockBytes& of_any = least[choices_ * blocks() + block] = bytes.at(plain);
    for (std::size_t choice = 0; choice < choices_; ++choice) {
      BlockBytes& of_choice = least[choice * blocks() + block];
      of_choice = least_of(bytes.at(plain), this->bytes(block)[choice]);
      of_any = least_of(of_any, of_choice);
    }
  }
  return {blocks(), std::move(least)};
}

Result<std::span<const PassTimes>> RecomputedBlocks::passes(const StrategyLayout& layout,
                                                            std::int32_t devices) {
  std::vector<std::vector<Axis>> axes;
  for (const std::vector<Axis>& one : axes_) axes.push_back(in_mesh(one, mesh_, layout.mesh()));
  std::pair key{layout.group_kinds(axes, devices), devices};
  if (const auto known = times_.find(key); known != times_.end())
    return std::span<const PassTimes>(known->second);
  Works moved = works_;
  moved.change([&](Communication& what) {
    if (auto* group = std::get_if<AxisGroup>(&what.group))
      group->axes = in_mesh(group->axes, mesh_, layout.mesh());
  });
  FORESHARD_ASSIGN(const WorkTimes times, layout.work_times(moved, devices));
  std::vector<PassTimes> passes;
  passes.reserve(tasks_.size());
  for (const Tasks& tasks : tasks_) {
    PassTimes& of = passes.emplace_back();
    of.forward = tasks.forward.time(times);
    of.backward = tasks.backward.time(times);
    if (!tasks.is_split) continue;
    of.input = tasks.input.time(times);
    of.weight = tasks.weight.time(times);
  }
  return std::span<const PassTimes>(
      times_.emplace(std::move(key), std::move(passes)).first->second);
}

FamilyMembers::FamilyMembers(const Shared& shared)
    : shared_(shared), bound_(shared.strategy, shared.forms) {
  for (std::int32_t block = 0; block < static_cast<std::int32_t>(kBlocks); ++block)
    if (is_recomputed(block)) recomputed_.push_back(block);
  for (std::size_t block = 0; shared.recomputed != nullptr && block < shared.recomputed->blocks();
       ++block)
    bytes_.push_back(shared.recomputed->bytes(block));
  add_live_sets();
}

void FamilyMembers::add_live_sets() {
  std::array<BlockBytes, kBlocks> others = shared_.layout.bytes();
  for (const std::int32_t block : recomputed_) {
    BlockBytes& own = others[static_cast<std::size_t>(block)];
    own = {.whole = own.whole, .gradient = own.gradient};
  }
  const auto covers = [](const SplitLiveSet& a, const SplitLiveSet& b) {
    return a.pass == b.pass && (!b.has_tail || (a.has_tail && a.before == b.before)) &&
           a.fixed.most >= b.fixed.most && a.fixed.least >= b.fixed.least &&
           std::ranges::equal(a.kept, b.kept, std::greater_equal()) &&
           std::ranges::equal(a.held, b.held, std::greater_equal());
  };
  for (std::size_t c = 0; c < shared_.stages.size(); ++c) {
    auto& of_class = live_sets_.emplace_back();
    for (const FilledForm& form : shared_.forms.forms) {
      std::vector<SplitLiveSet>& found = of_class.emplace_back();
      for (const LiveSet& live_set : form.live_sets(c)) {
        SplitLiveSet own{.fixed = search::live_of(live_set, others),
                         .depends = depends_on_others(live_set),
                         .pass = live_set.pass,
                         .before = live_set.before,
                         .has_tail = live_set.has_tail};
        for (const std::int32_t block : recomputed_) {
          const auto b = static_cast<std::size_t>(block);
          own.kept[b] = live_set.kept[b];
          own.held[b] = live_set.held[b];
        }
        if (std::ranges::any_of(found,
                                [&](const SplitLiveSet& other) { return covers(other, own); }))
          continue;
        std::erase_if(found, [&](const SplitLiveSet& other) { return covers(own, other); });
        found.push_back(own);
      }
    }
  }
}

Status FamilyMembers::find_times() {
  if (!forms_.empty()) return {};
  for (const StageClass& one : shared_.forms.classes()) {
    FORESHARD_ASSIGN(const ModelTimes* const plain, shared_.layout.passes(one.devices));
    passes_.push_back(by_block(*plain));
    if (recomputed_.empty()) continue;
    FORESHARD_ASSIGN(const auto choices, shared_.recomputed->passes(shared_.layout, one.devices));
    choices_.push_back(choices);
  }
  for (StrategyLayout::Stage* const stage : shared_.stages)
    optimizer_.push_back(shared_.layout.optimizer_kernels(*stage).fastest);
  FORESHARD_ASSIGN(data_,
                   data_stream(shared_.strategy, shared_.forms, shared_.layout, shared_.stages));
  FORESHARD_ASSIGN(round_trips_, shared_.layout.least_round_trips());
  const Framework& framework = *shared_.strategy.framework;
  for (FilledForm& form : shared_.forms.forms) {
    TimedForm& timed =
        forms_.emplace_back(TimedForm{.form = &form, .timed_actions = form.timed_actions()});
    for (std::size_t i = 0; i < timed.timed_actions.size(); ++i) {
      const TimedAction& action = timed.timed_actions[i];
      const auto of_class = static_cast<std::size_t>(action.role);
      if (action.kind == plan::ActionKind::kPass) {
        const bool varies = action.direction == Direction::kBackward &&
                            std::ranges::any_of(recomputed_, [&](std::int32_t block) {
                              return action.units[static_cast<std::size_t>(block)] > 0;
                            });
        if (varies) timed.varying.push_back(i);
        timed.durations.push_back(
            pass_time_of(action, passes_[of_class], framework, launching(action)).in_base());
        continue;
      }
      FORESHARD_ASSIGN(
          const auto time,
          shared_.layout.time_of(action, action.role < 0 ? nullptr : shared_.stages[of_class]));
      timed.durations.push_back(time.in_base());
    }
    add_paths(timed);
  }
  return {};
}

void FamilyMembers::add_paths(TimedForm& form) {
  const auto paths = form.form->paths();
  const std::size_t size = form.timed_actions.size();
  for (; form.paths < paths.size() / size; ++form.paths) {
    const auto path = paths.subspan(form.paths * size, size);
    double fixed = 0;
    for (std::size_t i = 0; i < size; ++i) fixed += path[i] * form.durations[i];
    for (const std::size_t i : form.varying) {
      fixed -= path[i] * form.durations[i];
      form.counts.push_back(path[i]);
    }
    form.fixed.push_back(fixed);
  }
}

// \param bytes_of  function: block of the plan -> bytes.
template <class BytesOf>
LiveBytes FamilyMembers::live_of(const SplitLiveSet& live_set, BytesOf bytes_of) const {
  Bytes recomputed;
  for (const std::int32_t block : recomputed_) {
    const BlockBytes& own = bytes_of(block);
    const auto b = static_cast<std::size_t>(block);
    recomputed += static_cast<double>(live_set.kept[b]) * own.kept +
                  static_cast<double>(live_set.held[b]) * own.held;
  }
  if (is_recomputed(live_set.pass.block))
    recomputed += bytes_of(live_set.pass.block).work[live_set.pass.form()];
  LiveBytes live{.most = live_set.fixed.most + recomputed,
                 .least = live_set.fixed.least + recomputed};
  if (live_set.has_tail && is_recomputed(live_set.before.block))
    live.most += tail_bytes(live_set.before, bytes_of(live_set.before.block));
  return live;
}

// \param is_certain  function: whether a live set of a class is live at once, whatever hosts do.
template <class IsCertain>
Estimate FamilyMembers::memory(std::size_t choice, IsCertain is_certain) const {
  return memory_of(shared_.stages, shared_.forms, [&](std::size_t c) {
    std::array<LiveBytes, 2> lives{};
    for (std::size_t form = 0; form < live_sets_[c].size(); ++form)
      for (const SplitLiveSet& live_set : live_sets_[c][form]) {
        LiveBytes live = live_of(live_set, [&](std::int32_t block) -> const BlockBytes& {
          return bytes(block, choice);
        });
        if (is_certain(c, live_set)) live.least = live.most;
        lives[form].include(live);
      }
    return shared_.forms.of(shared_.strategy.micro_batches(),
                            std::span<const LiveBytes>(lives).first(live_sets_[c].size()));
  });
}

Estimate FamilyMembers::memory(std::size_t choice) const {
  return memory(choice, [](std::size_t, const SplitLiveSet&) { return false; });
}

Estimate FamilyMembers::memory_as_launched(std::size_t choice) const {
  return memory(choice, [&](std::size_t c, const SplitLiveSet& live_set) {
    const Seconds launch = shared_.layout.launching(shared_.forms.classes()[c].devices);
    return is_certain(live_set.pass, live_set.before, live_set.depends, passes_[c], launch);
  });
}

// Neither of two forms needs more than the whole step, because more micro-batches need no less.
Estimate FamilyMembers::least_memory(std::span<const BlockBytes> bytes) const {
  return memory_of(shared_.stages, shared_.forms, [&](std::size_t c) {
    LiveBytes most;
    for (const std::vector<SplitLiveSet>& of_form : live_sets_[c])
      for (const SplitLiveSet& live_set : of_form)
        most.include(live_of(live_set, [&](std::int32_t block) -> const BlockBytes& {
          const auto b = static_cast<std::size_t>(block);
          return bytes[static_cast<std::size_t>(shared_.index_of_block[b])];
        }));
    return most;
  });
}

Seconds FamilyMembers::bound(std::size_t choice) {
  for (std::size_t c = 0; c < choices_.size(); ++c)
    for (const std::int32_t block : recomputed_) {
      const auto b = static_cast<std::size_t>(block);
      const auto index = static_cast<std::size_t>(shared_.index_of_block[b]);
      passes_[c][b] = &choices_[c][index * shared_.recomputed->choices() + choice];
    }
  return bound_.of(passes_, optimizer_, data_, *round_trips_);
}

Seconds FamilyMembers::launching(const TimedAction& action) const {
  const auto of_class = static_cast<std::size_t>(action.role);
  return shared_.layout.launching(shared_.forms.classes()[of_class].devices);
}

Seconds FamilyMembers::bound_of_paths() const {
  return bound_.of_paths(*forms_.front().form, passes_, data_);
}

Seconds FamilyMembers::step() {
  std::array<Seconds, 2> steps{};
  const Framework& framework = *shared_.strategy.framework;
  for (std::size_t f = 0; f < forms_.size(); ++f) {
    TimedForm& form = forms_[f];
    for (const std::size_t i : form.varying)
      form.durations[i] =
          pass_time_of(form.timed_actions[i],
                       passes_[static_cast<std::size_t>(form.timed_actions[i].role)], framework,
                       launching(form.timed_actions[i]))
              .in_base();
    if (form.form->is_walk_due(shared_.layout)) {
      steps[f] = form.form->walk(form.durations, shared_.layout);
      add_paths(form);
      continue;
    }
    const std::size_t varying = form.varying.size();
    double longest = 0;
    for (std::size_t path = 0; path < form.paths; ++path) {
      double length = form.fixed[path];
      for (std::size_t i = 0; i < varying; ++i)
        length += form.counts[path * varying + i] * form.durations[form.varying[i]];
      longest = std::max(longest, length);
    }
    steps[f] = Seconds::from_base(longest);
  }
  return shared_.forms.of(shared_.strategy.micro_batches(),
                          std::span<const Seconds>(steps).first(forms_.size()));
}

}  // namespace foreshard::search
