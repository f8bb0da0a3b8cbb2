/// \file
/// The exit codes of foreshard-replay: the codes of `foreshard` (cli/exit_code.h) and kRankLost.
#pragma once

#include "base/result.h"

namespace foreshard::replay {

enum ExitCode : int {
  kDone = 0,
  kInternalError = 1,
  kBadInput = 2,    ///< Wrong usage or input; no GPU, no NCCL.
  kInfeasible = 3,  ///< Memory does not suffice.
  kGateFailed = 4,  ///< --verify found wrong numbers.
  kRankLost = 6,    ///< A rank hung, or ended before the others.
  kInterrupted = 130
};

/// The exit code for an error of this rank itself.
inline ExitCode code_of(const Error& error) {
  return error.code == Error::Code::kInfeasible ? kInfeasible : kBadInput;
}

}  // namespace foreshard::replay
