/// \file
/// The end of a process that is one rank of a job. Whatever goes wrong, from whichever thread it is
/// noticed: it is said once, the other ranks are told, what is being written is finished, and the
/// process is gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

#include "validate/replay/store.h"

namespace foreshard::replay {

class Process {
 public:
  /// From here on SIGINT, SIGTERM and SIGHUP end the process through `end`. Before any other thread
  /// begins: they must not get the signals.
  Process();
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void is_rank(std::int32_t rank, std::int32_t ranks);
  /// The others are told through it.
  /// \param store  outlives this object, or is taken back by nullptr.
  void meets_in(Store* store);

  /// "error: rank 2: ..." to stderr, gives up in the store, waits a moment for the last words of
  /// the others, and ends the process. The first call counts; others wait for their end.
  [[noreturn]] void end(const std::string& message, int code);
  /// As the other, for what an Error says.
  [[noreturn]] void end(const Error& error);

  /// Runs `write`, which `end` does not interrupt.
  Status write(const std::function<Status()>& write);

 private:
  void wait_for_signals();
  [[noreturn]] void interrupted(int signal);

  std::atomic<bool> ending_{false};
  std::timed_mutex writing_;
  std::mutex mutex_;
  std::int32_t rank_ = 0;
  std::int32_t ranks_ = 1;
  Store* store_ = nullptr;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace foreshard::replay
