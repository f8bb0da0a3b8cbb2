/// \file
/// The parts of `foreshard calibrate` that concern a replay: writing the microbenchmark Program of
/// studies, and fitting the machine's files to measurements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code.h"

#include "sim/study/study.h"
#include "strategies/parallelism/framework.h"
#include "strategies/program/ir/program.h"
#include "validate/calibrate/machine.h"

namespace foreshard::cli {

struct MachineRequest {
  std::vector<std::string> studies;   ///< The studies whose Programs are measured and predicted.
  std::string cluster;                ///< Empty: the cluster of the first study.
  std::string communication;          ///< Empty: the communication of the first study.
  std::vector<std::string> programs;  ///< Programs of measurements, in addition to the studies'.
  std::vector<std::string> measurements;
  bool own_kernels = false;  ///< Fit to foreshard's own kernels too.
  bool dry_run = false;
  std::string output;  ///< File of the plan, or folder for the machine's files.
};

/// A study and its Program, on the requested cluster and communication.
struct PlannedStudy {
  study::LoadedStudy study;
  program::Program program;
};
/// Loads the request's studies and builds their Programs.
Result<std::vector<PlannedStudy>> plan_studies(const MachineRequest& request,
                                               const Environment& environment);

/// The result of a calibration.
struct MachineFit {
  calibrate::MachineCalibration machine;
  std::optional<Framework> framework{};        ///< Framework with calibrated numbers, if any.
  std::vector<calibrate::OutputFile> files{};  ///< Files in addition to the machine's.
  std::string report;                          ///< Text for people.
};
/// Writes the machine's files into the request's folder (not with `dry_run`), and prints the
/// report, followed by each study's step before and after.
Result<ExitCode> write_fit(const MachineRequest& request, const std::vector<PlannedStudy>& studies,
                           const calibrate::MachineStart& start, const MachineFit& found);

/// Writes the microbenchmark Program of the studies.
Result<ExitCode> write_plan(const MachineRequest& request, const Environment& environment);

/// Fits device and communication to the measurements and writes their files into the folder; with
/// `dry_run`, it only prints the numbers and each study's new prediction.
Result<ExitCode> fit_machine(const MachineRequest& request, const Environment& environment);

}  // namespace foreshard::cli
