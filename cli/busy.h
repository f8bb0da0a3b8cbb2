/// \file
/// A line on a terminal's stderr that shows what the program is doing, and for how long.
///
///     const Busy busy("simulating");   // after a second: "simulating, 3 s"
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace foreshard::cli {

/// Shows the line while it lives; the destructor erases it. Nothing is shown in the first second,
/// or if stderr is not a terminal.
class Busy {
 public:
  explicit Busy(std::string what);
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy();

 private:
  void show();

  std::string what_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace foreshard::cli
