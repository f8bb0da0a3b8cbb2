#include "cli/busy.h"

#include <chrono>
#include <fmt/format.h>
#include <iostream>
#include <utility>

#include "base/progress.h"

namespace foreshard::cli {

Busy::Busy(std::string what) : what_(std::move(what)) {
  if (stderr_traits().interactive) thread_ = std::thread([this] { show(); });
}

Busy::~Busy() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Busy::show() {
  using std::chrono::seconds;
  std::unique_lock lock(mutex_);
  std::size_t drawn = 0;
  for (int elapsed = 1; !wake_.wait_for(lock, seconds(1), [this] { return done_; }); ++elapsed) {
    const std::string line = fmt::format("{}, {} s", what_, elapsed);
    drawn = line.size();
    std::cerr << '\r' << line << std::flush;
  }
  if (drawn > 0) std::cerr << '\r' << std::string(drawn, ' ') << '\r' << std::flush;
}

}  // namespace foreshard::cli
