#include "sim/search/internal/bound.h"

#include <algorithm>
#include <cmath>

#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {

StepWork work_of(const Model& model, const Strategy& strategy, std::span<const Seconds> units) {
  const Layers layers = layers_of(model, strategy);
  const auto first_behind = 1 + layers.variants.size();
  StepWork work{.all = units.front(), .layer = kNever};
  for (std::size_t i = first_behind; i < units.size(); ++i) work.all += units[i];
  for (const std::int32_t variant : layers.of_layer)
    work.all += units[1 + static_cast<std::size_t>(variant)];
  for (std::size_t i = 1; i < first_behind; ++i) work.layer = std::min(work.layer, units[i]);
  return work;
}

Seconds least_of(const PassTimes& passes) {
  const Seconds back = passes.backward.least;
  return passes.forward.least + (passes.input.launches > 0
                                     ? std::min(back, passes.input.least + passes.weight.least)
                                     : back);
}

Seconds least_step(const Strategy& strategy, const StepWork& work) {
  const auto micro_batches = static_cast<double>(strategy.micro_batches());
  const auto stages = static_cast<double>(strategy.pipeline_parallel);
  if (strategy.virtual_stages == 1 && !splits_backward(strategy))
    return 1 / (1 - std::pow(1 - 1 / micro_batches, stages)) * work.all;
  const bool all_have_layers =
      std::ranges::find(strategy.layers_per_stage, 0) == strategy.layers_per_stage.end();
  Seconds before;  // the average stage
  if (!splits_backward(strategy) && all_have_layers) before = 0.5 * (stages - 1) * work.layer;
  return micro_batches / stages * work.all + before;
}

// The pieces before the first of stage s are those of chunk 0. Of equal stages the last one has the
// most before it.
Bound::Bound(const Strategy& strategy, const FilledForms& forms)
    : classes_(forms.classes()),
      units_(forms.of_classes),
      micro_batches_(static_cast<double>(strategy.micro_batches())),
      splits_(splits_backward(strategy)),
      ahead_(classes_.size()) {
  if (!strategy.overlap_experts) return;
  // What others' passes may hide is left out.
  least_ = &PassTime::kernels;
  least_of_kinds_ = &PassTime::kernels_of_kinds;
}

Result<std::optional<DataStream>> data_stream(const Strategy& strategy, FilledForms& forms,
                                              Layout& layout,
                                              const std::vector<Layout::Stage*>& stages) {
  if (splits_backward(strategy) || strategy.overlap_experts ||
      !schedule::find_schedule(strategy.schedule)->may_block)
    return std::optional<DataStream>();
  using Kind = Symbol::Kind;
  DataStream data;
  std::vector<Seconds> all;
  std::vector<Seconds> delays;
  const bool is_one = strategy.pipeline_parallel == 1;
  for (FilledForm& form : forms.forms) {
    std::vector<double> around;
    std::vector<double> times;
    std::vector<double> own_delays;
    for (const Symbol& symbol : form.symbols()) {
      Layout::Stage* const stage =
          symbol.role < 0 ? nullptr : stages[static_cast<std::size_t>(symbol.role)];
      LeastTime least;
      const bool is_first = symbol.role <= 0;  // others need not wait for the first stage
      if (is_first && (symbol.kind == Kind::kGather || symbol.kind == Kind::kReduce ||
                       symbol.kind == Kind::kGatherAll || symbol.kind == Kind::kReduceAll)) {
        FORESHARD_ASSIGN(least, layout.least_of(symbol, stage));
      }
      times.push_back(least.time.in_base());
      own_delays.push_back(least.held.delay.in_base());
      data.held.share = std::max(data.held.share, least.held.share);
      around.push_back(!is_first ? 0
                       : symbol.kind == Kind::kOptimizer
                           ? layout.optimizer_kernels(*stage).fastest.in_base()
                           : times.back());
    }
    if (&form == forms.forms.data()) data.around = form.around_passes(around);
    if (!is_one) return std::optional(data);
    all.push_back(form.sum(times));
    delays.push_back(form.sum(own_delays));
  }
  data.all = forms.of(strategy.micro_batches(), std::span<const Seconds>(all));
  data.held.delay = forms.of(strategy.micro_batches(), std::span<const Seconds>(delays));
  return std::optional(data);
}

Seconds Bound::of(const std::vector<BlockTimes>& passes, const std::vector<Seconds>& optimizer,
                  const std::optional<DataStream>& data, const std::vector<Seconds>& ways) {
  if (data && ways.size() == 1) return of_one_stage(passes.front(), optimizer.front(), *data);
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
    if (!splits_) before += ways[static_cast<std::size_t>(classes_[c].last)];
    most = std::max(most, before + micro_batches_ * own + (splits_ ? optimizer[c] : Seconds{}));
  }
  if (splits_) return most;
  return most + (data ? std::max(data->around, optimizer[0]) : optimizer[0]);
}

// The chain of all passes, with what it must wait for before and after. Where communication of the
// data stream is neither on it nor beside communication on it, it is beside kernels, which take
// longer by what it holds.
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

// A stage's own passes of a micro-batch on the kind of device that takes the longest for all of
// them: one kind may be the slowest in one pass, another in the next.
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

// Of a pass that may run whole or in two parts, the lesser.
template <class Which>
Seconds Bound::both(const PassTimes& of, Which which) const {
  const bool apart = splits_ && of.input.launches > 0;
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
