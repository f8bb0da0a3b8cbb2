/// \file
/// The exit codes of the program.
#pragma once

namespace foreshard::cli {

/// Exit codes of every command.
enum ExitCode : int {
  kDone = 0,
  kInternalError = 1,
  kBadInput = 2,    ///< Wrong usage or input.
  kInfeasible = 3,  ///< Nothing fits.
  kGateFailed = 4,  ///< A limit that was asked for is exceeded.
  kPartial = 5,     ///< The time limit was reached; finished results are kept.
  kRankLost = 6,    ///< In a replay, a rank hung or ended before the others.
  kInterrupted = 130
};

}  // namespace foreshard::cli
