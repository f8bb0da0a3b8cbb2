/// \file
/// The program foreshard-replay, from its command line to its exit code.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"

#include "validate/replay/executor.h"

namespace foreshard::replay {

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
