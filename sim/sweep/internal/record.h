/// \file
/// What is done of a sweep so far, in memory and in the results file; for several threads.
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
  /// \param store, progress  as in RunOptions.
  Record(Question question, Store* store, std::function<void()> progress);

  /// Whether a point with this key is stored; then it counts as done. \return kIo as of Store.
  Result<bool> take_known(std::int64_t point, const std::string& key);
  /// \return kIo as of Store.
  Status add(std::int64_t point, const std::string& key, Outcome outcome);
  /// The first fault that anybody met; later ones are dropped.
  void fail(Error error);
  std::optional<Error> failed() const;

  /// All of it, with what the store has of points that nobody came to. \pre nobody else uses the
  /// record any more.
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
