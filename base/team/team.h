/// \file
/// Work by several processes, on one host or many: rank 0 hands out tasks and keeps the answers;
/// the others ask it for tasks, one at a time for each of their threads.
///
///     rank -> rank 0   hello    what it works on, token       answered by welcome or refused
///                      next                                   a task, or over
///                      ...      what answers the task         as the task has it
///
/// Whoever is lost takes its connections along, and its tasks are handed out again: no process but
/// rank 0 is needed. So the processes need not (and do not) call MPI_Init: they take their rank
/// from what mpirun, srun and the like put into the environment (base/net/identity.h), and meet by
/// a file beside that of the results, which all of them must see.
///
/// What is worked on must be the same everywhere; a rank with other files is refused. When rank 0
/// ends it leaves "over" and the job's token in that file, for ranks that come later; the next run
/// takes it away.
///
/// Not modelled: a rank that hangs without ending keeps its task. Where time is over (--budget,
/// Ctrl-C) it has `grace` to be done; then its connection is closed, and the task is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/net/identity.h"
#include "base/result.h"
#include "base/team/message.h"
#include "base/units.h"

namespace foreshard::team {

struct Team {
  net::Identity identity = {};
  bool one_host = false;        ///< All ranks are on this host: nobody else can come.
  std::filesystem::path place;  ///< Of the file by which they meet.
  Seconds patience = 60_s;      ///< For rank 0 to be there.
  Seconds farewell = 5_s;       ///< For ranks that are late, when all tasks are done.
  Seconds grace = 10_s;         ///< For ranks that still have a task when rank 0 comes to its end.
};

/// What a team works on.
struct Job {
  std::string work;     ///< A digest of all that its ranks must have alike.
  std::string subject;  ///< In a word: "sweep".
  std::string remains;  ///< What to know where rank 0 is lost: "what it had done is kept".
};

/// From what the launcher says; ranks meet beside `results`.
/// \return as net::identity_from.
Result<Team> team_of(const net::Environment& environment, const std::filesystem::path& results);

/// Takes away what an earlier team left at the place where this one would meet: of a process that
/// works alone.
void forget_ranks(const Team& team);

/// Does a task that came over `socket`, and answers. Called from several threads, which `thread`
/// tells apart. \return false where rank 0 is lost, or says what is no task; an error ends the part
/// of this thread.
using Worker = std::function<Result<bool>(int socket, const Words& task, std::size_t thread)>;

/// Of a rank other than 0: does tasks until rank 0 says that all are done.
/// \return kIo where rank 0 is not found, or lost; kInvalidInput where it refuses this rank; the
///     first error of a worker.
Status help(const Team& team, const Job& job, std::int64_t threads, const Worker& worker);

}  // namespace foreshard::team
