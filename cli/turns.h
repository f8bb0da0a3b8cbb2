/// \file
/// Turns of those who ask for simulations: one at a time, on the thread that calls work().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

namespace foreshard::cli {

class Turns {
 public:
  struct Question {
    std::string name;  ///< The same for questions with the same answer.
    /// It may never be asked: it waits until nobody else does, and ends when somebody does. Where
    /// that is the same question, it is finished instead, for its answer is remembered.
    bool ahead = false;
    std::function<bool()> is_gone;  ///< Whether nobody waits for the answer any more.
  };

  /// Has `work` done when its turn comes, and waits until it is done.
  /// \return false if the question ended before that began.
  bool wait_for(const Question& question, const std::function<void()>& work);
  /// Whether the work for a question that has begun should end; any thread may ask, often.
  bool should_end(const Question& question) const;

  /// Does all work, without end.
  [[noreturn]] void work();

 private:
  struct Turn {
    const Question& question;
    const std::function<void()>& work;
    bool begun = false;
    bool done = false;
  };
  Turn& next();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Turn*> waiting_;
};

}  // namespace foreshard::cli
