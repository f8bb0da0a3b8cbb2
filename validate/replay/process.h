/// \file
/// Ends a process that is one rank of a job. Whatever goes wrong, and whichever thread notices it,
/// the fault is printed once, the other ranks are told, a file being written is finished, and the
/// process ends.
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
  /// From here on, SIGINT, SIGTERM and SIGHUP end the process through `end`. It must be made before
  /// any other thread begins, because other threads must not receive these signals.
  Process();
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void is_rank(std::int32_t rank, std::int32_t ranks);
  /// Sets the store through which the other ranks are told.
  /// \param store  must outlive this object, or be reset with nullptr.
  void meets_in(Store* store);

  /// Prints "error: rank 2: ..." to stderr, gives up in the store, waits a moment for the last
  /// words of the other ranks, and ends the process. Only the first call has an effect; later calls
  /// wait for the end.
  [[noreturn]] void end(const std::string& message, int code);
  /// Ends with the message and the exit code of an Error.
  [[noreturn]] void end(const Error& error);

  /// Runs `write`; `end` waits for it.
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
