/// \file
/// The state of a sweep so far, in memory and in the results file; for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"

#include "sim/sweep/run.h"

namespace foreshard::sweep::internal {

class Record {
 public:
  /// \param store, progress  see RunOptions.
  Record(Question question, Store* store, std::function<void()> progress);

  /// Whether a point with this key is stored; it then counts as done. \return kIo as in Store.
  Result<bool> take_known(std::int64_t point, const std::string& key);
  /// \return kIo as in Store.
  Status add(std::int64_t point, const std::string& key, Outcome outcome);
  /// Records the first fault of any thread; later ones are dropped.
  void fail(Error error);
  std::optional<Error> failed() const;

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

}  // namespace foreshard::sweep::internal
