/// \file
/// MPI as a Wire, and the other services of MPI that the host executor needs: the job's processes
/// in the order of the Program's ranks, which processes share a host, and a common beginning.
///
/// All messages use one MPI communicator. A channel is an MPI tag, so a Program with thousands of
/// communicators needs no MPI resources for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

#include "validate/replay/host/collective.h"
#include "validate/replay/watch.h"

namespace foreshard::replay::host {

class MpiWire : public Wire {
 public:
  /// Starts MPI if it has not been started. From here on, MPI returns errors instead of ending the
  /// job.
  /// \return kIo if MPI fails.
  static Result<std::unique_ptr<MpiWire>> start();

  /// Orders the processes by `rank`.
  /// \return kInvalidInput if there are not `ranks` of them.
  virtual Status join(std::int32_t rank, std::int64_t ranks) = 0;

  /// Index of this process among the processes of its host, and their number.
  /// \pre joined
  virtual std::int32_t local_rank() const = 0;
  virtual std::int32_t local_ranks() const = 0;

  /// Gathers `mine` from every process of this host. \return local rank -> value.
  /// \pre joined
  virtual Result<std::vector<double>> gather_on_host(double mine, Watch& watch) = 0;

  /// Waits for all processes.
  /// \return kIo if the watch stops it.
  virtual Status barrier(Watch& watch) = 0;

  /// Waits at a barrier, then returns an instant of std::chrono::steady_clock, in seconds, that is
  /// in the future and the same for all processes of this host. Processes of other hosts agree
  /// within the skew of an MPI barrier, because the hosts' clocks are not compared.
  virtual Result<double> common_beginning(Watch& watch) = 0;

  /// "Open MPI v4.1.4, ...".
  virtual std::string version() const = 0;
};

}  // namespace foreshard::replay::host
