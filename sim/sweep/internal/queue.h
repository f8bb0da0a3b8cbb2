/// \file
/// The points that are still to be done, handed out to whoever asks: threads of this process and,
/// on their behalf, other processes.
///
/// Invariant: each point is waiting, taken by one worker, or done. A worker that is lost gives its
/// point back; so others wait, while all points are taken, until all are done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace foreshard::sweep::internal {

class Queue {
 public:
  /// \param out_of_time  asked before a point is handed out, from any thread; may be empty.
  Queue(const std::vector<std::int64_t>& points, std::function<bool()> out_of_time);

  /// The next point; nothing when all are done, or no more shall be begun.
  std::optional<std::int64_t> take();
  void done();
  void give_back(std::int64_t point);
  /// No more points are handed out.
  void stop();

 private:
  bool is_over();  // With the lock held.

  std::function<bool()> out_of_time_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::int64_t> waiting_;
  std::int64_t taken_ = 0;
  bool stopped_ = false;
};

}  // namespace foreshard::sweep::internal
