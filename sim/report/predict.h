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
/// \return what run_study and write_trace return.
Result<Report> predict(const study::LoadedStudy& study, const sim::SimulateOptions& options,
                       const std::filesystem::path& trace = {});

}  // namespace foreshard::report
