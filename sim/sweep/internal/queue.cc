#include "sim/sweep/internal/queue.h"

#include <chrono>
#include <utility>

namespace foreshard::sweep::internal {

// How often those who wait ask whether it is time to stop.
constexpr auto kGlance = std::chrono::milliseconds(100);

Queue::Queue(const std::vector<std::int64_t>& points, std::function<bool()> out_of_time)
    : out_of_time_(std::move(out_of_time)), waiting_(points.begin(), points.end()) {}

bool Queue::is_over() {
  if (!stopped_ && out_of_time_ && !(waiting_.empty() && taken_ == 0)) stopped_ = out_of_time_();
  return stopped_ || (waiting_.empty() && taken_ == 0);
}

std::optional<std::int64_t> Queue::take() {
  std::unique_lock lock(mutex_);
  while (waiting_.empty() && !is_over()) changed_.wait_for(lock, kGlance);
  if (is_over()) return std::nullopt;
  const std::int64_t point = waiting_.front();
  waiting_.pop_front();
  ++taken_;
  return point;
}

void Queue::done() {
  const std::lock_guard lock(mutex_);
  --taken_;
  changed_.notify_all();
}

void Queue::give_back(std::int64_t point) {
  const std::lock_guard lock(mutex_);
  --taken_;
  waiting_.push_front(point);
  changed_.notify_all();
}

void Queue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace foreshard::sweep::internal
