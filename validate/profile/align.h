/// \file
/// Aligns a sequence of measured units with a sequence of expected tasks. Each task takes up to
/// `most` consecutive units. The alignment minimises
///
///     cost = sum over tasks of  min(|ln(time of its units / expected)|, 2) + 0.3 (units - 1)
///          + 2.5 for each task without a unit and each unit without a task
///
/// The constants weigh matches against each other: where tasks and units are equally many, each
/// task takes one unit; a unit joins another one if it adds time that the task lacks.
/// Source: Needleman and Wunsch, "A general method applicable to the search for similarities in the
/// amino acid sequence of two proteins", J. Mol. Biol. 48, 1970, extended to runs of units.
/// Cost: O(tasks x band x most), where the band surrounds the straight line from the first task and
/// unit to the last.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace foreshard::profile {

struct Expected {
  Seconds time;
  std::int64_t most = 1;  ///< Most units that the task may take.
};

struct Alignment {
  std::vector<std::int32_t> task_of;  ///< Unit -> index of its task; negative: none.
  double cost = 0;
};
Alignment aligned(const std::vector<Expected>& tasks, const std::vector<Seconds>& units);

}  // namespace foreshard::profile
