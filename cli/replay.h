/// \file
/// Starts foreshard-replay with a launcher and its ranks, for `replay` and `validate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::cli {

struct ReplayCall {
  std::string program{};  ///< Path of the Program.
  std::string output{};   ///< Path of the measurement; may be empty.
  bool host = false;
  std::int64_t ranks = 1;
  /// Launcher that starts the ranks: "mpirun -n 8", "srun". Empty: none for one rank, else mpirun
  /// with each rank bound to a core.
  std::string launch{};
  std::int64_t repeats = 0;         ///< 0: foreshard-replay's default.
  std::string until{};              ///< Empty: not given.
  std::vector<std::string> more{};  ///< Further options of foreshard-replay.
  bool results_to_stderr = false;   ///< Redirect its stdout, which is not the caller's result.
};

/// The whole command line, the launcher first.
/// \return kUnsupported if foreshard-replay is neither in this program's folder nor on the PATH;
///     kInvalidInput if `launch` has an unclosed quote.
Result<std::vector<std::string>> command_of(const ReplayCall& call);

/// Runs foreshard-replay to its end. SIGINT, SIGTERM and SIGHUP are passed on to the launcher,
/// which ends its ranks. If the system groups processes by session and permits it, the session of
/// the replay gets priority, so that other processes hardly affect the times.
/// \return the launcher's exit code (128 + n if signal n ended it, kInterrupted if a signal was
///     passed on); errors of command_of; kIo if it cannot be started.
Result<int> replay(const ReplayCall& call);

}  // namespace foreshard::cli
