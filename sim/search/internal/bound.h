/// \file
/// The lower bound of a step; the comment at the top of estimate.h describes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/search/internal/forms.h"
#include "sim/search/internal/layout.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The least work of the stages for one micro-batch, forward and backward.
struct StepWork {
  Seconds all;    ///< Sum over all stages.
  Seconds layer;  ///< Time of the shortest layer.
  Seconds first;  ///< Time of the units before all layers.
  Seconds last;   ///< Time of the units after all layers.
  std::int64_t layers = 0;
};
/// The work, given the time of a unit of each block in the order of LoweredModel::all().
StepWork work_of(const Model& model, const Strategy& strategy, std::span<const Seconds> units);
/// The work of kernels alone, each on the fastest kind of device.
StepWork work_of_kernels(const Model& model, const Strategy& strategy,
                         const lower::LoweredModel& blocks, const RankDevices& places,
                         CostCache& times);
/// The least time of a unit, forward and backward.
Seconds least_of(const PassTimes& passes);
/// Estimator::least_step for strategies with that work.
Seconds least_step(const Strategy& strategy, const StepWork& work);

/// The least work of the stream that gathers parameters and reduces gradients.
struct DataStream {
  /// Time before the first stage's first pass and after its last one, with the optimizer's kernels.
  Seconds around;
  /// Time of the stream in a whole step, and what it holds; used where there is one stage.
  Seconds all;
  SmContention held;
  /// One per action: its least time and the delay of what it holds; zero for passes. Empty unless
  /// there is one stage and one form gives the whole step.
  std::vector<double> least{};
  std::vector<double> delays{};
};
/// Nothing where no bound of the stream is known.
/// \param stages  one per class.
/// \return kInfeasible where devices that communicate have no route.
Result<std::optional<DataStream>> data_stream(const Strategy& strategy, FilledForms& forms,
                                              StrategyLayout& layout,
                                              const std::vector<StrategyLayout::Stage*>& stages);

/// Lower bounds for strategies that share their forms and the blocks of their units. `strategy` and
/// `forms` must outlive it.
class Bound {
 public:
  Bound(const Strategy& strategy, const FilledForms& forms);

  /// \param passes  one per class of stages.
  /// \param optimizer  one per class: the optimizer's kernels, on the fastest kind of device.
  /// \param data  data_stream().
  /// \param round_trips  StrategyLayout::least_round_trips.
  Seconds of(const std::vector<BlockTimes>& passes, const std::vector<Seconds>& optimizer,
             const std::optional<DataStream>& data, const std::vector<Seconds>& round_trips);
  /// The bound by the paths that walks of the form have met; zero where DataStream::least is empty.
  Seconds of_paths(FilledForm& form, const std::vector<BlockTimes>& passes,
                   const std::optional<DataStream>& data) const;

 private:
  Seconds of_one_stage(const BlockTimes& passes, Seconds optimizer, const DataStream& data) const;
  Seconds own_of(std::size_t c, const BlockTimes& passes) const;
  template <class Which>
  Seconds both(const PassTimes& of, Which which) const;
  template <class TimeOf>
  Seconds of_chunk(const BlockTimes& passes, const BlockCounts& units, TimeOf time_of) const;

  const std::vector<StageClass>& classes_;
  const std::vector<FilledForms::Units>& units_;  // one per class
  double micro_batches_;
  bool splits_;
  Seconds PassTime::*least_ = &PassTime::least;
  std::vector<Seconds> PassTime::*least_of_kinds_ = &PassTime::least_of_kinds;
  std::vector<Seconds> ahead_;  // class -> work of a stage before the next one can begin
};

}  // namespace foreshard::search
