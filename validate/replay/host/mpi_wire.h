/// \file
/// MPI as a Wire, and what else of MPI the host executor needs: the job's processes in the order
/// of the Program's ranks, which of them share a host, and a common beginning.
///
/// All messages run on one MPI communicator; a channel is an MPI tag, so that a Program with
/// thousands of communicators needs no resources of MPI for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

#include "validate/replay/host/wire.h"
#include "validate/replay/watch.h"

namespace foreshard::replay::host {

class MpiWire : public Wire {
 public:
  /// Starts MPI if it has not been started. Errors of MPI are returned from here on, they do not
  /// end the job.
  /// \return kIo.
  static Result<std::unique_ptr<MpiWire>> start();

  /// Orders the processes by `rank`.
  /// \return kInvalidInput if there are not `ranks` of them.
  virtual Status join(std::int32_t rank, std::int64_t ranks) = 0;

  /// This process among those of its host, and how many they are.
  /// \pre joined
  virtual std::int32_t local_rank() const = 0;
  virtual std::int32_t local_ranks() const = 0;

  /// `mine` of every process of this host, by local rank.
  /// \pre joined
  virtual Result<std::vector<double>> gather_on_host(double mine, Watch& watch) = 0;

  /// Waits for all processes.
  /// \return kIo if the watch stops it.
  virtual Status barrier(Watch& watch) = 0;

  /// After a barrier: an instant of std::chrono::steady_clock, in seconds, that lies ahead for all
  /// processes of this host and is the same for them. Processes of other hosts agree with it
  /// within the skew of an MPI barrier: clocks of hosts are not compared.
  virtual Result<double> common_beginning(Watch& watch) = 0;

  /// "Open MPI v4.1.4, ...".
  virtual std::string version() const = 0;
};

}  // namespace foreshard::replay::host
