/// \file
/// A step of a graph's pipeline, pass by pass: every stage runs the slots of its schedule in order,
/// each as soon as what it reads has come; the messages of a crossing follow one another. It tells
/// what tables.h sums up as rounds: how far the passes of fine and of coarse stages overlap.
///
/// Not modelled: what tables.h does not, and that transfers share links with others.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/search/graph/tables.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Seconds. step_of() (pipeline.h) where there is one stage, or stages of several chunks, and for
/// schedules whose backward passes run in two parts.
/// Cost: O(micro-batches x stages).
double walked_step(const Tables& tables, const Strategy& strategy,
                   const std::vector<std::size_t>& choice);

}  // namespace foreshard::search
