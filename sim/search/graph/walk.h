/// \file
/// A step of a graph's pipeline, pass by pass: every stage runs the slots of its schedule in order,
/// each as soon as its inputs have arrived; the messages of a crossing follow one another. Unlike
/// the rounds of tables.h, this shows how far the passes of fine-grained and coarse-grained stages
/// overlap.
///
/// Not modelled: what tables.h does not model, and links that transfers share with other
/// communication.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/search/graph/tables.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The step of a choice, in seconds. It is step_of() (pipeline.h) where there is one stage, where
/// stages have several chunks, and for schedules whose backward passes run in two parts.
/// Cost: O(micro-batches x stages).
double walked_step(const Tables& tables, const Strategy& strategy,
                   const std::vector<std::size_t>& choice);

}  // namespace foreshard::search
