/// \file
/// Rank 0's side of a team (team.h): one thread for each connection, which takes points from the
/// queue on its peer's behalf.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

#include "sim/sweep/internal/queue.h"
#include "sim/sweep/internal/record.h"
#include "sim/sweep/team.h"

namespace foreshard::sweep::internal {

/// What rank 0 leaves at the place of a team that is done; empty where the job has no name: then
/// nobody could tell it from an earlier one's.
std::string over_text(const Team& team);

class Desk {
 public:
  /// Listens, and writes down where. The queue and the record must outlive it.
  /// \return kIo
  static Result<std::unique_ptr<Desk>> open(const Team& team, std::string work, Queue& queue,
                                            Record& record);
  /// \pre the queue is over. Tells those who ask, waits for those who are late as long as
  ///     Team::farewell says, and for those who have a point as long as Team::grace does.
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  class Service;
  explicit Desk(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreshard::sweep::internal
