/// \file
/// Where a pipeline cuts a model (R3.2). The units of the model (the embedding, the layers, the
/// head) are never cut in two; a cut says how many layers each piece has. The time of a stage is
/// what one micro-batch takes on it, forward and backward, and the step is at least
///
///     micro-batches x T,   T = the largest time of a stage
///
/// The least T is found by bisection: with an upper bound on it, each stage in turn takes as many
/// layers as the bound allows, and the bound holds if the last stage reaches the end of the model.
/// From the front this gives the last layer at which each stage may end, from the back the first
/// one: together the stage's interval. Every cut of a transformer within the intervals sends the
/// same bytes between stages, so the most even one is taken: the least sum of squares of the
/// stages' times; ties go to fewer layers in front, where activations live longest.
///
/// Stages on unequal devices have unequal times, and `most` limits a stage's layers to its memory.
///
/// Not modelled: an estimate may prefer a stage longer than T if the way through the pipeline gets
/// shorter; cuts inside a layer. With several chunks per stage, layers are moved one by one from
/// the longest stage as long as that helps; cuts that need two moves at once are not tried.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"

#include "sim/search/estimate.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {

/// Layers of each piece, in the order of the model.
using Cut = std::vector<std::int64_t>;

struct CutProblem {
  struct Stage {
    std::vector<Seconds> layer;  ///< kind of layer -> time of one layer on the stage's devices.
    Seconds ends;                ///< Time of the embedding or head that it holds.
    std::int64_t most = 0;       ///< The most layers that it has memory for.
    auto operator<=>(const Stage&) const = default;
  };
  std::vector<std::int32_t> kind_of_layer;
  std::vector<Stage> stages;
  std::int64_t chunks = 1;  ///< Pieces per stage.
  schedule::StagePlacement placement = schedule::StagePlacement::kWrap;
  auto operator<=>(const CutProblem&) const = default;
};

/// The largest time of a stage.
Seconds longest_stage(const CutProblem& problem, const Cut& cut);

/// The best cut first. With one chunk per stage, a second one with the same longest stage may
/// follow: the one with the fewest layers in front. Each piece has at least one layer.
/// \return empty where the stages do not have the memory for all layers.
std::vector<Cut> near_best_cuts(const CutProblem& problem);

/// Finds cuts for the strategies of one search, from the times and the memory that its estimator
/// gives. Use one object per thread.
class Cutter {
 public:
  /// Both must outlive it.
  Cutter(const Model& model, Estimator& estimator) : model_(model), estimator_(estimator) {}

  /// `strategy` itself, then the strategy with each near-best cut whose longest stage is shorter.
  /// Where `strategy` does not fit in memory, also with a cut that does, if moving layers can
  /// achieve that.
  /// \pre faults_in(strategy, ...) is empty.
  std::vector<Strategy> with_cuts(const Strategy& strategy, std::int64_t devices);

 private:
  const std::vector<Cut>& cuts_of(CutProblem problem);

  const Model& model_;
  Estimator& estimator_;
  std::map<CutProblem, std::vector<Cut>> known_;
};

}  // namespace foreshard::search
