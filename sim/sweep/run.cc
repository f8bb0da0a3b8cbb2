// Runs the points of a sweep (run.h), for `foreshard study run`: by threads, ranks of a job and
// shards. Points that the results file has already are not run again.
#include "sim/sweep/run.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/grouped.h"
#include "base/result.h"
#include "base/team/queue.h"
#include "base/team/team.h"
#include "base/threads.h"

#include "sim/sweep/grid.h"

namespace foreshard::sweep::internal {
namespace {

// The state of a sweep so far, in memory and in the results file; for several threads.

class Recorder {
 public:
  /// \param store, progress  see RunOptions.
  Recorder(Question question, Store* store, std::function<void()> progress);

  /// Whether a point with this key is stored; it then counts as done. \return kIo as in Store.
  Result<bool> take_known(std::int64_t point, const std::string& key);
  /// \return kIo as in Store.
  Status add(std::int64_t point, const std::string& key, Outcome outcome);
  /// Records the first fault of any thread; later ones are dropped.
  void fail(Error error);

  /// All results, including stored ones of points that this run did not reach. \pre No other thread
  /// uses the record any more.
  Result<RunResult> take();

 private:
  Status put(std::int64_t point, const std::string& key, Outcome outcome);

  mutable std::mutex mutex_;
  Store* store_;
  std::function<void()> progress_;
  RunResult result_;
  std::set<std::string> computed_;  // Keys.
  std::optional<Error> failed_;
};

Recorder::Recorder(Question question, Store* store, std::function<void()> progress)
    : store_(store), progress_(std::move(progress)) {
  result_.results.question = std::move(question);
  result_.results.outcomes.resize(static_cast<std::size_t>(size_of(result_.results.question.axes)));
}

Result<bool> Recorder::take_known(std::int64_t point, const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (store_ == nullptr) return false;
  FORESHARD_ASSIGN(auto outcome, store_->find(key));
  if (!outcome) return false;
  FORESHARD_TRY(put(point, key, *std::move(outcome)));
  ++(computed_.contains(key) ? result_.repeated : result_.known);
  return true;
}

Status Recorder::add(std::int64_t point, const std::string& key, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  FORESHARD_TRY(put(point, key, std::move(outcome)));
  computed_.insert(key);
  ++result_.computed;
  return {};
}

Status Recorder::put(std::int64_t point, const std::string& key, Outcome outcome) {
  if (store_ != nullptr) FORESHARD_TRY(store_->put(point, key, outcome));
  result_.results.outcomes[static_cast<std::size_t>(point)] = std::move(outcome);
  if (progress_) progress_();
  return {};
}

void Recorder::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = std::move(error);
}

Result<RunResult> Recorder::take() {
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

}  // namespace

}  // namespace foreshard::sweep::internal

namespace foreshard::sweep {
namespace {

using team::Message;
using team::receive;
using team::send;

Result<bool> do_point(const Setup& setup, int socket, const Message& order) {
  std::int64_t index = 0;
  const std::string& number = order.back();
  const auto end = number.data() + number.size();
  const bool sound = order.size() == 2 && order.front() == "point" &&
                     std::from_chars(number.data(), end, index).ptr == end && index >= 0 &&
                     index < size_of(names_of(setup.sweep.sweep));
  if (!sound) return false;
  FORESHARD_ASSIGN(const Point point, load_point(setup, index));
  if (!send(socket, {"key", point.key})) return false;
  const auto wanted = receive(socket);
  if (!wanted) return false;
  if (*wanted == Message{"known"}) return true;
  FORESHARD_ASSIGN(const Outcome outcome, outcome_at(setup, index, point));
  return send(socket, {"outcome", point.key, text_of(outcome)});
}

}  // namespace

Result<team::Job> job_of(const Setup& setup) {
  FORESHARD_ASSIGN(std::string work, common_work(setup));
  return team::Job{
      .work = std::move(work), .subject = "sweep", .remains = "what it had done is kept"};
}

Status help(const Setup& setup, const Team& team, std::int64_t threads) {
  FORESHARD_ASSIGN(const team::Job job, job_of(setup));
  return team::help(team, job, std::min(threads, kMostThreads),
                    [&](int socket, const Message& order, std::size_t) {
                      return do_point(setup, socket, order);
                    });
}

namespace {

using internal::Recorder;
using team::TaskQueue;

std::vector<std::int64_t> points_of(const Shard& shard, std::int64_t all) {
  std::vector<std::int64_t> points;
  for (std::int64_t i = shard.part - 1; i < all; i += shard.parts) points.push_back(i);
  return points;
}

// Does one point. \return kIo as in load_point, outcome_at and the store.
Status do_point(const Setup& setup, std::int64_t index, Recorder& record) {
  FORESHARD_ASSIGN(const Point point, load_point(setup, index));
  FORESHARD_ASSIGN(const bool known, record.take_known(index, point.key));
  if (known) return {};
  FORESHARD_ASSIGN(Outcome outcome, outcome_at(setup, index, point));
  return record.add(index, point.key, std::move(outcome));
}

// Ends the run.
void fail(const Error& error, TaskQueue& queue, Recorder& record) {
  record.fail(error);
  queue.stop();
}

void work(const Setup& setup, TaskQueue& queue, Recorder& record) {
  while (const auto index = queue.take()) {
    try {
      if (const Status status = do_point(setup, *index, record); !status.ok())
        fail(status.error(), queue, record);
    } catch (...) {  // no memory: what was stored is kept
      queue.stop();
      throw;
    }
    queue.done();
  }
}

// What a peer says about a point: its key, and then its outcome, unless that is known already.
team::Answer answer(std::int64_t point, const Message& words, TaskQueue& queue, Recorder& record) {
  using State = team::Answer::State;
  if (words.size() == 2 && words[0] == "key") {
    const auto known = record.take_known(point, words[1]);
    if (known && !*known) return {State::kMore, {"wanted"}};
    if (!known) fail(known.error(), queue, record);
    return {State::kDone, {"known"}};
  }
  if (words.size() != 3 || words[0] != "outcome") return {};
  auto outcome = outcome_in(words[2]);
  if (!outcome) return {};
  const Status added = record.add(point, words[1], *std::move(outcome));
  if (!added.ok()) fail(added.error(), queue, record);
  return {State::kDone, {}};
}

// If no point of the grid makes a study: the first fault, which is then the sweep's.
std::optional<Error> fault_of_all(const Results& results, const std::string& file) {
  std::optional<Error> first;
  std::int64_t invalid = 0;
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const auto& outcome = results.outcomes[i];
    if (!outcome || outcome->status != PointStatus::kInvalid) return std::nullopt;
    ++invalid;
    if (!first)
      first = Error{Error::Code::kInvalidInput,
                    fmt::format("{}\n   (point {} of {}: {})", outcome->why, i, file,
                                label_of(static_cast<std::int64_t>(i), results.question.axes))};
  }
  if (first && invalid > 1)
    first->message += fmt::format("\n   none of {} points makes a study", grouped(invalid));
  return first;
}

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto part = std::from_chars(text.data(), end, shard.part);
  const bool slash = part.ec == std::errc() && part.ptr != end && *part.ptr == '/';
  const auto parts = slash ? std::from_chars(part.ptr + 1, end, shard.parts) : part;
  if (!slash || parts.ec != std::errc() || parts.ptr != end || shard.part < 1 ||
      shard.part > shard.parts)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("'{}' is no part of a sweep; write 2/8 for the second of eight",
                             text.substr(0, 40))};
  return shard;
}

Result<RunResult> run_sweep(const Setup& setup, const RunOptions& options) {
  const Question question = question_of(setup.sweep);
  const auto points = points_of(options.shard, size_of(question.axes));
  TaskQueue queue(points, options.out_of_time);
  Recorder record(question, options.store, options.progress);
  const auto threads =
      std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(std::ssize(points), 1));
  {
    std::unique_ptr<net::Server> server;
    if (options.team != nullptr) {
      FORESHARD_ASSIGN(auto job, job_of(setup));
      team::Tasks tasks{
          .order =
              [](std::int64_t point) {
                return Message{"point", std::to_string(point)};
              },
          .answer = [&](std::int64_t point,
                        const Message& words) { return answer(point, words, queue, record); }};
      FORESHARD_ASSIGN(server, team::serve(*options.team, std::move(job), queue, std::move(tasks)));
    }
    in_threads(threads, [&](std::int64_t) { work(setup, queue, record); });
  }
  FORESHARD_ASSIGN(RunResult result, record.take());
  result.partial = result.computed + result.known + result.repeated < std::ssize(points);
  if (auto fault = fault_of_all(result.results, setup.sweep.file)) return *std::move(fault);
  return result;
}

}  // namespace foreshard::sweep
