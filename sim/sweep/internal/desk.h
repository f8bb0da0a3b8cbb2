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

/// What all ranks must have alike. \return as load_point.
Result<std::string> common_work(const Setup& setup);

class Desk {
 public:
  /// Listens, and writes down where. The queue and the record must outlive it.
  /// \return kIo
  static Result<std::unique_ptr<Desk>> open(const Team& team, std::string work, Queue& queue,
                                            Record& record);
  /// \pre the queue is over. Tells those who ask, and waits for those who are late, as long as
  ///     Team::farewell says.
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

 private:
  class Service;
  explicit Desk(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreshard::sweep::internal
