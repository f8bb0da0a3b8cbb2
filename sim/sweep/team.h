/// \file
/// A sweep by several processes, on one host or many: rank 0 hands out points and keeps the
/// results; the others ask it for points, one at a time for each of their threads.
///
///     rank -> rank 0   hello    what it works on, token       answered by welcome or refused
///                      next                                   point N, or over
///                      key      of that point                 wanted, or known (it is stored)
///                      outcome  as text_of(Outcome)           nothing
///
/// Whoever is lost takes its connections along, and its points are handed out again: no process but
/// rank 0 is needed. So the processes need not (and do not) call MPI_Init: they take their rank
/// from what mpirun, srun and the like put into the environment (base/net/identity.h), and meet by
/// a file beside the results file, which all of them must see.
///
/// What is worked on (version, question, inputs of the first point) must be the same everywhere; a
/// rank with other files is refused. When rank 0 ends it leaves "over" and the job's token in that
/// file, for ranks that come later; the next run takes it away.
///
/// Not modelled: a rank that hangs without ending keeps its point. Where time is over (--budget,
/// Ctrl-C) it has `grace` to be done; then its connection is closed, and the point is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/net/identity.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/sweep/evaluate.h"

namespace foreshard::sweep {

struct Team {
  net::Identity identity = {};
  bool one_host = false;        ///< All ranks are on this host: nobody else can come.
  std::filesystem::path place;  ///< Of the file by which they meet.
  Seconds patience = 60_s;      ///< For rank 0 to be there.
  Seconds farewell = 5_s;       ///< For ranks that are late, when all points are done.
  Seconds grace = 10_s;         ///< For ranks that still have a point when rank 0 comes to its end.
};

/// From what the launcher says; ranks meet beside `results`.
/// \return as net::identity_from.
Result<Team> team_of(const net::Environment& environment, const std::filesystem::path& results);

/// Takes away what an earlier team left at the place where this one would meet: of a process that
/// works alone.
void forget_ranks(const Team& team);

/// Of a rank other than 0: does points until rank 0 says that all are done.
/// \return kIo where rank 0 is not found, or lost, or a file of the sweep cannot be read;
///     kInvalidInput where rank 0 refuses this rank.
Status help(const Setup& setup, const Team& team, std::int64_t threads);

}  // namespace foreshard::sweep
