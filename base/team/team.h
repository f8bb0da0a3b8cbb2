/// \file
/// Work by several processes, on one host or many: rank 0 hands out tasks and keeps the answers;
/// the others ask it for tasks, one at a time for each of their threads.
///
///     rank -> rank 0   hello    what it works on, token       answered by welcome or refused
///                      next                                   a task, or over
///                      ...      what answers the task         as the task has it
///
/// When a process is lost, its connections break and its tasks are handed out again: only rank 0
/// must survive. So the processes need not (and do not) call MPI_Init: they take their rank from
/// the environment variables that mpirun, srun and the like set (base/net/identity.h), and meet by
/// a file beside the results, which all of them must see.
///
/// All ranks must work on the same input; a rank with other files is refused. When rank 0 ends, it
/// leaves "over" and the job's token in the file by which they meet, for ranks that come later; the
/// next run removes it.
///
/// Not modelled: a rank that hangs without exiting keeps its task. When time is over (--budget,
/// Ctrl-C), it has `grace` to finish; then its connection is closed, and the task is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/net/identity.h"
#include "base/net/message.h"
#include "base/net/server.h"
#include "base/result.h"
#include "base/team/queue.h"
#include "base/units.h"

namespace foreshard::team {

using net::Message;
using net::receive;
using net::send;

struct Team {
  net::Identity identity = {};
  bool one_host = false;           ///< All ranks are on this host: nobody else can come.
  std::filesystem::path place;     ///< Path of the file by which the ranks meet.
  Seconds connect_timeout = 60_s;  ///< Longest wait for rank 0 to appear.
  Seconds farewell = 5_s;          ///< Longest wait for late ranks, when all tasks are done.
  Seconds grace = 10_s;            ///< Longest wait for ranks with a task, when rank 0 ends.
};

/// What a team works on.
struct Job {
  std::string work;     ///< A digest of all that must be the same on all ranks.
  std::string subject;  ///< One word for messages: "sweep".
  std::string remains;  ///< Part of the message if rank 0 is lost: "what it had done is kept".
};

/// The team that the launcher's variables describe; its ranks meet beside `results`.
/// \return as net::identity_from.
Result<Team> team_of(const net::Environment& environment, const std::filesystem::path& results);

/// Removes the file that an earlier team left at this team's meeting place; for a process that
/// works alone.
void remove_rendezvous(const Team& team);

/// Does a task that came over `socket`, and answers. Called from several threads, which `thread`
/// tells apart.
/// \return false where rank 0 is lost or sends what is no task; an error ends the work of this
///     thread.
using Worker = std::function<Result<bool>(int socket, const Message& task, std::size_t thread)>;

/// The part of a rank other than 0: does tasks until rank 0 says that all are done.
/// \return kIo where rank 0 is not found, or lost; kInvalidInput where it refuses this rank; the
///     first error of a worker.
Status help(const Team& team, const Job& job, std::int64_t threads, const Worker& worker);

// Rank 0's side of a team: a server (base/net/server.h) that takes tasks from the queue on its
// peers' behalf.

/// What rank 0 makes of a peer's message about a task.
struct Answer {
  enum class State : std::uint8_t {
    kInvalid,  ///< It is no answer: the peer is lost, the task is given back.
    kMore,     ///< The peer will say more.
    kDone,     ///< The task is done.
  };
  State state = State::kInvalid;
  Message reply{};  ///< Empty: the peer waits for none.
};

/// The tasks of a job, in words. The server's thread calls them.
struct Tasks {
  std::function<Message(std::int64_t task)> order;  ///< What a peer is told to do.
  std::function<Answer(std::int64_t task, const Message& words)> answer;
};

/// Serves the team while it lives, and writes its address into the team's file. The queue, and what
/// `tasks` use, must outlive it. When it ends, the queue must be over: it tells ranks that ask for
/// a task that all is over; waits Team::farewell for ranks that are late, and Team::grace for ranks
/// that still have a task.
/// \return kIo
Result<std::unique_ptr<net::Server>> serve(const Team& team, Job job, TaskQueue& queue,
                                           Tasks tasks);

}  // namespace foreshard::team
