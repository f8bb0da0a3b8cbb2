#include "sim/sweep/internal/record.h"

#include <utility>

namespace foreshard::sweep::internal {

Record::Record(Question question, Store* store, std::function<void()> progress)
    : store_(store), progress_(std::move(progress)) {
  result_.results.question = std::move(question);
  result_.results.outcomes.resize(static_cast<std::size_t>(size_of(result_.results.question.axes)));
}

Result<bool> Record::take_known(std::int64_t point, const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) return false;
  FORESHARD_ASSIGN(auto outcome, store_->find(key));
  if (!outcome) return false;
  FORESHARD_TRY(put(point, key, *std::move(outcome)));
  ++(computed_.contains(key) ? result_.repeated : result_.known);
  return true;
}

Status Record::add(std::int64_t point, const std::string& key, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  FORESHARD_TRY(put(point, key, std::move(outcome)));
  computed_.insert(key);
  ++result_.computed;
  return {};
}

Status Record::put(std::int64_t point, const std::string& key, Outcome outcome) {
  if (store_ != nullptr) FORESHARD_TRY(store_->put(point, key, outcome));
  result_.results.outcomes[static_cast<std::size_t>(point)] = std::move(outcome);
  if (progress_) progress_();
  return {};
}

void Record::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = std::move(error);
}

std::optional<Error> Record::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

Result<RunResult> Record::take() {
  const std::lock_guard lock(mutex_);
  if (failed_) return *failed_;
  auto& outcomes = result_.results.outcomes;
  if (store_ != nullptr && result_.results.done() < std::ssize(outcomes)) {
    FORESHARD_ASSIGN(auto held, store_->held());
    for (auto& [index, outcome] : held)
      if (index >= 0 && index < std::ssize(outcomes)) {
        auto& place = outcomes[static_cast<std::size_t>(index)];
        if (!place) place = std::move(outcome);
      }
  }
  return std::move(result_);
}

}  // namespace foreshard::sweep::internal
