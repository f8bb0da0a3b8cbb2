/// \file
/// Strips the prefixes that launchers put in front of each line of a program's output:
///
///     [1,0]<stdout>:# nThread 1 ...         mpirun --tag-output
///     0: # nThread 1 ...                    srun -l
///     [0] # nThread 1 ...                   mpiexec -l (Intel MPI, Hydra)
///     [default0]:# nThread 1 ...            torchrun
///     Nov 28 21:33:25 # nThread 1 ...       ts, and other dates and times of day
///     node-a: # nThread 1 ...               pdsh, clush: any text that stood before a "#" once
///
/// Source: manual pages of Open MPI's mpirun, SLURM's srun, Intel MPI's mpiexec and moreutils' ts.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace foreshard::calibrate::internal {

class LogLines {
 public:
  /// The line as the program wrote it; empty for a line that a launcher tags as stderr.
  std::string_view plain(std::string_view line);

 private:
  std::set<std::string, std::less<>> seen_;  ///< Prefixes seen before a "#".
};

}  // namespace foreshard::calibrate::internal
