/// \file
/// Rank 0's side of a team (team.h): one thread for each connection, which takes tasks from the
/// queue on its peer's behalf.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/team/queue.h"
#include "base/team/team.h"

namespace foreshard::team {

/// The text that rank 0 leaves at the meeting place when the team is done. Empty where the job has
/// no token: the text could not be told from an earlier job's.
std::string over_text(const Team& team);

class Desk {
 public:
  /// Has the peer at `socket` do a task, and keeps its answer. Called from any thread.
  /// \return false where the peer is lost or its answer is not valid: the task is given back.
  using SeeDone = std::function<bool(int socket, std::int64_t task)>;

  /// Listens, and writes the address into the team's file. The queue, and what `see_done` uses,
  /// must outlive the desk.
  /// \return kIo
  static Result<std::unique_ptr<Desk>> open(const Team& team, Job job, Queue& queue,
                                            SeeDone see_done);
  /// \pre the queue is over. Tells ranks that ask for a task that all is over; waits Team::farewell
  ///     for ranks that are late, and Team::grace for ranks that still have a task.
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  class Service;
  explicit Desk(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreshard::team
