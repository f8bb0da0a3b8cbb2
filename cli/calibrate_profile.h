/// \file
/// The part of `foreshard calibrate` that concerns profiles of a user's own training.
#pragma once

#include <string>
#include <vector>

#include "cli/calibrate_machine.h"

namespace foreshard::cli {

struct ProfileRequest {
  MachineRequest machine;                 ///< The first study is what was profiled.
  std::vector<std::string> profiles;      ///< Files.
  std::vector<std::string> kernel_names;  ///< Files or catalogue names, the first first.
};

/// Matches the profiles with the study's Program, fits the machine to what was matched, and writes
/// its files, or, with `dry_run`, tells the numbers.
Result<ExitCode> fit_profile(const ProfileRequest& request, const Environment& environment);

}  // namespace foreshard::cli
