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

/// What rank 0 leaves at the place of a team that is done; empty where the job has no name: then
/// nobody could tell it from an earlier one's.
std::string over_text(const Team& team);

class Desk {
 public:
  /// Has the peer at `socket` do a task, and keeps its answer. From any thread. \return false where
  /// the peer is lost, or says what is none of its business: the task is given back.
  using SeeDone = std::function<bool(int socket, std::int64_t task)>;

  /// Listens, and writes down where. The queue, and what `see_done` uses, must outlive it.
  /// \return kIo
  static Result<std::unique_ptr<Desk>> open(const Team& team, Job job, Queue& queue,
                                            SeeDone see_done);
  /// \pre the queue is over. Tells those who ask, waits for those who are late as long as
  ///     Team::farewell says, and for those who have a task as long as Team::grace does.
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  class Service;
  explicit Desk(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreshard::team
