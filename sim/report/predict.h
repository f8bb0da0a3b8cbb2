/// \file
/// From a loaded study to its report: what `foreshard simulate`, `foreshard compare` of studies and
/// the library run.
#pragma once

#include <filesystem>

#include "base/result.h"

#include "sim/report/report.h"
#include "sim/simulate/simulate.h"

namespace foreshard::report {

/// What a report holds beside the prediction.
struct Extras {
  /// Where to write the timeline for a viewer of traces, which the options must then ask for;
  /// empty: nowhere.
  std::filesystem::path trace = {};
  bool sensitivities = false;  ///< Whether to tell what faster parts would save.
  bool bundle = false;  ///< Whether to add a bundle; the options must then ask for the timeline.
};

/// Simulates the study. If the strategy does not fit into the memory of the devices, that is no
/// error: the report then has alternatives that might fit. Without SimulateOptions::max_memory, the
/// simulation itself may take as much memory as is free on the machine that it runs on.
/// \return the report, or an error of run_study, write_trace or sensitivities_of; kInvalidInput,
///     with the line of the study, if sensitivities are asked of a study with disturbances.
Result<Report> predict(const study::LoadedStudy& study, const sim::SimulateOptions& options,
                       const Extras& extras = {});

}  // namespace foreshard::report
