/// \file
/// Starting foreshard-replay, with a launcher and its ranks: what `replay` and `validate` do.
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
  /// Words that start the ranks: "mpirun -n 8", "srun". Empty: none for one rank, else mpirun with
  /// each rank bound to a core.
  std::string launch{};
  std::int64_t repeats = 0;         ///< 0: foreshard-replay's own.
  std::string until{};              ///< Empty: not given.
  std::vector<std::string> more{};  ///< Further options of foreshard-replay.
  bool results_to_stderr = false;   ///< Its output is not the caller's result.
};

/// The whole command line, the launcher first.
/// \return kUnsupported if foreshard-replay lies neither beside this program nor on the PATH;
///     kInvalidInput if `launch` has an open quote.
Result<std::vector<std::string>> command_of(const ReplayCall& call);

/// Runs it to its end. SIGINT, SIGTERM and SIGHUP are passed on to the launcher, which ends its
/// ranks. Where the system groups processes by session, this one's is favoured, if that is
/// permitted: what else runs on the machine then hardly shows in the times.
/// \return the launcher's exit code (128 + n if signal n ended it, kInterrupted if one was passed
///     on); command_of's errors; kIo if it cannot be started.
Result<int> replay(const ReplayCall& call);

}  // namespace foreshard::cli
