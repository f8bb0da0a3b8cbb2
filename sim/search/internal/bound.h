/// \file
/// The lower bound of a step: the file's comment of estimate.h has what it is.
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

/// What stages have to do at least for a micro-batch, forward and backward.
struct StepWork {
  Seconds all;    ///< Of all of them together.
  Seconds layer;  ///< Of the shortest layer.
  Seconds first;  ///< Of what is before all layers.
  Seconds last;   ///< Of what is behind them.
  std::int64_t layers = 0;
};
/// From what units of each block take, in the order of LoweredModel::all().
StepWork work_of(const Model& model, const Strategy& strategy, std::span<const Seconds> units);
/// Of kernels alone, each on the fastest kind of device.
StepWork work_of_kernels(const Model& model, const Strategy& strategy,
                         const lower::LoweredModel& blocks, const Places& places, Times& times);
/// Forward and backward.
Seconds least_of(const PassTimes& passes);
/// Estimator::least_step of strategies with that work.
Seconds least_step(const Strategy& strategy, const StepWork& work);

/// What the stream does at least that gathers parameters and reduces gradients.
struct DataStream {
  /// Before the first pass and after the last one, which are of the first stage; with the
  /// optimizer's kernels.
  Seconds around;
  /// Of a step, where there is one stage.
  Seconds all;
  Held held;
  /// Where one form tells a step of one stage: of each symbol but passes, its least time and the
  /// delay of what it holds. Else empty.
  std::vector<double> least{};
  std::vector<double> delays{};
};
/// Empty where no bound of it is known.
/// \param stages  by class.
/// \return kInfeasible where devices that communicate have no route.
Result<std::optional<DataStream>> data_stream(const Strategy& strategy, FilledForms& forms,
                                              Layout& layout,
                                              const std::vector<Layout::Stage*>& stages);

/// Of strategies that share their forms and the blocks of their units; both must outlive it.
class Bound {
 public:
  Bound(const Strategy& strategy, const FilledForms& forms);

  /// \param passes  by class of stages.
  /// \param optimizer  of each class: its kernels, on the fastest kind of device.
  /// \param data  data_stream().
  /// \param ways  Layout::least_ways.
  Seconds of(const std::vector<BlockTimes>& passes, const std::vector<Seconds>& optimizer,
             const std::optional<DataStream>& data, const std::vector<Seconds>& ways);
  /// By the paths that walks of the form have met; nothing where DataStream::least is empty.
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
  const std::vector<FilledForms::Units>& units_;  // by class
  double micro_batches_;
  bool splits_;
  Seconds PassTime::*least_ = &PassTime::least;
  std::vector<Seconds> PassTime::*least_of_kinds_ = &PassTime::least_of_kinds;
  std::vector<Seconds> ahead_;  // what a stage of each class does before those behind it
};

}  // namespace foreshard::search
