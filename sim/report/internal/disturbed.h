/// \file
/// The part of a report on disturbances, and on a step that never ends because of them.
#pragma once

#include "base/page.h"

#include "sim/report/report.h"

namespace foreshard::report {

/// Statistics of several steps; percentiles are nearest ranks.
struct StepStatistics {
  Seconds mean;
  Seconds lowest;
  Seconds median;
  Seconds p95;
  Seconds highest;
};
/// \pre !steps.empty()
StepStatistics statistics_of(std::vector<Seconds> steps);

void write_disturbances(Page& page, const Report& report);
void write_interruption(Page& page, const Report& report);

}  // namespace foreshard::report
