/// \file
/// From a loaded study to its report.
#pragma once

#include <filesystem>

#include "base/result.h"

#include "sim/report/report.h"
#include "sim/simulate/simulate.h"

namespace foreshard::report {

/// Simulates the study; if it does not fit, adds alternatives that might. Without a limit in
/// `options`, a simulation may take the memory that is free on this machine.
/// \param trace  the file for the timeline, which `options` must then ask for; empty: none.
/// \param sensitivities  whether to report what faster parts would save
///     (sim/simulate/sensitivity.h).
/// \return The errors of run_study, write_trace and sensitivities_of; kUnsupported, with a place,
///     for sensitivities of a disturbed step.
Result<Report> predict(const study::LoadedStudy& study, const sim::SimulateOptions& options,
                       const std::filesystem::path& trace = {}, bool sensitivities = false);

}  // namespace foreshard::report
