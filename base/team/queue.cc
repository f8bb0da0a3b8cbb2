// Tasks handed out to threads of this process (take) and, through base/team/team.cc, to other
// processes (take_now). Callers are the runs of sweeps and of searches.
#include "base/team/queue.h"

#include <chrono>
#include <utility>

namespace foreshard::team {

// The interval at which workers that wait while tasks are taken ask whether it is time to stop.
constexpr auto kGlance = std::chrono::milliseconds(100);

// `in_rounds_` matters to take_now() and is_over() only (queue.h): take() ends with each round.
TaskQueue::TaskQueue(std::function<bool()> out_of_time)
    : in_rounds_(true), out_of_time_(std::move(out_of_time)) {}

TaskQueue::TaskQueue(const std::vector<std::int64_t>& tasks, std::function<bool()> out_of_time)
    : in_rounds_(false),
      out_of_time_(std::move(out_of_time)),
      waiting_(tasks.begin(), tasks.end()) {}

void TaskQueue::add(const std::vector<std::int64_t>& tasks) {
  const std::lock_guard lock(mutex_);
  waiting_.assign(tasks.begin(), tasks.end());
  changed_.notify_all();
}

// While all tasks are done, out_of_time is not asked: a wait between two rounds ends with a task of
// the next round, or with stop().
bool TaskQueue::ends(bool across_rounds) {
  if (!stopped_ && out_of_time_ && !all_done()) stopped_ = out_of_time_();
  return stopped_ || (all_done() && !across_rounds);
}

std::optional<std::int64_t> TaskQueue::next(bool across_rounds) {
  if (waiting_.empty() || ends(across_rounds)) return std::nullopt;
  const std::int64_t task = waiting_.front();
  waiting_.pop_front();
  ++taken_;
  return task;
}

std::optional<std::int64_t> TaskQueue::take() {
  std::unique_lock lock(mutex_);
  while (waiting_.empty() && !ends(false)) changed_.wait_for(lock, kGlance);
  return next(false);
}

std::optional<std::int64_t> TaskQueue::take_now() {
  const std::lock_guard lock(mutex_);
  return next(in_rounds_);
}

bool TaskQueue::is_over() {
  const std::lock_guard lock(mutex_);
  return ends(in_rounds_);
}

void TaskQueue::done() {
  const std::lock_guard lock(mutex_);
  --taken_;
  changed_.notify_all();
}

void TaskQueue::give_back(std::int64_t task) {
  const std::lock_guard lock(mutex_);
  --taken_;
  waiting_.push_front(task);
  changed_.notify_all();
}

bool TaskQueue::has_left() {
  const std::lock_guard lock(mutex_);
  return !all_done();
}

void TaskQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace foreshard::team
