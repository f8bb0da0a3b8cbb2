/// \file
/// The program foreshard-replay, from its command line to its exit code.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"

#include "validate/replay/executor.h"

namespace foreshard::replay {

/// The exit codes of foreshard-replay: the codes of `foreshard` (cli/exit_code.h) and kRankLost.
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

/// Factories of executors: make_host_executor and make_gpu_executor, or a test's own.
struct Executors {
  using Make = std::function<Result<std::unique_ptr<Executor>>(const ExecutorOptions&, Store&)>;
  Make host{};
  Make gpu{};
};

/// \return an ExitCode. If something fails in a job of several ranks, it does not return but ends
///     the process with that code, because destructors of libraries whose peers are gone may hang.
int run(int argc, const char* const* argv, const Executors& executors);

}  // namespace foreshard::replay
