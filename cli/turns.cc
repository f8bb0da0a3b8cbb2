#include "cli/turns.h"

#include <algorithm>
#include <chrono>

namespace foreshard::cli {

bool Turns::wait_for(const Question& question, const std::function<void()>& work) {
  constexpr auto kBetween = std::chrono::milliseconds(20);
  Turn turn{.question = question, .work = work};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&turn);
  changed_.notify_all();
  while (!turn.done) {
    changed_.wait_for(lock, kBetween);
    if (turn.begun || !question.is_gone()) continue;
    std::erase(waiting_, &turn);
    return false;
  }
  return true;
}

bool Turns::should_end(const Question& question) const {
  if (!question.ahead) return question.is_gone();
  const std::scoped_lock lock(mutex_);
  bool others = false;
  for (const Turn* turn : waiting_) {
    if (turn->question.ahead) continue;
    if (turn->question.name == question.name) return false;
    others = true;
  }
  return others || question.is_gone();
}

Turns::Turn& Turns::next() {
  const auto asked =
      std::ranges::find(waiting_, false, [](const Turn* turn) { return turn->question.ahead; });
  const auto place = asked == waiting_.end() ? waiting_.begin() : asked;
  Turn& turn = **place;
  waiting_.erase(place);
  return turn;
}

void Turns::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    Turn& turn = next();
    turn.begun = true;
    lock.unlock();
    turn.work();
    lock.lock();
    turn.done = true;
    changed_.notify_all();
  }
}

}  // namespace foreshard::cli
