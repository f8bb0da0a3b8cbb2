// The lower bound of a step, by which the search leaves out strategies without simulating them.
// The comment at the top of estimate.h describes it.
#include "sim/search/internal/bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {

StepWork work_of(const Model& model, const Strategy& strategy, std::span<const Seconds> units) {
  const Layers layers = layers_of(model, strategy);
  const auto first_behind = 1 + layers.variants.size();
  StepWork work{.all = units.front(),
                .layer = kNever,
                .first = units.front(),
                .last = {},
                .layers = std::ssize(layers.of_layer)};
  for (std::size_t i = first_behind; i < units.size(); ++i) work.last += units[i];
  work.all += work.last;
  for (const std::int32_t variant : layers.of_layer)
    work.all += units[1 + static_cast<std::size_t>(variant)];
  for (std::size_t i = 1; i < first_behind; ++i) work.layer = std::min(work.layer, units[i]);
  return work;
}

StepWork work_of_kernels(const Model& model, const Strategy& strategy,
                         const lower::LoweredModel& blocks, const RankDevices& places,
                         CostCache& times) {
  Kinds kinds(places.kinds().size());
  std::iota(kinds.begin(), kinds.end(), 0);
  const auto kernels = [&](const lower::Pieces& pass) {
    Seconds sum;
    for (const program::Task& task : lower::only_block(pass).tasks)
      if (const auto* kernel = std::get_if<Kernel>(&task.body))
        sum += times.kernel(*kernel, kinds).fastest;
    return sum;
  };
  std::vector<Seconds> units;
  for (const lower::LoweredBlock* const block : blocks.all()) {
    Seconds back = kernels(block->backward);
    if (block->split)
      back = std::min(back, kernels(block->split->input) + kernels(block->split->weight));
    units.push_back(kernels(block->forward) + back);
  }
  return work_of(model, strategy, units);
}

Seconds least_of(const PassTimes& passes) {
  const Seconds back = passes.backward.least;
  return passes.forward.least +
         (passes.input.runs() ? std::min(back, passes.input.least + passes.weight.least) : back);
}

namespace {

// Whether some division of the layers over the stages could end within `step` if every layer took
// the time of the shortest. Each stage takes as many layers as fit. A later stage for which that
// leaves too little time must only fit its least work after the least work of the stages before it.
bool may_end_within(Seconds step, const Strategy& strategy, const StepWork& work) {
  const auto micro_batches = static_cast<double>(strategy.micro_batches());
  const std::int64_t stages = strategy.pipeline_parallel;
  // Chunks of one stage, each of at least one layer.
  const std::int64_t pieces = strategy.virtual_stages;
  constexpr double kRounding = 1e-9;
  Seconds before;        // time in the first pieces of the stages before
  Seconds least_before;  // its lower limit
  std::int64_t left = work.layers;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const bool is_last = stage + 1 == stages;
    const Seconds ends = (stage == 0 ? work.first : Seconds{}) + (is_last ? work.last : Seconds{});
    const Seconds least = ends + static_cast<double>(pieces) * work.layer;
    if (least_before + micro_batches * least > step * (1 + kRounding)) return false;
    const Seconds room = (1 / micro_batches) * (step - before) - ends;
    const std::int64_t most = left - (stages - stage - 1) * pieces;
    const auto own =
        std::clamp(static_cast<std::int64_t>(std::max(room / work.layer, 0.0) * (1 + kRounding)),
                   pieces, most);
    left -= own;
    const Seconds start = stage == 0 ? work.first : Seconds{};
    before += start + static_cast<double>(pieces == 1 ? own : 1) * work.layer;
    least_before += start + work.layer;
  }
  return left == 0;
}

// The least time, not below `least`, within which some division of the layers could end.
Seconds least_of_cuts(Seconds least, const Strategy& strategy, const StepWork& work) {
  constexpr int kHalvings = 24;
  if (may_end_within(least, strategy, work)) return least;
  Seconds most = 2 * least;
  while (!may_end_within(most, strategy, work)) most = 2 * most;
  for (int i = 0; i < kHalvings; ++i) {
    const Seconds middle = 0.5 * (least + most);
    (may_end_within(middle, strategy, work) ? most : least) = middle;
  }
  return least;
}

}  // namespace

Seconds least_step(const Strategy& strategy, const StepWork& work) {
  const auto micro_batches = static_cast<double>(strategy.micro_batches());
  const auto stages = static_cast<double>(strategy.pipeline_parallel);
  if (splits_backward(strategy)) return micro_batches / stages * work.all;
  const bool all_have_layers =
      std::ranges::find(strategy.layers_per_stage, 0) == strategy.layers_per_stage.end() &&
      work.layers >= strategy.stages();
  Seconds least = 1 / (1 - std::pow(1 - 1 / micro_batches, stages)) * work.all;
  if (strategy.virtual_stages > 1) {
    const Seconds average = all_have_layers ? 0.5 * (stages - 1) * work.layer : Seconds{};
    least = micro_batches / stages * work.all + average;
  }
  const bool comes_back = last_stage(strategy) != strategy.pipeline_parallel - 1;
  const bool is_timed = work.layer > Seconds{} && least > Seconds{};
  if (strategy.pipeline_parallel == 1 || !all_have_layers || comes_back || !is_timed) return least;
  return least_of_cuts(least, strategy, work);
}

// The pieces before the first piece of a stage belong to chunk 0 of the stages before it. The last
// of several equivalent stages has the most work before it.
Bound::Bound(const Strategy& strategy, const FilledForms& forms)
    : classes_(forms.classes()),
      units_(forms.of_classes),
      micro_batches_(static_cast<double>(strategy.micro_batches())),
      splits_(splits_backward(strategy)),
      ahead_(classes_.size()) {
  if (!strategy.overlap_experts) return;
  // Communication that passes of other micro-batches may hide is left out.
  least_ = &PassTime::kernels;
  least_of_kinds_ = &PassTime::kernels_of_kinds;
}

Result<std::optional<DataStream>> data_stream(const Strategy& strategy, FilledForms& forms,
                                              StrategyLayout& layout,
                                              const std::vector<StrategyLayout::Stage*>& stages) {
  if (splits_backward(strategy) || strategy.overlap_experts ||
      !schedule::find_schedule(strategy.schedule)->may_block)
    return std::optional<DataStream>();
  DataStream data;
  std::vector<Seconds> all;
  std::vector<Seconds> delays;
  const bool is_one = strategy.pipeline_parallel == 1;
  for (FilledForm& form : forms.forms) {
    std::vector<double> around;
    std::vector<double> times;
    std::vector<double> own_delays;
    for (const TimedAction& action : form.timed_actions()) {
      StrategyLayout::Stage* const stage =
          action.role < 0 ? nullptr : stages[static_cast<std::size_t>(action.role)];
      LeastTime least;
      const bool is_first = action.role <= 0;  // stages after the first need not wait for it
      if (is_first && target_of(action.kind) == plan::Target::kBucket &&
          action.segment != Segment::kAhead) {
        FORESHARD_ASSIGN(least, layout.least_of(action, stage));
      }
      times.push_back(least.time.in_base());
      own_delays.push_back(least.held.delay.in_base());
      data.held.share = std::max(data.held.share, least.held.share);
      around.push_back(!is_first ? 0
                       : action.kind == plan::ActionKind::kOptimizer &&
                               action.segment != Segment::kAhead
                           ? layout.optimizer_kernels(*stage).fastest.in_base()
                           : times.back());
    }
    if (&form == forms.forms.data()) data.around = form.around_passes(around);
    if (!is_one) return std::optional(data);
    all.push_back(form.sum(times));
    delays.push_back(form.sum(own_delays));
    if (forms.forms.size() > 1) continue;
    data.least = std::move(around);
    data.delays = std::move(own_delays);
  }
  data.all = forms.of(strategy.micro_batches(), std::span<const Seconds>(all));
  data.held.delay = forms.of(strategy.micro_batches(), std::span<const Seconds>(delays));
  return std::optional(data);
}

Seconds Bound::of(const std::vector<BlockTimes>& passes, const std::vector<Seconds>& optimizer,
                  const std::optional<DataStream>& data, const std::vector<Seconds>& round_trips) {
  if (data && round_trips.size() == 1)
    return of_one_stage(passes.front(), optimizer.front(), *data);
  for (std::size_t c = 0; c < classes_.size(); ++c)
    ahead_[c] = of_chunk(passes[c], units_[c].first_chunk, [&](const PassTimes& of) {
      return splits_ ? of.forward.*least_
                     : both(of, [&](const PassTime& pass) { return pass.*least_; });
    });
  Seconds most;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Seconds before;
    for (std::size_t other = 0; other < ahead_.size(); ++other)
      before += static_cast<double>(classes_[c].before[other]) * ahead_[other];
    const Seconds own = own_of(c, passes[c]);
    if (!splits_) before += round_trips[static_cast<std::size_t>(classes_[c].last)];
    most = std::max(most, before + micro_batches_ * own + (splits_ ? optimizer[c] : Seconds{}));
  }
  if (splits_) return most;
  return most + (data ? std::max(data->around, optimizer[0]) : optimizer[0]);
}

// The bound of a single stage: the chain of all passes, with the communication before and after it.
// Communication of the data stream that is neither on the chain nor concurrent with communication
// of the chain runs beside the chain's kernels, and takes a share of the device from them.
Seconds Bound::of_one_stage(const BlockTimes& passes, Seconds optimizer,
                            const DataStream& data) const {
  const Seconds exposed = of_chunk(passes, units_.front().all, [](const PassTimes& of) {
    return of.forward.exposed + of.backward.exposed;
  });
  const Seconds beside =
      data.held.share > kMostShare
          ? Seconds{}
          : data.held.delay - data.held.share * (micro_batches_ * exposed + data.around);
  return std::max(micro_batches_ * own_of(0, passes) + std::max(data.around, optimizer) +
                      std::max(beside, Seconds{}),
                  data.all + optimizer);
}

// A step is no shorter than the sum of the nodes of a path, because each waits for the one before.
// What the data stream does off the path runs beside the path's kernels, from which it takes a
// share of the device; or beside communication on the path; or while the path waits, which makes
// the step longer still.
Seconds Bound::of_paths(FilledForm& form, const std::vector<BlockTimes>& passes,
                        const std::optional<DataStream>& data) const {
  Seconds most;
  if (!data || data->least.empty()) return most;
  const auto timed_actions = form.timed_actions();
  const auto paths = form.paths();
  for (std::size_t first = 0; first < paths.size(); first += timed_actions.size()) {
    Seconds length;
    Seconds exposed;
    Seconds beside = data->held.delay;
    for (std::size_t i = 0; i < timed_actions.size(); ++i) {
      const double count = paths[first + i];
      if (count == 0) continue;
      length += Seconds::from_base(count * data->least[i]);
      beside -= Seconds::from_base(count * data->delays[i]);
      if (timed_actions[i].kind != plan::ActionKind::kPass) continue;
      const auto sum_of = [&](Seconds PassTime::*part) {
        return of_chunk(passes.front(), timed_actions[i].units, [&](const PassTimes& of) {
          return (timed_actions[i].direction == Direction::kForward ? of.forward : of.backward).*
                 part;
        });
      };
      length += count * sum_of(&PassTime::least);
      exposed += count * sum_of(&PassTime::exposed);
    }
    beside -= data->held.share * exposed;
    const bool is_told = data->held.share <= kMostShare && beside > Seconds{};
    most = std::max(most, length + (is_told ? beside : Seconds{}));
  }
  return most;
}

// A stage's own passes of a micro-batch, on the kind of device that takes the longest for all of
// them together: one kind may be the slowest in one pass, another in the next.
Seconds Bound::own_of(std::size_t c, const BlockTimes& passes) const {
  const auto kinds = std::max<std::size_t>((passes.front()->forward.*least_of_kinds_).size(), 1);
  Seconds most;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const auto on_kind = [&](const PassTime& pass) {
      const std::vector<Seconds>& times = pass.*least_of_kinds_;
      return times.empty() ? pass.*least_ : times[kind];
    };
    most = std::max(most, of_chunk(passes, units_[c].all,
                                   [&](const PassTimes& of) { return both(of, on_kind); }));
  }
  return most;
}

// The sum over forward and backward pass. Where the backward pass may run whole or in two parts,
// the shorter of both counts.
template <class Which>
Seconds Bound::both(const PassTimes& of, Which which) const {
  const bool apart = splits_ && of.input.runs();
  return which(of.forward) + (apart
                                  ? std::min(which(of.input) + which(of.weight), which(of.backward))
                                  : which(of.backward));
}

template <class TimeOf>
Seconds Bound::of_chunk(const BlockTimes& passes, const BlockCounts& units, TimeOf time_of) const {
  Seconds time;
  for (std::size_t i = 0; i < kBlocks; ++i)
    if (units[i] > 0) time += static_cast<double>(units[i]) * time_of(*passes[i]);
  return time;
}

}  // namespace foreshard::search
