/// \file
/// The least step of a graph in a pipeline, within the memory of every stage. The step of a choice
/// is the largest of its sums for the stages (tables.h); for whatever parts of these that make 1
/// together, the least weighted sum is no more than the least step, and its choice has a step. The
/// parts move to the stage that sets the pace until the two meet, some times at most.
///
/// A stage whose memory does not do is solved with that limit, and then holds its choices while the
/// next one is: where several are short of memory, the answer may not be the best.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/search/graph/problem.h"
#include "sim/search/graph/tables.h"

namespace foreshard::search {

/// Of a stage or, behind the stages, of a crossing whose messages run beside passes. Seconds.
struct StageCosts {
  double pass = 0;      ///< Forward and backward; of a crossing, a message there and back.
  double forward = 0;   ///< Of `pass`: conversions half.
  double messages = 0;  ///< Of `pass`: those of its inputs, where hosts wait for them.
  double once = 0;      ///< A step.
};
/// \pre several stages.
std::vector<StageCosts> costs_of(const Tables& tables, const std::vector<std::size_t>& choice);

/// Seconds. Of one stage: Problem::cost_of.
double step_of(const Tables& tables, const std::vector<std::size_t>& choice);

/// Of the stage with the least room: what is taken of it. `rooms`: bytes, by stage.
double fill_of(const Tables& tables, const std::vector<double>& rooms,
               const std::vector<std::size_t>& choice);

/// The least step of choices that fill no stage more than `most`.
/// \return as solve() of a problem.
std::optional<Answer> solve(const Tables& tables, const std::vector<double>& rooms, double most,
                            const SolveOptions& options = {});

}  // namespace foreshard::search
