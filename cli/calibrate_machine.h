/// \file
/// The parts of `foreshard calibrate` that speak with a replay: the Program that measures what
/// studies need, and the machine's files from what was measured.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code.h"

namespace foreshard::cli {

struct MachineRequest {
  std::vector<std::string> studies;   ///< Whose Programs, and whose predictions.
  std::string cluster;                ///< Empty: that of the first study.
  std::string communication;          ///< Likewise.
  std::vector<std::string> programs;  ///< Of measurements, beside those of the studies.
  std::vector<std::string> measurements;
  bool dry_run = false;
  std::string output;  ///< Of the plan a file; of the machine a folder.
};

/// Writes the microbenchmark Program of the studies.
ExitCode write_plan(const MachineRequest& request, const Environment& environment);

/// Fits device and communication to the measurements; writes their files into the folder, or, dry,
/// tells the numbers and what each study's prediction would become.
ExitCode fit_machine(const MachineRequest& request, const Environment& environment);

}  // namespace foreshard::cli
