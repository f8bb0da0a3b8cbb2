/// \file
/// The part of `foreshard calibrate` that uses profiles of a user's own training.
#pragma once

#include <string>
#include <vector>

#include "cli/calibrate_machine.h"

namespace foreshard::cli {

struct ProfileRequest {
  MachineRequest machine;                 ///< The first study describes the profiled training.
  std::vector<std::string> profiles;      ///< Paths of profiles.
  std::vector<std::string> kernel_names;  ///< Files or catalogue names, in order of precedence.
};

/// Matches the profiles with the study's Program, fits the machine to the matched times, and writes
/// its files; with `dry_run`, it only prints the numbers.
Result<ExitCode> fit_profile(const ProfileRequest& request, const Environment& environment);

}  // namespace foreshard::cli
