/// \file
/// The tasks that are still to be done, handed out to whoever asks: threads of this process and,
/// on their behalf, other processes.
///
/// Invariant: each task is waiting, taken by one worker, or done. The task of a lost worker is
/// given back; so while all tasks are taken, other workers wait until all are done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace foreshard::team {

class TaskQueue {
 public:
  /// A queue of tasks that come in rounds, until stop().
  /// \param out_of_time  asked before a task is handed out, from any thread, but not while all
  ///     tasks are done; empty: no limit.
  explicit TaskQueue(std::function<bool()> out_of_time);
  /// A queue of one round: `tasks` are all tasks.
  TaskQueue(const std::vector<std::int64_t>& tasks, std::function<bool()> out_of_time);

  /// Adds another round. \pre earlier tasks are done, or the queue has stopped.
  void add(const std::vector<std::int64_t>& tasks);
  /// The next task of the round; nothing when all are done, or no more shall be begun.
  std::optional<std::int64_t> take();
  /// The same for a worker of all rounds, without waiting. Nothing where it has to ask again,
  /// unless is_over().
  std::optional<std::int64_t> take_now();
  /// Whether a worker of all rounds has nothing more to do.
  bool is_over();
  /// \pre the caller has taken a task.
  void done();
  /// \pre the caller has taken `task`. It is the next to be handed out.
  void give_back(std::int64_t task);
  /// No more tasks are handed out.
  void stop();
  /// Whether tasks are waiting or taken.
  bool has_left();

 private:
  // With the lock held.
  std::optional<std::int64_t> next(bool across_rounds);
  bool all_done() const { return waiting_.empty() && taken_ == 0; }
  bool ends(bool across_rounds);

  bool in_rounds_;
  std::function<bool()> out_of_time_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::int64_t> waiting_;
  std::int64_t taken_ = 0;
  bool stopped_ = false;
};

}  // namespace foreshard::team
