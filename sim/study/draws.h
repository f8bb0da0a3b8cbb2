/// \file
/// How long steps of a graph with conditions take: each micro-batch, and each iteration of the
/// loops around them, takes a branch with its probability (strategies/program/lower/graph.h), and
/// so steps differ.
#pragma once

#include <cstdint>

#include "base/result.h"

#include "sim/simulate/simulate.h"
#include "sim/study/study.h"

namespace foreshard::study {

/// Of as many steps, each with branches drawn anew. Percentiles are nearest ranks.
struct DrawnSteps {
  std::int64_t draws = 0;
  Seconds mean;
  Seconds low;  ///< 10th percentile.
  Seconds median;
  Seconds high;  ///< 90th percentile.
};

/// Steps with the study's seed and those that follow it.
/// \pre draws >= 1
/// \return kInvalidInput where nothing is drawn: a model, or a graph without conditions; else as
///     run_study.
Result<DrawnSteps> drawn_steps(LoadedStudy study, const sim::SimulateOptions& options,
                               std::int64_t draws);

}  // namespace foreshard::study
