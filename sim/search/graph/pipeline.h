/// \file
/// The least step of a graph in a pipeline, within the memory of every stage. The step of a choice
/// is the largest of the sums of its stages (tables.h). For any weights of the stages that sum to
/// 1, the least weighted sum is a lower bound of the least step, and the choice that has it is a
/// candidate. Weight moves to the stage that sets the pace until bound and step meet, for a few
/// iterations at most.
///
/// A stage that exceeds its memory is solved with that limit, and its choices are then fixed while
/// the next such stage is solved. Where several stages are short of memory, the answer may not be
/// the best.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/search/graph/problem.h"
#include "sim/search/graph/tables.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Costs in seconds of a stage or, after all stages, of a crossing whose messages run beside
/// passes.
struct StageCosts {
  double pass = 0;     ///< A pass, forward and backward; for a crossing, a message there and back.
  double forward = 0;  ///< The forward part of `pass`, with half of the conversions.
  /// The part of `pass` for messages of its inputs, where hosts wait for them.
  double messages = 0;
  double once = 0;  ///< Cost per step.
};
/// \pre several stages.
std::vector<StageCosts> costs_of(const Tables& tables, const std::vector<std::size_t>& choice);

/// The step of a choice, in seconds. With one stage: Problem::cost_of.
double step_of(const Tables& tables, const std::vector<std::size_t>& choice);

/// The part of its memory that the fullest stage uses. `rooms`: stage -> bytes.
double fill_of(const Tables& tables, const std::vector<double>& rooms,
               const std::vector<std::size_t>& choice);

/// The least step among choices that fill no stage's memory beyond the part `most`.
/// \return as solve() for a problem.
std::optional<Answer> solve(const Tables& tables, const std::vector<double>& rooms, double most,
                            const SolveOptions& options = {});

// A step of a graph's pipeline, pass by pass: every stage runs the slots of its schedule in order,
// each as soon as its inputs have arrived; the messages of a crossing follow one another. Unlike
// the rounds of tables.h, this shows how far the passes of fine-grained and coarse-grained stages
// overlap.
//
// Not modelled: what tables.h does not model, and links that transfers share with other
// communication.

/// The step of a choice, in seconds. It is step_of() (pipeline.h) where there is one stage, where
/// stages have several chunks, and for schedules whose backward passes run in two parts.
/// Cost: O(micro-batches x stages).
double walked_step(const Tables& tables, const Strategy& strategy,
                   const std::vector<std::size_t>& choice);

}  // namespace foreshard::search
