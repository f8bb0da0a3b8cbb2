/// \file
/// Aligns what was measured with what was expected, both in order:
///
///     cost = sum over tasks of  min(|ln(time of its units / expected)|, 2) + 0.3 (units - 1)
///          + 2.5 for each task without a unit and each unit without a task
///
/// is least, where a task takes up to `most` units that follow each other. The constants say what a
/// match is worth, not what takes how long: where there are as many of both, each takes its own; a
/// unit joins another one where it makes up what that lacks.
/// Source: Needleman and Wunsch, "A general method applicable to the search for similarities in the
/// amino acid sequence of two proteins", J. Mol. Biol. 48, 1970, with runs of several.
/// Cost: O(tasks x band x most), the band being what lies around the line from the first of both to
/// the last.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace foreshard::profile {

struct Expected {
  Seconds time;
  std::int64_t most = 1;  ///< Units that it may take.
};

struct Alignment {
  std::vector<std::int32_t> task_of;  ///< Per unit the index of its task; negative: it has none.
  double cost = 0;
};
Alignment aligned(const std::vector<Expected>& tasks, const std::vector<Seconds>& units);

}  // namespace foreshard::profile
