/// \file
/// Step times of a graph with conditions. Each micro-batch, and each iteration of the loops around
/// it, takes a branch with its probability (strategies/program/lower/graph.h), so steps differ.
#pragma once

#include <cstdint>

#include "base/result.h"

#include "sim/simulate/simulate.h"
#include "sim/study/study.h"

namespace foreshard::study {

/// Statistics of `draws` steps, each with new random branches. Percentiles are nearest ranks.
struct DrawnSteps {
  std::int64_t draws = 0;
  Seconds mean;
  Seconds low;  ///< 10th percentile.
  Seconds median;
  Seconds high;  ///< 90th percentile.
};

/// Simulates steps with the study's seed and the seeds that follow it.
/// \pre draws >= 1
/// \return kInvalidInput if nothing is random: a model, or a graph without conditions; otherwise
///     the errors of run_study.
Result<DrawnSteps> drawn_steps(LoadedStudy study, const sim::SimulateOptions& options,
                               std::int64_t draws);

}  // namespace foreshard::study
