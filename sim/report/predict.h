/// \file
/// From a loaded study to what is reported of it.
#pragma once

#include <filesystem>

#include "base/result.h"

#include "sim/report/report.h"
#include "sim/simulate/simulate.h"

namespace foreshard::report {

/// Simulates the study; where it does not fit, tells what would. Without a limit in `options`, a
/// simulation may take the memory that this machine has free.
/// \param trace  where to write the time line, which `options` must then ask for; empty: nowhere.
/// \param sensitivities  whether to tell what faster parts buy (sim/simulate/sensitivity.h).
/// \return what run_study, write_trace and sensitivities_of return; kUnsupported, with a place, for
///     sensitivities of a step that is disturbed.
Result<Report> predict(const study::LoadedStudy& study, const sim::SimulateOptions& options,
                       const std::filesystem::path& trace = {}, bool sensitivities = false);

}  // namespace foreshard::report
