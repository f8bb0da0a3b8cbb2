/// \file
/// The parts of `foreshard calibrate` that concern a replay: the Program that measures what
/// studies need, and the machine's files from what was measured.
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
  std::string cluster;                ///< Empty: that of the first study.
  std::string communication;          ///< Likewise.
  std::vector<std::string> programs;  ///< Of measurements, beside those of the studies.
  std::vector<std::string> measurements;
  bool own_kernels = false;  ///< Fit to foreshard's own kernels too.
  bool dry_run = false;
  std::string output;  ///< A file for the plan, a folder for the machine.
};

/// A study with what its Program runs on.
struct Planned {
  study::LoadedStudy study;
  program::Program program;
};
/// The request's studies.
Result<std::vector<Planned>> planned(const MachineRequest& request, const Environment& environment);

/// What a calibration found, beside the machine itself.
struct Found {
  calibrate::MachineCalibration machine;
  std::optional<Framework> framework{};        ///< With numbers of its own.
  std::vector<calibrate::OutputFile> files{};  ///< Beside those of the machine.
  std::string report;                          ///< For people.
};
/// Writes the machine's files into the request's folder and tells the report; with `dry_run` the
/// latter alone. Each study's step before and after follows it.
Result<ExitCode> write_found(const MachineRequest& request, const std::vector<Planned>& studies,
                             const calibrate::MachineStart& start, const Found& found);

/// Writes the microbenchmark Program of the studies.
Result<ExitCode> write_plan(const MachineRequest& request, const Environment& environment);

/// Fits device and communication to the measurements; writes their files into the folder, or, with
/// `dry_run`, prints the numbers and each study's new prediction.
Result<ExitCode> fit_machine(const MachineRequest& request, const Environment& environment);

}  // namespace foreshard::cli
