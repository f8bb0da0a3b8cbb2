#include "sim/search/estimate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"

#include "sim/search/internal/forms.h"
#include "sim/search/internal/layout.h"
#include "sim/search/internal/numbers.h"
#include "strategies/parallelism/pipeline.h"

namespace foreshard::search {
namespace {

// More than these are not remembered.
constexpr std::size_t kRememberedSplits = 4096;
constexpr std::size_t kRememberedLayouts = 16384;

std::int64_t number_of(const StateSharding& states) {
  const auto bit = [](bool value) { return std::int64_t{value ? 1 : 0}; };
  return bit(states.cuts_parameters) + 2 * bit(states.cuts_gradients) +
         4 * bit(states.cuts_optimizer) + 8 * static_cast<std::int64_t>(states.gather) +
         64 * static_cast<std::int64_t>(states.reduce);
}

// See the file's comment of estimate.h. The pieces before the first of stage s are those of chunk
// 0. Of equal stages the last one has the most before it.
class Bound {
 public:
  Bound(const Strategy& strategy, const FilledForms& forms,
        const std::vector<const ModelTimes*>& passes)
      : strategy_(strategy),
        classes_(forms.classes()),
        units_(forms.of_classes),
        passes_(passes),
        splits_(splits_backward(strategy)) {
    if (!strategy.overlap_experts) return;
    // What others' passes may hide is left out.
    least_ = &PassTime::kernels;
    least_of_kinds_ = &PassTime::kernels_of_kinds;
  }

  template <class Optimizer>
  Seconds run(Optimizer optimizer) const {
    const auto m = static_cast<double>(strategy_.micro_batches());
    std::vector<Seconds> ahead;  // what a stage of each class does before those behind it
    for (std::size_t c = 0; c < classes_.size(); ++c)
      ahead.push_back(of_chunk(c, units_[c].first_chunk, [&](const PassTimes& of) {
        return splits_ ? of.forward.*least_
                       : both(of, [&](const PassTime& pass) { return pass.*least_; });
      }));
    Seconds most;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      Seconds before;
      for (std::size_t other = 0; other < ahead.size(); ++other)
        before += static_cast<double>(classes_[c].before[other]) * ahead[other];
      const Seconds own = own_of(c);
      most = std::max(most, before + m * own + (splits_ ? optimizer(c) : Seconds{}));
    }
    return splits_ ? most : most + optimizer(0);
  }

 private:
  // A stage's own passes of a micro-batch on the kind of device that takes the longest for all of
  // them: one kind may be the slowest in one pass, another in the next.
  Seconds own_of(std::size_t c) const {
    const auto kinds =
        std::max<std::size_t>((passes_[c]->front().forward.*least_of_kinds_).size(), 1);
    Seconds most;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const auto on_kind = [&](const PassTime& pass) {
        const std::vector<Seconds>& times = pass.*least_of_kinds_;
        return times.empty() ? pass.*least_ : times[kind];
      };
      most = std::max(
          most, of_chunk(c, units_[c].all, [&](const PassTimes& of) { return both(of, on_kind); }));
    }
    return most;
  }
  // Of a pass that may run whole or in two parts, the lesser.
  template <class Which>
  Seconds both(const PassTimes& of, Which which) const {
    const bool apart = splits_ && of.input.launches > 0;
    return which(of.forward) +
           (apart ? std::min(which(of.input) + which(of.weight), which(of.backward))
                  : which(of.backward));
  }
  template <class TimeOf>
  Seconds of_chunk(std::size_t c, const BlockCounts& units, TimeOf time_of) const {
    Seconds time;
    const ModelTimes& times = *passes_[c];
    for (std::size_t i = 0; i < times.size(); ++i)
      if (units.at(i) > 0) time += static_cast<double>(units.at(i)) * time_of(times[i]);
    return time;
  }

  const Strategy& strategy_;
  const std::vector<StageClass>& classes_;
  const std::vector<FilledForms::Units>& units_;  // by class
  const std::vector<const ModelTimes*>& passes_;  // by class
  bool splits_;
  Seconds PassTime::*least_ = &PassTime::least;
  std::vector<Seconds> PassTime::*least_of_kinds_ = &PassTime::least_of_kinds;
};

}  // namespace

class Estimator::Tables {
 public:
  Tables(const Model& model, const ClusterView& cluster, std::vector<std::int32_t> devices,
         const CostModel& cost, Seconds launch_time)
      : model_(model),
        launch_time_(launch_time),
        forms_(model),
        places_(cluster, std::move(devices)),
        times_(cost, places_) {}

  Result<Estimate> memory(const Strategy& strategy) {
    FORESHARD_ASSIGN(const Found found, find(strategy));
    return memory(strategy, found);
  }

  Result<std::vector<StageMemory>> memory_of_stages(const Strategy& strategy) {
    FORESHARD_ASSIGN(const Found found, find(strategy));
    std::vector<StageMemory> result;
    const std::vector<std::int32_t>& of_stage = found.forms->shared->classes.of_stage;
    for (std::size_t stage = 0; stage < of_stage.size(); ++stage) {
      const auto of_class = static_cast<std::size_t>(of_stage[stage]);
      std::vector<Bytes> peaks;
      for (const FilledForm& form : found.forms->forms)
        peaks.push_back(search::peak(form.loads_of_stage(stage), found.layout->bytes()));
      result.push_back({.peak = std::max(found.forms->of(strategy.micro_batches(), peaks),
                                         stages_[of_class]->at_step()) +
                                stages_[of_class]->resident(),
                        .memory = stages_[of_class]->memory()});
    }
    return result;
  }

  Result<std::vector<std::vector<Seconds>>> unit_times(const Strategy& strategy) {
    FORESHARD_ASSIGN(Known* const known, layout_of(strategy));
    const Seconds launch = launch_time_ + strategy.framework->host_time;
    std::vector<std::vector<Seconds>> result;
    for (const std::int32_t devices : known->layout->devices_of_stages()) {
      FORESHARD_ASSIGN(const ModelTimes* const times, known->layout->passes(devices));
      std::vector<Seconds>& units = result.emplace_back();
      for (const PassTimes& of : *times) {
        Seconds time;
        for (const PassTime& pass : {of.forward, of.backward})
          time += std::max(pass.next, static_cast<double>(pass.launches) * launch);
        units.push_back(time);
      }
    }
    return result;
  }

  Result<Estimate> estimate(const Strategy& strategy, bool walks) {
    FORESHARD_ASSIGN(Found found, find(strategy));
    Estimate estimate = memory(strategy, found);
    Layout& layout = *found.layout;
    const Framework& framework = *strategy.framework;
    const std::vector<StageClass>& classes = found.forms->classes();
    std::vector<const ModelTimes*> passes;
    for (const StageClass& one : classes) {
      FORESHARD_ASSIGN(const ModelTimes* of_class, layout.passes(one.devices));
      passes.push_back(of_class);
    }
    std::vector<Seconds> steps;
    for (FilledForm& form : found.forms->forms) {
      durations_.clear();
      for (const Symbol& symbol : form.symbols()) {
        const auto of_class = static_cast<std::size_t>(symbol.role);
        if (symbol.kind == Symbol::Kind::kPass) {
          durations_.push_back(
              pass_time_of(symbol, *passes[of_class], framework, launch_time_ + framework.host_time)
                  .in_base());
          continue;
        }
        FORESHARD_ASSIGN(const auto time,
                         layout.time_of(symbol, symbol.role < 0 ? nullptr : stages_[of_class]));
        durations_.push_back(time.in_base());
      }
      const bool is_known = !walks && form.is_settled(layout);
      steps.push_back(is_known ? form.longest_path(durations_) : form.walk(durations_, layout));
    }
    estimate.step = found.forms->of(strategy.micro_batches(), steps);
    estimate.bound = Bound(strategy, *found.forms, passes).run([&](std::size_t c) {
      return layout.optimizer_kernels(*stages_[c]).fastest;
    });
    if (!walks) estimate.step = std::max(estimate.step, estimate.bound);
    return estimate;
  }

 private:
  struct Found {
    Layout* layout;
    FilledForms* forms;
  };
  // What strategies agree in whose plans have the same form, but for what their order is.
  struct Pattern {
    std::int64_t stages = 1;
    Mode mode = Mode::kTrain;
    bool cuts_parameters = false;
    bool cuts_gradients = false;
    bool cuts_optimizer = false;
    bool reduces = false;
    std::vector<std::pair<std::string, bool>> mesh{};  // axes, and whether they have ranks
    // Of each block of other parameters than those before it: over which axes they are reduced, and
    // also partial.
    std::vector<std::vector<std::pair<std::vector<Axis>, std::vector<Axis>>>> groups{};
    std::vector<std::int32_t> devices{};    // of stages
    std::vector<std::int32_t> transfers{};  // between neighbours
    auto operator<=>(const Pattern&) const = default;
  };
  struct Known {
    std::unique_ptr<Layout> layout;
    std::int64_t pattern = 0;
  };

  // \post stages_ has the stages of the forms' classes.
  Result<Found> find(const Strategy& strategy) {
    FORESHARD_ASSIGN(Known* const known, layout_of(strategy));
    Layout& layout = *known->layout;
    FORESHARD_ASSIGN(FilledForms* const forms, forms_.of(strategy, layout, known->pattern));
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
    return Found{&layout, forms};
  }

  Estimate memory(const Strategy& strategy, const Found& found) const {
    Estimate estimate;
    for (std::size_t c = 0; c < stages_.size(); ++c) {
      std::vector<Bytes> peaks;
      for (const FilledForm& form : found.forms->forms)
        peaks.push_back(search::peak(form.loads(c), found.layout->bytes()));
      const Bytes peak =
          std::max(found.forms->of(strategy.micro_batches(), peaks), stages_[c]->at_step()) +
          stages_[c]->resident();
      const Bytes memory = stages_[c]->memory();
      if (c == 0 || memory - peak < estimate.memory - estimate.peak) {
        estimate.peak = peak;
        estimate.memory = memory;
        estimate.stage = found.forms->classes()[c].first;
      }
    }
    return estimate;
  }

  // What the blocks of a layout depend on, and the states of its stages: numbers that are the same.
  static constexpr std::size_t kOfSplit = 16;
  static constexpr std::size_t kOfLayout = kOfSplit + 5;

  // Those of the split first.
  std::array<std::int64_t, kOfLayout> layout_numbers(const Strategy& strategy) {
    return {strategy.tensor_parallel,
            strategy.context_parallel,
            static_cast<std::int64_t>(strategy.context_exchange),
            strategy.context_heads,
            strategy.expert_parallel,
            strategy.expert_tensor_parallel,
            strategy.sequence_parallel ? 1 : 0,
            strategy.micro_batch,
            static_cast<std::int64_t>(strategy.recompute),
            parts_.of(strategy.recompute_parts),
            forms_.variants_of(strategy),
            strategy.shard_replicas,
            splits_backward(strategy) ? 1 : 0,
            static_cast<std::int64_t>(strategy.mode),
            static_cast<std::int64_t>(strategy.token_dispatcher),
            orders_.of(strategy.rank_order),
            strategy.pipeline_parallel,
            strategy.data_parallel,
            number_of(state_sharding(strategy)),
            last_stage(strategy) == 0 ? 1 : 0,
            2 * static_cast<std::int64_t>(strategy.offload_optimizer) +
                (strategy.offload_parameters ? 1 : 0)};
  }

  // Blocks are lowered once for strategies that split a layer alike, whatever their replicas and
  // stages (the mesh keeps its axes).
  Result<Split*> split_of(const Strategy& strategy,
                          const std::array<std::int64_t, kOfLayout>& numbers) {
    // How far apart the ranks lie that share a layer.
    std::vector<std::int64_t> key(numbers.begin(), numbers.begin() + kOfSplit);
    std::int64_t stride = 1;
    for (const MeshAxis& axis : mesh_of(strategy)) {
      if (axis.name == "tensor" || axis.name.starts_with("context") || axis.name == "expert")
        key.push_back(stride);
      stride *= axis.size;
    }
    if (const auto it = splits_.find(key); it != splits_.end()) return it->second.get();
    Strategy alone = strategy;
    alone.data_parallel = alone.shard_replicas * alone.expert_ways();
    alone.pipeline_parallel = 1;
    alone.layers_per_stage.clear();
    if (strategy.recompute_layers > 0)
      alone.layers_per_stage = layers_of_stages(strategy, model_.layers);
    FORESHARD_ASSIGN(auto blocks, lower::lower_blocks(model_, alone));
    auto split = std::make_unique<Split>(Split{.blocks = std::move(blocks)});
    return splits_.emplace(std::move(key), std::move(split)).first->second.get();
  }

  Result<Known*> layout_of(const Strategy& strategy) {
    const auto numbers = layout_numbers(strategy);
    if (const auto it = layouts_.find(numbers); it != layouts_.end()) return &it->second;
    if (splits_.size() > kRememberedSplits) {
      layouts_.clear();
      splits_.clear();
    }
    if (layouts_.size() > kRememberedLayouts) layouts_.clear();
    FORESHARD_ASSIGN(Split* const split, split_of(strategy, numbers));
    Known known{.layout = std::make_unique<Layout>(strategy, model_, *split, places_, times_,
                                                   launch_time_ + strategy.framework->host_time)};
    known.pattern = pattern_of(strategy, *known.layout);
    return &layouts_.emplace(numbers, std::move(known)).first->second;
  }

  std::int64_t pattern_of(const Strategy& strategy, Layout& layout) {
    const StateSharding& states = layout.states();
    Pattern pattern{.stages = strategy.pipeline_parallel,
                    .mode = strategy.mode,
                    .cuts_parameters = states.cuts_parameters,
                    .cuts_gradients = states.cuts_gradients,
                    .cuts_optimizer = states.cuts_optimizer,
                    .reduces = states.reduce != StateSharding::Reduce::kNever,
                    .devices = layout.devices_of_stages()};
    for (const MeshAxis& axis : layout.mesh()) pattern.mesh.emplace_back(axis.name, axis.size > 1);
    const auto blocks = layout.blocks().all();
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      if (layout.first_like(block) != block) continue;
      auto& groups = pattern.groups.emplace_back();
      for (const plan::ParameterGroup& group : blocks[block]->parameters)
        groups.emplace_back(group.over, group.also_partial);
    }
    const auto stages = static_cast<std::int32_t>(strategy.pipeline_parallel);
    for (std::int32_t stage = 0; stages > 1 && stage < stages; ++stage) {
      const std::int32_t next = (stage + 1) % stages;
      pattern.transfers.push_back(layout.transfer_kind(stage, next));
      pattern.transfers.push_back(layout.transfer_kind(next, stage));
    }
    return patterns_.try_emplace(std::move(pattern), std::ssize(patterns_)).first->second;
  }

  const Model& model_;
  Seconds launch_time_;
  Forms forms_;
  Places places_;
  Times times_;
  Numbers<std::vector<Part>> parts_;
  Numbers<std::vector<std::string>> orders_;
  std::map<std::vector<std::int64_t>, std::unique_ptr<Split>> splits_;
  ByNumbers<kOfLayout, Known> layouts_;
  std::map<Pattern, std::int64_t> patterns_;
  std::vector<Layout::Stage*> stages_;  // of the strategy at hand, by class
  std::vector<double> durations_;
};

Estimator::Estimator(const Model& model, const ClusterView& cluster,
                     std::vector<std::int32_t> devices, const CostModel& cost, Seconds launch_time)
    : tables_(std::make_unique<Tables>(model, cluster, std::move(devices), cost, launch_time)) {}
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

}  // namespace foreshard::search
