/// \file
/// Where a pipeline cuts a model (R3.2). The units of the model - the embedding, the layers, the
/// head - are what may not be cut; a cut says how many layers each piece has. Of a cut, the time of
/// a stage is what one micro-batch takes on it, forward and backward, and the step is at least
///
///     micro-batches x T,   T = the largest time of a stage
///
/// The least T is found by bisection: with a bound on it, each stage in turn takes as many layers
/// as it may, and the bound holds if the last one ends the model. From the front this gives the
/// last layer at which each stage may end, from the back the first one: its interval. Within the
/// intervals, what crosses is the same for every cut of a transformer, so that the most even one is
/// taken: the least sum of squares of the stages' times, ties to fewer layers in front, whose
/// activations live longest.
///
/// Stages of unequal devices have unequal times, and `most` layers where memory ends.
///
/// Not modelled: that an estimate may prefer a stage longer than T for a shorter way through the
/// pipeline; cuts inside a layer. Of several chunks for each stage, layers are moved one by one
/// from the longest stage as long as that helps: no cut of two moves is looked at.
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
    std::vector<Seconds> layer;  ///< Of one layer on its devices, by kind.
    Seconds ends;                ///< Of the embedding, or the head, that it holds.
    std::int64_t most = 0;       ///< Layers that it has memory for.
    auto operator<=>(const Stage&) const = default;
  };
  std::vector<std::int32_t> kind_of_layer;
  std::vector<Stage> stages;
  std::int64_t chunks = 1;  ///< Pieces of each stage.
  schedule::Placement placement = schedule::Placement::kWrap;
  auto operator<=>(const CutProblem&) const = default;
};

/// The largest time of a stage.
Seconds longest_stage(const CutProblem& problem, const Cut& cut);

/// The best cut first, then others with the same longest stage: the one with the fewest layers in
/// front, where there is one chunk for each stage. Each piece has a layer at least.
/// \return none where the stages have no memory for all layers.
std::vector<Cut> near_best_cuts(const CutProblem& problem);

/// Cuts of the strategies of one search, from the times and the memory that its estimator knows.
/// One object for each thread.
class Cutter {
 public:
  /// Both must outlive it.
  Cutter(const Model& model, Estimator& estimator) : model_(model), estimator_(estimator) {}

  /// `strategy` itself, and with the near-best cuts whose longest stage is shorter; where it does
  /// not fit in memory, with a cut that does, if moving layers can do that.
  /// \pre faults_in(strategy, ...) is empty.
  std::vector<Strategy> with_cuts(const Strategy& strategy, std::int64_t devices);

 private:
  const std::vector<Cut>& cuts_of(CutProblem problem);

  const Model& model_;
  Estimator& estimator_;
  std::map<CutProblem, std::vector<Cut>> known_;
};

}  // namespace foreshard::search
