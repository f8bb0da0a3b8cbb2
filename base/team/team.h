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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/identity.h"
#include "base/result.h"
#include "base/team/queue.h"
#include "base/units.h"

namespace foreshard::team {

// Messages between the ranks of a team. A message is the size of the rest and then words; a word
// is its size and then its bytes. Sizes have 4 bytes, little endian.

using Message = std::vector<std::string>;

/// Larger messages are refused. Peers that have not yet said hello may send only small ones.
inline constexpr std::size_t kLargestMessage = std::size_t{16} << 20;
inline constexpr std::size_t kLargestHello = 4096;

std::string encode(const Message& words);
/// The words of a message without its leading size. Nothing if sizes do not add up.
std::optional<Message> decode(std::string_view bytes);

/// \return false where the peer is gone.
bool send(int socket, const Message& words);
/// \return nothing where the peer is gone, or does not send a message of at most `largest` bytes.
std::optional<Message> receive(int socket, std::size_t largest = kLargestMessage);

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

// Rank 0's side of a team: one thread for each connection, which takes tasks from the
// queue on its peer's behalf.

class TaskServer {
 public:
  /// Has the peer at `socket` do a task, and keeps its answer. Called from any thread.
  /// \return false where the peer is lost or its answer is not valid: the task is given back.
  using Delegate = std::function<bool(int socket, std::int64_t task)>;

  /// Listens, and writes the address into the team's file. The queue, and what `delegate` uses,
  /// must outlive the task server.
  /// \return kIo
  static Result<std::unique_ptr<TaskServer>> open(const Team& team, Job job, TaskQueue& queue,
                                                  Delegate delegate);
  /// \pre the queue is over. Tells ranks that ask for a task that all is over; waits Team::farewell
  ///     for ranks that are late, and Team::grace for ranks that still have a task.
  ~TaskServer();
  TaskServer(const TaskServer&) = delete;
  TaskServer& operator=(const TaskServer&) = delete;

 private:
  class Service;
  explicit TaskServer(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreshard::team
